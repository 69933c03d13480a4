#include "api/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/units.hpp"
#include "memory/cuda/cuda_device.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/host/host_device.hpp"

namespace wc::api {
namespace {

constexpr const char* kHost = "cpu";

std::string listed(const std::vector<memory::cuda::Gpu>& gpus) {
  std::string text;
  for (const auto& gpu : gpus) {
    if (!text.empty()) text += ", ";
    text += format("\"cuda:{}\" ({}, {})", gpu.ordinal, gpu.name, gpu.uuid);
  }
  return text;
}

}  // namespace

bool Devices::gpu_may_exist() {
  const char* library = std::getenv("WEIGHTCACHE_LIBCUDA");
  return (library != nullptr && *library != '\0') || ::access("/dev/nvidiactl", F_OK) == 0 ||
         ::access("/dev/dxg", F_OK) == 0 || ::access("/dev/nvmap", F_OK) == 0;
}

Result<std::shared_ptr<const memory::cuda::Driver>> Devices::driver() {
  if (driver_ != nullptr) return driver_;
  auto opened = TRY(memory::cuda::open_driver());
  driver_ = std::make_shared<const memory::cuda::Driver>(std::move(opened));
  return driver_;
}

Result<std::string> Devices::id_of(const std::string& name) {
  if (name.empty() || name == kHost || name.starts_with("GPU-") || name.starts_with("MIG-"))
    return name;
  const std::lock_guard lock(mutex_);
  const auto opened = TRY(driver());
  auto gpu = TRY(memory::cuda::find_gpu(*opened, name));
  return std::move(gpu.uuid);
}

Result<std::string> Devices::default_id() {
  if (!gpu_may_exist()) return kHost;
  const std::lock_guard lock(mutex_);
  auto opened = driver();
  if (!opened && opened.error().code == Code::unsupported) return kHost;  // no driver, or no GPU
  if (!opened) return Failure(std::move(opened).error());
  const auto gpus = TRY(memory::cuda::list_gpus(**opened));
  if (gpus.empty()) return kHost;
  if (gpus.size() > 1)
    return fail(Code::invalid_argument, "there are {} GPUs: choose a device: {}, or \"cpu\"",
                gpus.size(), listed(gpus));
  return gpus.front().uuid;
}

Result<std::shared_ptr<memory::Device>> Devices::open(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = opened_.find(name); known != opened_.end()) return known->second;
  std::shared_ptr<memory::Device> device;
  if (name == kHost) {
    device = TRY(memory::open_host_device());
  } else {
    auto opened = TRY(driver());
    device = TRY(memory::cuda::open_cuda_device(std::move(opened), name));
  }
  opened_.emplace(name, device);
  return device;
}

Result<> check_address(std::uint64_t address) {
  if (address % memory::kAddressAlignment == 0 && address <= memory::kHighestAddress) return {};
  return fail(Code::invalid_argument,
              "the address {:#x}: a fixed address is a multiple of {}, at most {:#x}", address,
              format_bytes(memory::kAddressAlignment), memory::kHighestAddress);
}

Result<memory::Transport> transport_of(const memory::Device& device, const std::string& name) {
  const auto wanted = TRY(memory::transport_named(name));
  const auto& able = device.info().transports;
  if (!wanted && !able.empty()) return able.front();
  if (wanted && std::ranges::find(able, *wanted) != able.end()) return *wanted;
  std::string names;
  for (const memory::Transport transport : able) {
    if (!names.empty()) names += ", ";
    names += format("\"{}\"", memory::name_of(transport));
  }
  return fail(Code::unsupported, "transport \"{}\": device \"{}\" can do {}", name,
              device.info().uuid, names);
}

}  // namespace wc::api
