// A publisher whose segment is not what it says: lying_publisher HOW NAME DEVICE, HOW being
//   smaller     a descriptor of half as much memory
//   other       a descriptor of another GPU's memory
//   no-memory   a descriptor of something that is no GPU's memory
//   honest      what it says
// Publishes one tensor of 4 MiB under the name, and says "published".
#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "client/publication.hpp"
#include "manifest/builder.hpp"
#include "memory/cuda/cuda_device.hpp"

namespace {

using wc::Result;
using wc::memory::Device;
using wc::memory::Handle;
using wc::memory::Segment;
using wc::memory::View;

constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::cerr << result.error().message << '\n';
  std::exit(1);
}

/// Honest memory, and another descriptor in its place.
class LyingSegment final : public Segment {
 public:
  LyingSegment(std::unique_ptr<Segment> real, std::unique_ptr<Segment> shown, wc::Fd nothing)
      : real_(std::move(real)), shown_(std::move(shown)), nothing_(std::move(nothing)) {}
  [[nodiscard]] std::uint64_t bytes() const override { return real_->bytes(); }
  [[nodiscard]] Result<Handle> export_handle() override {
    if (nothing_) return Handle(std::move(nothing_));
    return (shown_ ? *shown_ : *real_).export_handle();
  }
  [[nodiscard]] Segment& real() { return *real_; }

 private:
  std::unique_ptr<Segment> real_;
  std::unique_ptr<Segment> shown_;
  wc::Fd nothing_;
};

class LyingDevice final : public Device {
 public:
  LyingDevice(std::unique_ptr<Device> real, std::unique_ptr<Device> other, std::string how)
      : real_(std::move(real)), other_(std::move(other)), how_(std::move(how)) {}

  [[nodiscard]] const wc::memory::DeviceInfo& info() const override { return real_->info(); }
  [[nodiscard]] Result<std::uint64_t> free_bytes() override { return real_->free_bytes(); }
  [[nodiscard]] Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    std::unique_ptr<Segment> shown;
    wc::Fd nothing;
    if (how_ == "smaller") shown = TRY(real_->create(bytes / 2));
    if (how_ == "other") shown = TRY(other_->create(bytes));
    if (how_ == "no-memory") nothing = wc::Fd(::memfd_create("no-memory", MFD_CLOEXEC));
    auto real = TRY(real_->create(bytes));
    return std::make_unique<LyingSegment>(std::move(real), std::move(shown), std::move(nothing));
  }
  [[nodiscard]] Result<std::unique_ptr<View>> map_at(Segment& segment,
                                                     std::uint64_t address) override {
    return real_->map_at(dynamic_cast<LyingSegment&>(segment).real(), address);
  }
  [[nodiscard]] Result<std::unique_ptr<View>> import(
      Handle handle, const wc::memory::ImportOptions& options) override {
    return real_->import(std::move(handle), options);
  }
  [[nodiscard]] Result<std::unique_ptr<wc::memory::Writer>> writer(
      std::span<View* const> views, std::uint64_t block_bytes) override {
    return real_->writer(views, block_bytes);
  }

 private:
  std::unique_ptr<Device> real_;
  std::unique_ptr<Device> other_;
  std::string how_;
};

std::shared_ptr<Device> open_device(const std::string& how, const std::string& which) {
  auto driver =
      std::make_shared<const wc::memory::cuda::Driver>(must(wc::memory::cuda::open_driver()));
  auto real = must(wc::memory::cuda::open_cuda_device(driver, which));
  std::unique_ptr<Device> other;
  if (how == "other") {
    const std::string second = real->info().ordinal == 0 ? "cuda:1" : "cuda:0";
    other = must(wc::memory::cuda::open_cuda_device(driver, second));
  }
  return std::make_shared<LyingDevice>(std::move(real), std::move(other), how);
}

std::vector<std::byte> manifest_of(const std::string& source) {
  wc::manifest::Builder builder;
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(kBytes)};
  wc::manifest::Fingerprint fingerprint;
  fingerprint.source.source_id = source;
  (void)must(builder.add_segment({.bytes = kBytes, .used_bytes = kBytes}));
  (void)must(builder.add_tensor(
      {.name = "a", .dtype = wc::Dtype::u8, .shape = shape, .segment = 0, .offset = 0}));
  if (!builder.set_fingerprint(fingerprint)) std::exit(1);
  return must(builder.finish());
}

int publish(const std::string& how, const std::string& name, const std::string& which) {
  const auto connection = must(wc::client::Connection::connect({}));
  wc::manifest::Fingerprint fingerprint;
  fingerprint.source.source_id = name;
  wc::client::BeginOptions begin;
  begin.name = name;
  begin.device = open_device(how, which);
  begin.fingerprint = must(wc::manifest::digest_of(fingerprint));
  auto begun = must(wc::client::begin(connection, begin));
  auto* const granted = std::get_if<std::unique_ptr<wc::client::Publication>>(&begun);
  if (granted == nullptr) {
    std::cout << "resident" << std::endl;
    return 0;
  }
  auto& publication = **granted;
  const std::array<std::uint64_t, 1> sizes = {kBytes};
  if (const auto reserved = publication.reserve(sizes); !reserved) {
    std::cerr << reserved.error().message << '\n';
    return 1;
  }
  (void)must(publication.publish(manifest_of(name), {.fingerprint = begin.fingerprint}));
  std::cout << "published" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: lying_publisher smaller|other|no-memory|honest NAME DEVICE\n";
    return 2;
  }
  return publish(argv[1], argv[2], argv[3]);
}
