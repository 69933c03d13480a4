#include "memory/cuda/gpu.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace wc::memory::cuda {
namespace {

// "6f1c2d3e-0123-4567-89ab-cdef01234567"
std::string uuid_text(const CuUuid& uuid) {
  std::string text;
  for (std::size_t at = 0; at < sizeof(uuid.bytes); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += format("{:02x}", static_cast<unsigned char>(uuid.bytes[at]));
  }
  return text;
}

Result<int> attribute(const Driver& driver, CuDevice device, int which) {
  int value = 0;
  TRY(WC_CU_CALL(driver, cuDeviceGetAttribute, &value, which, device));
  return value;
}

Result<Gpu> describe(const Driver& driver, int ordinal) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  TRY(WC_CU_CALL(driver, cuDeviceGet, &gpu.device, ordinal));
  std::array<char, 256> name{};
  TRY(WC_CU_CALL(driver, cuDeviceGetName, name.data(), static_cast<int>(name.size() - 1),
                 gpu.device));
  gpu.name = name.data();
  CuUuid uuid{};
  TRY(WC_CU_CALL(driver, cuDeviceGetUuid, &uuid, gpu.device));
  // The driver's UUID of a MIG instance is the instance's; only the device's name says that it is
  // one ("NVIDIA A100-SXM4-40GB MIG 1g.5gb").
  const bool mig = gpu.name.find(" MIG ") != std::string::npos;
  gpu.uuid = (mig ? "MIG-" : "GPU-") + uuid_text(uuid);
  std::size_t total = 0;
  TRY(WC_CU_CALL(driver, cuDeviceTotalMem, &total, gpu.device));
  gpu.total_bytes = total;
  const int domain = TRY(attribute(driver, gpu.device, kAttributePciDomainId));
  const int bus = TRY(attribute(driver, gpu.device, kAttributePciBusId));
  const int slot = TRY(attribute(driver, gpu.device, kAttributePciDeviceId));
  gpu.pci = format("{:04x}:{:02x}:{:02x}.0", domain, bus, slot);
  const int maps = TRY(attribute(driver, gpu.device, kAttributeVmmSupported));
  const int exports = TRY(attribute(driver, gpu.device, kAttributePosixFdSupported));
  gpu.vmm = driver.has_vmm() && maps != 0 && exports != 0;
  return gpu;
}

std::optional<int> ordinal_in(std::string_view which) {
  if (which.starts_with("cuda:")) which.remove_prefix(5);
  int ordinal = -1;
  const auto [end, code] = std::from_chars(which.data(), which.data() + which.size(), ordinal);
  if (which.empty() || which.size() > 4 || code != std::errc{} ||
      end != which.data() + which.size() || ordinal < 0) {
    return std::nullopt;
  }
  return ordinal;
}

bool has_uuid(const Gpu& gpu, std::string_view which) {
  constexpr std::size_t kPrefix = 4;  // "GPU-", "MIG-"
  const std::string_view uuid = gpu.uuid;
  if (uuid.starts_with(which) && which.size() >= kPrefix + 4) return true;
  return uuid.substr(kPrefix).starts_with(which) && which.size() >= 4;
}

std::string visible_text(const std::vector<Gpu>& gpus) {
  std::string text = gpus.empty() ? "no GPU is visible" : "visible are";
  for (const Gpu& gpu : gpus) {
    text +=
        format("{} cuda:{} {} ({})", gpu.ordinal == 0 ? "" : ",", gpu.ordinal, gpu.uuid, gpu.name);
  }
  const char* filter = std::getenv("CUDA_VISIBLE_DEVICES");
  if (filter != nullptr) text += format("; CUDA_VISIBLE_DEVICES is \"{}\"", filter);
  return text;
}

}  // namespace

Result<std::vector<Gpu>> list_gpus(const Driver& driver) {
  int count = 0;
  TRY(WC_CU_CALL(driver, cuDeviceGetCount, &count));
  std::vector<Gpu> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Gpu gpu = TRY(describe(driver, ordinal));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Result<Gpu> find_gpu(const Driver& driver, const std::string& which) {
  const std::vector<Gpu> gpus = TRY(list_gpus(driver));
  const auto ordinal = ordinal_in(which);
  std::vector<const Gpu*> found;
  for (const Gpu& gpu : gpus) {
    if (ordinal ? gpu.ordinal == *ordinal : has_uuid(gpu, which)) found.push_back(&gpu);
  }
  if (found.size() == 1) return *found.front();
  if (found.empty()) {
    return fail(Code::not_found, "no device \"{}\" in this process: {}", which, visible_text(gpus));
  }
  return fail(Code::invalid_argument, "\"{}\" names {} devices: {}", which, found.size(),
              visible_text(gpus));
}

}  // namespace wc::memory::cuda
