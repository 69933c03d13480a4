// What is saved is read back, each field; what is damaged, or of a later version, is refused.
#include "daemon/saved.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "saved_generated.h"

namespace wc::daemon {
namespace {

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// No two fields of one type are alike.
catalog::Snapshot example_state() {
  catalog::Snapshot state;
  state.switches = 3;
  state.floor = 4;
  state.devices = {{"cpu", "given", 5, 6}, {"GPU-1", "", 0, 7}};
  state.counters = {{"a", "raw", 8}, {"b", "{}", 9}};
  catalog::SavedEntry entry;
  entry.id = catalog::EntryId{10};
  entry.draining = true;
  entry.pinned = true;
  entry.proven = true;
  entry.address = 27;
  entry.failure = "x";
  entry.transport = 1;
  entry.device = 1;
  entry.segments = 2;
  entry.rank = 11;
  entry.world = 12;
  entry.tensors = 13;
  entry.publisher_uid = 14;
  entry.bytes = 15;
  entry.total_bytes = 16;
  entry.since_unix_ns = 17;
  entry.used_unix_ns = 18;
  entry.used_ns = 19;
  entry.guarded_ns = 20;
  entry.keep_alive_ns = INT64_MAX;
  entry.form = "raw";
  entry.fingerprint = "f";
  entry.structure = "s";
  entry.source_digest = "d";
  entry.source = "/m";
  entry.aliases = {"receipt:1", "receipt:2"};
  state.entries = {entry, {}};
  state.sets = {
      {21, "a", "raw", {catalog::EntryId{10}, catalog::EntryId::none}, 22, 23, 1},
      {24, "b", "{}", {catalog::EntryId{10}}, 25, 26, 2},
  };
  return state;
}

StoredEntry example_memory() {
  StoredEntry entry;
  entry.transport = memory::Transport::host_fd;
  entry.owner = catalog::SessionId{7};
  entry.device = "cpu";
  entry.fingerprint = "f";
  entry.manifest_bytes = 100;
  entry.manifest = Fd(::memfd_create("manifest", MFD_CLOEXEC));
  StoredSegment segment{4096, 8192, {}};
  segment.handle = Fd(::memfd_create("segment", MFD_CLOEXEC));
  entry.segments.push_back(std::move(segment));
  return entry;
}

std::vector<Fd> two_files() {
  std::vector<Fd> files;
  for (int at = 0; at < 2; ++at) files.emplace_back(::memfd_create("file", MFD_CLOEXEC));
  return files;
}

TEST(SavedTest, AStateComesBackWithEachField) {
  const catalog::Snapshot state = example_state();
  const std::string bytes = save_state(state);
  const auto read = read_state(bytes_in(bytes));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, state);
}

TEST(SavedTest, WhatIsCutShortOrNoStateIsCorrupt) {
  const std::string whole = save_state(example_state());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 4) {
    const std::string part = whole.substr(0, bytes);
    const auto read = read_state(bytes_in(part));
    if (read) {
      EXPECT_NE(*read, example_state()) << bytes;
    } else {
      EXPECT_EQ(read.error().code, Code::corrupt) << bytes;
    }
  }
  EXPECT_EQ(read_state(bytes_in(std::string(1'000, 'x'))).error().code, Code::corrupt);
  EXPECT_EQ(read_state(bytes_in(save_connection({}))).error().code, Code::corrupt);
}

TEST(SavedTest, AStateOfALaterVersionSaysSo) {
  flatbuffers::FlatBufferBuilder builder;
  saved::StateT later;
  later.version = kStateVersion + 1;
  saved::FinishStateBuffer(builder, saved::State::Pack(builder, &later));
  const auto read = read_state(std::as_bytes(builder.GetBufferSpan()));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::version);
}

TEST(SavedTest, MemoryComesBackWithItsDescriptors) {
  const StoredEntry entry = example_memory();
  const auto read = read_memory(bytes_in(save_memory(entry)), two_files());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->transport, entry.transport);
  EXPECT_EQ(read->owner, entry.owner);
  EXPECT_EQ(read->device, entry.device);
  EXPECT_EQ(read->fingerprint, entry.fingerprint);
  EXPECT_EQ(read->manifest_bytes, entry.manifest_bytes);
  EXPECT_FALSE(read->loading);
  ASSERT_EQ(read->segments.size(), 1U);
  EXPECT_EQ(read->segments[0].bytes, 4096U);
  EXPECT_EQ(read->segments[0].address, 8192U);
  EXPECT_EQ(read->descriptors().size(), 2U);
}

TEST(SavedTest, ForeignMemoryComesBackAsBytes) {
  StoredEntry entry = example_memory();
  entry.transport = memory::Transport::torch_ipc;
  memory::IpcHandle handle;
  handle.handle.assign(64, std::byte{1});
  handle.offset_bytes = 2;
  handle.event.assign(64, std::byte{3});
  handle.counter = "/torch_1";
  handle.counter_offset = 4;
  entry.segments[0].handle = handle;
  std::vector<Fd> manifest;
  manifest.emplace_back(::memfd_create("manifest", MFD_CLOEXEC));
  const auto read = read_memory(bytes_in(save_memory(entry)), std::move(manifest));
  ASSERT_TRUE(read) << read.error().message;
  const auto& again = std::get<memory::IpcHandle>(*read->segments.at(0).handle);
  EXPECT_EQ(again.handle, handle.handle);
  EXPECT_EQ(again.offset_bytes, 2U);
  EXPECT_EQ(again.event, handle.event);
  EXPECT_EQ(again.counter, "/torch_1");
  EXPECT_EQ(again.counter_offset, 4U);
}

TEST(SavedTest, MemoryWithOtherDescriptorsThanItSaysIsCorrupt) {
  const std::string bytes = save_memory(example_memory());
  EXPECT_EQ(read_memory(bytes_in(bytes), {}).error().code, Code::corrupt);
  std::vector<Fd> more = two_files();
  more.emplace_back(::memfd_create("more", MFD_CLOEXEC));
  EXPECT_EQ(read_memory(bytes_in(bytes), std::move(more)).error().code, Code::corrupt);
}

TEST(SavedTest, ConnectionsAndLeasesComeBack) {
  const auto connection = read_connection(bytes_in(save_connection({"l", "c", "k", 5})));
  ASSERT_TRUE(connection);
  EXPECT_EQ(connection->label, "l");
  EXPECT_EQ(connection->command, "c");
  EXPECT_EQ(connection->container, "k");
  EXPECT_EQ(connection->capabilities, 5U);
  const auto lease = read_lease(bytes_in(save_lease({{catalog::LeaseId{1}, 2, 3, 4}, 5})));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->lease.set, 2U);
  EXPECT_EQ(lease->lease.rank, 3U);
  EXPECT_EQ(lease->lease.since_unix_ns, 4);
  EXPECT_EQ(lease->request, 5U);
}

}  // namespace
}  // namespace wc::daemon
