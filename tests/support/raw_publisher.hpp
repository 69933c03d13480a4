// The steps of a publication in host memory, one call each, over a RawClient: so that a test can
// stop, or die, between any two.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/raw_client.hpp"
#include "tests/support/sample_manifest.hpp"

namespace wc::support {

struct PublishedSample {
  std::string name = "sample";
  std::string device = "cpu";
  SampleOptions content = {"sample", {std::uint64_t{1} << 20}, 1};
  bool replace = false;
  bool wait = false;
};

class RawPublisher {
 public:
  RawPublisher(RawClient& client, PublishedSample sample)
      : client_(client), sample_(std::move(sample)), manifest_(sample_manifest(sample_.content)) {}

  [[nodiscard]] fb::BeginT begin_message() const {
    fb::BeginT begin;
    begin.name = sample_.name;
    begin.form = "raw";
    begin.device = sample_.device;
    begin.world = 1;
    begin.aliases = {"receipt:" + sample_.content.source};
    begin.replace = sample_.replace;
    begin.wait = sample_.wait;
    begin.source = "/checkpoints/" + sample_.content.source;
    for (const std::uint64_t bytes : sample_.content.segments) begin.total_bytes += bytes;
    return begin;
  }

  Result<> begin() {
    const auto granted = TRY(client_.call<fb::GrantedT>(begin_message()));
    load_ = granted.load;
    return {};
  }
  void granted(std::uint64_t load) { load_ = load; }

  Result<> reserve() {
    fb::ReserveT reserve;
    reserve.load = load_;
    reserve.segments = sample_.content.segments;
    reserve.manifest_bytes = manifest_.bytes.size();
    const auto reserved = TRY(client_.call<fb::ReservedT>(reserve, &files_));
    EXPECT_EQ(reserved.load, load_);
    if (files_.size() != sample_.content.segments.size() + 1) {
      return fail(Code::internal, "{} descriptors came", files_.size());
    }
    return {};
  }

  /// Each segment begins with the name of its source.
  Result<> fill() {
    for (std::size_t at = 0; at < sample_.content.segments.size(); ++at) {
      TRY(write(files_[at], std::as_bytes(std::span(sample_.content.source))));
    }
    TRY(write(files_.back(), manifest_.bytes));
    return {};
  }

  [[nodiscard]] fb::PublishT publish_message() const {
    fb::PublishT publish;
    publish.load = load_;
    publish.fingerprint = manifest_.fingerprint;
    return publish;
  }

  Result<fb::PublishedT> publish() { return client_.call<fb::PublishedT>(publish_message()); }

  /// Everything.
  Result<fb::PublishedT> run() {
    TRY(begin());
    TRY(reserve());
    TRY(fill());
    auto published = TRY(publish());
    files_.clear();
    return published;
  }

  [[nodiscard]] std::uint64_t load() const { return load_; }
  [[nodiscard]] const SampleManifest& manifest() const { return manifest_; }
  [[nodiscard]] std::vector<Fd>& files() { return files_; }

 private:
  static Result<> write(FdView file, std::span<const std::byte> bytes) {
    if (::pwrite(file.get(), bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
      return fail_errno("pwrite");
    }
    return {};
  }

  RawClient& client_;
  PublishedSample sample_;
  SampleManifest manifest_;
  std::uint64_t load_ = 0;
  std::vector<Fd> files_;
};

inline std::unique_ptr<fb::SelectorT> select(const std::string& name,
                                             std::uint64_t generation = 0) {
  auto selector = std::make_unique<fb::SelectorT>();
  selector->name = name;
  selector->generation = generation;
  return selector;
}

inline Result<fb::AttachedT> attach(RawClient& client, const std::string& name,
                                    std::vector<Fd>* descriptors = nullptr,
                                    std::uint64_t generation = 0) {
  fb::AttachT attach;
  attach.selector = select(name, generation);
  return client.call<fb::AttachedT>(attach, descriptors);
}

inline Result<fb::DoneT> detach(RawClient& client, std::uint64_t lease) {
  fb::DetachT detach;
  detach.lease = lease;
  return client.call<fb::DoneT>(detach);
}

}  // namespace wc::support
