// The least that a daemon must do for publishing and attaching host memory, as a script for a
// FakeDaemon. What it is told to do wrong, it does.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client/fake_daemon_test.hpp"
#include "manifest/manifest.hpp"
#include "memory/host/reserve.hpp"
#include "memory/host/seal.hpp"
#include "memory/types.hpp"

namespace wc::client {

class MiniDaemon {
 public:
  struct Published {
    wire::fb::EntryInfoT info;
    Fd manifest;
    std::uint64_t manifest_bytes = 0;
    std::vector<Fd> segments;
    std::vector<std::uint64_t> sizes;
  };

  FakeDaemon::Script script() {
    return [this](FakePeer& peer) { serve(peer); };
  }

  /// Makes an entry out of sealed memory, as if somebody had published it.
  void add(const std::string& name, std::span<const std::byte> manifest,
           const std::vector<std::vector<std::byte>>& segments) {
    Published entry;
    entry.info.name = name;
    entry.manifest = *memory::sealed_copy("manifest", manifest);
    entry.manifest_bytes = manifest.size();
    for (const auto& segment : segments) {
      entry.segments.push_back(*memory::sealed_copy("segment", segment));
      entry.sizes.push_back(segment.size());
    }
    finish(entry);
    const std::lock_guard lock(mutex_);
    entries_[name] = std::move(entry);
  }

  /// Changes the next answers to Attach.
  using Tamper = std::function<void(wire::fb::AttachedT&, std::vector<FdView>&)>;
  void tamper_with_attached(Tamper tamper) {
    const std::lock_guard lock(mutex_);
    before_attached_ = std::move(tamper);
  }
  int leases = 0;
  int abandoned = 0;
  int reports = 0;
  std::string last_reason;
  wire::fb::DetachT last_detach;
  std::mutex& mutex() { return mutex_; }

 private:
  struct Load {
    std::string name;
    std::vector<Fd> segments;
    std::vector<std::uint64_t> sizes;
    Fd manifest;
    std::uint64_t manifest_bytes = 0;
  };

  void serve(FakePeer& peer) {
    peer.greet();
    while (const auto message = peer.receive()) {
      const std::lock_guard lock(mutex_);
      answer(peer, *message);
    }
  }

  void answer(FakePeer& peer, const wire::fb::MessageT& message) {
    using namespace wire::fb;
    const auto request = message.request;
    if (const auto* attach = FakePeer::as<AttachT>(message)) return on(peer, request, *attach);
    if (const auto* begin = FakePeer::as<BeginT>(message)) return on(peer, request, *begin);
    if (const auto* reserve = FakePeer::as<ReserveT>(message)) return on(peer, request, *reserve);
    if (const auto* publish = FakePeer::as<PublishT>(message)) return on(peer, request, *publish);
    if (const auto* wait = FakePeer::as<WaitT>(message)) return on(peer, request, *wait);
    if (FakePeer::as<ReportProgressT>(message) != nullptr) {
      ++reports;
    } else if (const auto* detach = FakePeer::as<DetachT>(message)) {
      --leases;
      last_detach = *detach;
      peer.send(request, DoneT{});
    } else if (const auto* abandon = FakePeer::as<AbandonT>(message)) {
      ++abandoned;
      last_reason = abandon->message;
      loads_.erase(abandon->load);
      peer.send(request, DoneT{});
    } else {
      peer.fail(request, Code::unsupported, "not here");
    }
  }

  void on(FakePeer& peer, std::uint64_t request, const wire::fb::AttachT& attach) {
    const auto found = entries_.find(attach.selector->name);
    if (found == entries_.end()) return peer.fail(request, Code::not_found, "no such entry");
    wire::fb::AttachedT attached;
    attached.lease = 900 + static_cast<std::uint64_t>(++leases);
    attached.entry = std::make_unique<wire::fb::EntryInfoT>(found->second.info);
    attached.manifest_bytes = found->second.manifest_bytes;
    std::vector<FdView> descriptors = {found->second.manifest};
    for (std::size_t at = 0; at < found->second.segments.size(); ++at) {
      auto segment = std::make_unique<wire::fb::SegmentInfoT>();
      segment->bytes = found->second.sizes[at];
      segment->handle.Set(wire::fb::DescriptorHandleT{});
      attached.segments.push_back(std::move(segment));
      descriptors.push_back(found->second.segments[at]);
    }
    attached.ticket.assign(16, 7);
    if (before_attached_) before_attached_(attached, descriptors);
    peer.send(request, attached, descriptors);
  }

