#include "memory/cuda/vmm.hpp"

#include <array>

#include "base/units.hpp"

namespace wc::memory::cuda {
namespace {

class VmmSegment final : public Segment {
 public:
  VmmSegment(const Driver& driver, PhysicalMemory memory, std::uint64_t bytes)
      : driver_(&driver), memory_(std::move(memory)), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] Result<Handle> export_handle() override {
    Fd fd = TRY(export_memory(*driver_, memory_));
    return Handle(std::move(fd));
  }
  [[nodiscard]] const PhysicalMemory& memory() const { return memory_; }

 private:
  const Driver* driver_;
  PhysicalMemory memory_;
  std::uint64_t bytes_;
};

class VmmView final : public View {
 public:
  VmmView(const Driver& driver, const PrimaryContext& context, AddressRange range,
          MappedRange mapped, Access access)
      : driver_(&driver),
        context_(&context),
        range_(std::move(range)),
        mapped_(std::move(mapped)),
        access_(access) {}

  [[nodiscard]] std::uint64_t address() const override { return mapped_.get().address; }
  [[nodiscard]] std::uint64_t bytes() const override { return mapped_.get().bytes; }
  [[nodiscard]] Access access() const override { return access_; }

  [[nodiscard]] Result<> make_read_only() override {
    if (access_ == Access::shared_read) return {};
    {
      // A range that a running copy or kernel writes to may not change: the context would die.
      const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
      TRY(WC_CU_CALL(*driver_, cuCtxSynchronize));
    }
    TRY(set_access(*driver_, mapped_.get(), context_->get().device, kAccessRead));
    access_ = Access::shared_read;
    return {};
  }

 private:
  const Driver* driver_;
  const PrimaryContext* context_;
  AddressRange range_;  // outlives its mapping
  MappedRange mapped_;
  Access access_;
};

Result<std::unique_ptr<View>> map_physical(const Driver& driver, const PrimaryContext& context,
                                           const PhysicalMemory& memory,
                                           const ImportOptions& options) {
  AddressRange range = TRY(reserve_range(driver, options.bytes, options.address));
  MappedRange mapped = TRY(map_memory(driver, range, memory, options.bytes));
  const int flags = options.access == Access::write ? kAccessReadWrite : kAccessRead;
  TRY(set_access(driver, mapped.get(), context.get().device, flags));
  return std::make_unique<VmmView>(driver, context, std::move(range), std::move(mapped),
                                   options.access);
}

}  // namespace

Result<std::size_t> granularity_of(const Driver& driver, const Gpu& gpu) {
  if (!driver.has_vmm() || !gpu.vmm) {
    return fail(Code::unsupported,
                "\"{}\" ({}) can't export memory as a descriptor with this driver, so transport "
                "vmm_fd can't serve there; host_fd, on device cpu, is left",
                gpu.uuid, gpu.name);
  }
  CuMemAllocationProp prop;
  prop.location.id = gpu.device;
  std::size_t bytes = 0;
  TRY(WC_CU_CALL(driver, cuMemGetAllocationGranularity, &bytes, &prop, kGranularityMinimum));
  return bytes;
}

Result<Recipe> find_recipe(const Driver& driver, const Gpu& gpu) {
  struct Attempt {
    bool rdma;
    bool fabric;
  };
  constexpr std::array<Attempt, 4> kAttempts = {
      {{true, true}, {true, false}, {false, true}, {false, false}}};
  const std::size_t granule = TRY(granularity_of(driver, gpu));
  Result<Recipe> last = fail(Code::internal, "no way to create memory was tried");
  for (const Attempt& attempt : kAttempts) {
    Recipe recipe;
    recipe.prop.location.id = gpu.device;
    recipe.prop.alloc_flags.gpu_direct_rdma_capable = attempt.rdma ? 1 : 0;
    recipe.prop.requested_handle_types = kHandlePosixFd | (attempt.fabric ? kHandleFabric : 0);
    recipe.flags = (attempt.rdma ? kFlagGpuDirectRdma : 0) | (attempt.fabric ? kFlagFabric : 0);
    const auto trial = create_memory(driver, granule, recipe.prop);
    if (trial) return recipe;
    last = std::unexpected(trial.error());
    if (last.error().code == Code::exhausted) break;
  }
  return last;
}

Result<std::uint64_t> try_exporting(const Driver& driver, const Gpu& gpu) {
  const Recipe recipe = TRY(find_recipe(driver, gpu));
  const std::size_t granule = TRY(granularity_of(driver, gpu));
  const PhysicalMemory memory = TRY(create_memory(driver, granule, recipe.prop));
  const Fd exported = TRY(export_memory(driver, memory));
  return recipe.flags;
}

Result<std::unique_ptr<Segment>> create_segment(const Driver& driver, const Recipe& recipe,
                                                std::uint64_t bytes) {
  PhysicalMemory memory = TRY(create_memory(driver, bytes, recipe.prop));
  return std::make_unique<VmmSegment>(driver, std::move(memory), bytes);
}

Result<std::unique_ptr<View>> map_segment(const Driver& driver, const PrimaryContext& context,
                                          Segment& segment, std::uint64_t address) {
  const auto* own = dynamic_cast<VmmSegment*>(&segment);
  if (own == nullptr) {
    return fail(Code::invalid_argument, "the segment was not made by this kind of device");
  }
  ImportOptions options;
  options.bytes = own->bytes();
  options.access = Access::write;
  options.address = address;
  return map_physical(driver, context, own->memory(), options);
}

Result<std::unique_ptr<View>> import_segment(const Driver& driver, const PrimaryContext& context,
                                             Fd fd, const ImportOptions& options) {
  if (options.access == Access::private_copy) {
    return fail(Code::invalid_argument,
                "GPU memory has no private mappings: attach it shared (read-only)");
  }
  const auto memory = import_memory(driver, fd);
  if (!memory) {
    Error error = memory.error();
    if (error.origin == "CUDA_ERROR_INVALID_VALUE" || error.origin == "CUDA_ERROR_INVALID_HANDLE") {
      error.code = Code::corrupt;
      error.message += " (the descriptor is no memory that this driver has exported)";
    }
    return Failure(std::move(error));
  }
  auto view = map_physical(driver, context, *memory, options);
  if (!view && (view.error().origin == "CUDA_ERROR_INVALID_VALUE" ||
                view.error().origin == "CUDA_ERROR_NOT_SUPPORTED")) {
    // What the driver says where the memory is another GPU's, or of another size than its sender
    // claims (driver 580.159).
    view.error().code = Code::corrupt;
    view.error().message += format(" (the descriptor does not hold {} of this GPU's memory)",
                                   format_bytes(options.bytes));
  }
  return view;
}

}  // namespace wc::memory::cuda
