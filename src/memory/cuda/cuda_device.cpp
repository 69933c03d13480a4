#include "memory/cuda/cuda_device.hpp"

#include <mutex>
#include <optional>

#include "base/units.hpp"
#include "memory/cuda/staging_writer.hpp"
#include "memory/cuda/vmm.hpp"

namespace wc::memory::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<const Driver> driver, Gpu gpu, PrimaryContext context,
             std::size_t granularity_bytes)
      : driver_(std::move(driver)), gpu_(std::move(gpu)), context_(std::move(context)) {
    info_.uuid = gpu_.uuid;
    info_.ordinal = gpu_.ordinal;
    info_.name = gpu_.name;
    info_.total_bytes = gpu_.total_bytes;
    info_.granularity_bytes = granularity_bytes;
    info_.transports = {Transport::vmm_fd};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  [[nodiscard]] Result<std::uint64_t> free_bytes() override {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, context_));
    std::size_t free = 0;
    std::size_t total = 0;
    TRY(WC_CU_CALL(*driver_, cuMemGetInfo, &free, &total));
    return free;
  }

  [[nodiscard]] Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    const std::uint64_t granule = info_.granularity_bytes;
    if (bytes == 0 || bytes > gpu_.total_bytes * 2) {
      return fail(bytes == 0 ? Code::invalid_argument : Code::exhausted,
                  "a segment of {} on \"{}\", which has {}", format_bytes(bytes), gpu_.uuid,
                  format_bytes(gpu_.total_bytes));
    }
    const std::uint64_t rounded = (bytes + granule - 1) / granule * granule;
    const Recipe recipe = TRY(this->recipe());
    auto segment = create_segment(*driver_, recipe, rounded);
    if (!segment && segment.error().code == Code::exhausted) {
      const auto free = free_bytes();
      segment.error().message +=
          format(": {} are needed on \"{}\", {} are free", format_bytes(rounded), gpu_.uuid,
                 free ? format_bytes(*free) : "an unknown number of bytes");
    }
    return segment;
  }

  [[nodiscard]] Result<std::unique_ptr<View>> map_at(Segment& segment,
                                                     std::uint64_t address) override {
    return map_segment(*driver_, context_, segment, address);
  }

  [[nodiscard]] Result<std::unique_ptr<View>> import(Handle handle,
                                                     const ImportOptions& options) override {
    auto* fd = std::get_if<Fd>(&handle);
    if (fd == nullptr) {
      return fail(Code::invalid_argument,
                  "\"{}\" imports descriptors (vmm_fd); the segment came as an IPC handle",
                  gpu_.uuid);
    }
    return import_segment(*driver_, context_, std::move(*fd), options);
  }

  [[nodiscard]] Result<std::unique_ptr<Writer>> writer(std::span<View* const> views,
                                                       std::uint64_t block_bytes) override {
    return make_staging_writer(*driver_, context_, gpu_.pci, views, block_bytes);
  }

 private:
  // Found by trial when the first segment is made: readers need none.
  Result<Recipe> recipe() {
    const std::lock_guard lock(mutex_);
    if (!recipe_) {
      recipe_ = TRY(find_recipe(*driver_, gpu_));
      info_.segment_flags = recipe_->flags;
    }
    return *recipe_;
  }

  std::shared_ptr<const Driver> driver_;
  Gpu gpu_;
  PrimaryContext context_;
  DeviceInfo info_;
  std::mutex mutex_;  // of the recipe
  std::optional<Recipe> recipe_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(std::shared_ptr<const Driver> driver,
                                                 const std::string& which) {
  Gpu gpu = TRY(find_gpu(*driver, which));
  PrimaryContext context = TRY(retain_context(*driver, gpu.device));
  const std::size_t granularity = TRY(granularity_of(*driver, gpu));
  return std::make_unique<CudaDevice>(std::move(driver), std::move(gpu), std::move(context),
                                      granularity);
}

}  // namespace wc::memory::cuda