  // Tells of progress; at the second wait, or at once, the entry is there.
  void on(FakePeer& peer, std::uint64_t request, const wire::fb::WaitT& wait) {
    wire::fb::ProgressT progress;
    progress.entry = std::make_unique<wire::fb::EntryInfoT>();
    progress.entry->done_bytes = 5;
    progress.rate_bytes_per_s = 9;
    peer.send(request, progress);
    const auto found = entries_.find(wait.selector->name);
    if (found == entries_.end()) return peer.fail(request, Code::timed_out, "still not there");
    wire::fb::EntryT entry;
    entry.entry = std::make_unique<wire::fb::EntryInfoT>(found->second.info);
    peer.send(request, entry);
  }

  void on(FakePeer& peer, std::uint64_t request, const wire::fb::BeginT& begin) {
    if (const auto found = entries_.find(begin.name); found != entries_.end()) {
      wire::fb::ResidentT resident;
      resident.entry = std::make_unique<wire::fb::EntryInfoT>(found->second.info);
      return peer.send(request, resident);
    }
    wire::fb::GrantedT granted;
    granted.load = ++last_load_;
    loads_[granted.load].name = begin.name;
    peer.send(request, granted);
  }

  void on(FakePeer& peer, std::uint64_t request, const wire::fb::ReserveT& reserve) {
    auto& load = loads_[reserve.load];
    std::vector<FdView> descriptors;
    for (const auto bytes : reserve.segments) {
      if (bytes > (std::uint64_t{1} << 30))
        return peer.fail(request, Code::exhausted, "too much for this daemon");
      load.segments.push_back(*memory::reserve_host(bytes));
      load.sizes.push_back(bytes);
      descriptors.push_back(load.segments.back());
    }
    if (reserve.manifest_bytes > 0) {
      load.manifest = *memory::reserve_host(reserve.manifest_bytes);
      load.manifest_bytes = reserve.manifest_bytes;
      descriptors.push_back(load.manifest);
    }
    wire::fb::ReservedT reserved;
    reserved.load = reserve.load;
    peer.send(request, reserved, descriptors);
  }

  void on(FakePeer& peer, std::uint64_t request, const wire::fb::PublishT& publish) {
    auto load = std::move(loads_[publish.load]);
    loads_.erase(publish.load);
    Published entry;
    entry.info.name = load.name;
    for (const Fd& segment : load.segments) {
      auto sealed = memory::seal_and_reopen(segment);
      if (!sealed) return peer.send(request, wire::to_failure(sealed.error()));
      entry.segments.push_back(*std::move(sealed));
    }
    auto manifest = memory::seal_and_reopen(load.manifest);
    if (!manifest) return peer.send(request, wire::to_failure(manifest.error()));
    entry.manifest = *std::move(manifest);
    entry.manifest_bytes = load.manifest_bytes;
    entry.sizes = load.sizes;
    if (!finish(entry)) return peer.fail(request, Code::corrupt, "a bad manifest");
    wire::fb::PublishedT published;
    published.entry = std::make_unique<wire::fb::EntryInfoT>(entry.info);
    entries_[load.name] = std::move(entry);
    peer.send(request, published);
  }

  static bool finish(Published& entry) {
    const auto mapped = memory::map_sealed(entry.manifest, manifest::kMaxManifestBytes);
    if (!mapped) return false;
    const auto checked = manifest::Manifest::check(mapped->bytes());
    if (!checked) return false;
    entry.info.fingerprint = checked->fingerprint();
    entry.info.device = "cpu";
    entry.info.transport = static_cast<std::uint8_t>(memory::Transport::host_fd);
    entry.info.generation = 1;
    entry.info.state = wire::fb::State::published;
    entry.info.form = "raw";
    entry.info.world = 1;
    return true;
  }

  std::mutex mutex_;
  Tamper before_attached_;
  std::map<std::string, Published> entries_;
  std::map<std::uint64_t, Load> loads_;
  std::uint64_t last_load_ = 0;
};

}  // namespace wc::client
