// The contract, by GPU memory. One source, two programs: over the simulated driver, which runs
// everywhere (WC_SIMULATED_DRIVER is its path), and over the machine's own, which is skipped where
// there is no GPU. That both pass keeps the simulation honest.
#include <array>
#include <cstdlib>
#include <filesystem>

#include "memory/cuda/cuda_device.hpp"
#include "tests/contract/device_contract.hpp"

namespace wc::contract {
namespace {

#ifdef WC_SIMULATED_DRIVER
constexpr const char* kDriver = WC_SIMULATED_DRIVER;
constexpr const char* kName = "SimulatedCuda";
constexpr std::uint64_t kNoise = 0;

// The machine that this program and its children share: the first one makes it.
void prepare() {
  std::string folder = (std::filesystem::temp_directory_path() / "weightcache-sim-XXXXXX").string();
  if (std::getenv("WEIGHTCACHE_SIM_DIR") != nullptr || ::mkdtemp(folder.data()) == nullptr) return;
  ::setenv("WEIGHTCACHE_SIM_DIR", folder.c_str(), 1);
  static const std::string made = folder;
  std::atexit([] { std::filesystem::remove_all(made); });
}
#else
constexpr const char* kDriver = "";
constexpr const char* kName = "Cuda";
constexpr std::uint64_t kNoise = std::uint64_t{1} << 30;  // contexts come and go

void prepare() {}
#endif

Result<std::unique_ptr<memory::Device>> open() {
  auto driver = TRY(memory::cuda::open_driver(kDriver));
  return memory::cuda::open_cuda_device(
      std::make_shared<const memory::cuda::Driver>(std::move(driver)), "cuda:0");
}

// A copy into the address: the driver refuses it where the mapping is read-only.
Result<> store_byte(memory::View& view, std::uint64_t offset, std::byte value) {
  auto device = TRY(open());
  std::array<memory::View*, 1> views = {&view};
  auto writer = TRY(device->writer(views, 4096));
  const memory::Run run{.block_offset = 0, .segment_offset = offset, .bytes = 1, .segment = 0};
  TRY(writer->copy_in({&value, 1}, {&run, 1}));
  return writer->finish();
}

}  // namespace

std::vector<DeviceFactory> device_factories() {
  prepare();
  if (!memory::cuda::open_driver(kDriver)) return {};
  return {{.name = kName,
           .open = open,
           .store = store_byte,
           .private_copies = false,
           .free_address = 0x2000'0000'0000,
           .noise_bytes = kNoise}};
}

}  // namespace wc::contract
