#include "client/attachment.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/mini_daemon_test.hpp"
#include "manifest/builder.hpp"
#include "memory/host/host_device.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint64_t kSegmentBytes = 8192;

manifest::Fingerprint fingerprint() {
  manifest::Fingerprint value;
  value.source.source_id = "made for a test";
  return value;
}

// Two segments of the bytes 1 and 2, a tensor in each.
std::vector<std::byte> small_manifest(std::uint64_t second_bytes = kSegmentBytes) {
  manifest::Builder builder;
  const std::array<std::int64_t, 1> shape = {1024};
  EXPECT_TRUE(builder.add_segment({.bytes = kSegmentBytes, .used_bytes = kSegmentBytes}));
  EXPECT_TRUE(builder.add_segment({.bytes = second_bytes, .used_bytes = second_bytes}));
  EXPECT_TRUE(builder.add_tensor({.name = "a", .shape = shape, .segment = 0, .offset = 512}));
  EXPECT_TRUE(builder.add_tensor({.name = "b", .shape = shape, .segment = 1, .offset = 1024}));
  EXPECT_TRUE(builder.set_fingerprint(fingerprint()));
  return *builder.finish();
}

std::vector<std::vector<std::byte>> small_segments() {
  return {std::vector(kSegmentBytes, std::byte{1}), std::vector(kSegmentBytes, std::byte{2})};
}

std::size_t mappings_named(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(name) != std::string::npos) ++count;
  return count;
}

class AttachmentTest : public testing::Test {
 protected:
  void SetUp() override {
    daemon_.add("small", small_manifest(), small_segments());
    connection_ = fake_.connect();
    options_.device = always(*memory::open_host_device());
  }
  Result<std::unique_ptr<Attachment>> attach_to(const std::string& name) {
    wire::fb::SelectorT selector;
    selector.name = name;
    return attach(connection_, selector, options_);
  }
  void expect_refused(Code code, const std::string& text) {
    const auto attachment = attach_to("small");
    ASSERT_FALSE(attachment.has_value());
    EXPECT_EQ(name_of(attachment.error().code), name_of(code)) << attachment.error().message;
    EXPECT_THAT(attachment.error().message, HasSubstr(text));
    EXPECT_EQ(mappings_named("memfd:segment") + mappings_named("memfd:manifest"), 0U);
    for (int n = 0; n < 2000 && leases() > 0; ++n) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(leases(), 0) << "a lease is left";
  }
  wire::fb::DetachT last_detach() {
    const std::lock_guard lock(daemon_.mutex());
    return daemon_.last_detach;
  }
  int leases() {
    const std::lock_guard lock(daemon_.mutex());
    return daemon_.leases;
  }

  MiniDaemon daemon_;
  FakeDaemon fake_{daemon_.script()};
  std::shared_ptr<Connection> connection_;
  AttachOptions options_;
};

TEST_F(AttachmentTest, TensorsAreReadInPlace) {
  const auto attachment = attach_to("small");
  ASSERT_TRUE(attachment) << attachment.error().message;
  const auto& manifest = (*attachment)->manifest();
  ASSERT_EQ(manifest.tensor_count(), 2U);
  EXPECT_EQ((*attachment)->segment_count(), 2U);
  EXPECT_EQ((*attachment)->segment_bytes(1), kSegmentBytes);
  EXPECT_EQ((*attachment)->entry().name, "small");
  EXPECT_EQ((*attachment)->ticket().size(), 16U);
  const auto second = manifest.tensor(*manifest.find("b"));
  const auto address = (*attachment)->address_of(second);
  EXPECT_EQ(address, (*attachment)->segment_address(1) + 1024);
  const auto* bytes = reinterpret_cast<const std::byte*>(address);
  EXPECT_EQ(bytes[0], std::byte{2});
  EXPECT_EQ(bytes[second.bytes - 1], std::byte{2});
}

TEST_F(AttachmentTest, DetachUnmapsThenEndsTheLease) {
  const auto attachment = attach_to("small");
  ASSERT_TRUE(attachment);
  EXPECT_EQ(leases(), 1);
  EXPECT_EQ(mappings_named("memfd:segment"), 2U);
  EXPECT_TRUE((*attachment)->detach());
  EXPECT_EQ(leases(), 0);
  EXPECT_EQ(mappings_named("memfd:segment") + mappings_named("memfd:manifest"), 0U);
  EXPECT_TRUE((*attachment)->detach());  // once more is nothing
}

TEST_F(AttachmentTest, DestructionEndsTheLeaseAndKeepsTheConnectionUntilThen) {
  {
    const auto attachment = attach_to("small");
    ASSERT_TRUE(attachment);
    connection_.reset();
    EXPECT_EQ(leases(), 1);
  }
  for (int n = 0; n < 2000 && leases() > 0; ++n) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(leases(), 0);
}

TEST_F(AttachmentTest, MemoryOutlivesTheDaemon) {
  auto daemon = std::make_unique<MiniDaemon>();
  daemon->add("small", small_manifest(), small_segments());
  auto fake = std::make_unique<FakeDaemon>([&](FakePeer& peer) {
    peer.greet();
    wire::fb::AttachedT attached;
    std::uint64_t request = 0;
    peer.expect<wire::fb::AttachT>(request);
    const Fd manifest = *memory::sealed_copy("manifest", small_manifest());
    const Fd one = *memory::sealed_copy("segment", small_segments()[0]);
    const Fd two = *memory::sealed_copy("segment", small_segments()[1]);
    attached.entry = std::make_unique<wire::fb::EntryInfoT>();
    attached.entry->fingerprint = *manifest::digest_of(fingerprint());
    attached.manifest_bytes = small_manifest().size();
    for (int n = 0; n < 2; ++n) {
      attached.segments.push_back(std::make_unique<wire::fb::SegmentInfoT>());
      attached.segments.back()->bytes = kSegmentBytes;
      attached.segments.back()->handle.Set(wire::fb::DescriptorHandleT{});
    }
    peer.send(request, attached, {manifest, one, two});
  });
  connection_ = fake->connect();
  const auto attachment = attach_to("small");
  ASSERT_TRUE(attachment) << attachment.error().message;
  fake.reset();
  EXPECT_EQ(*reinterpret_cast<const std::byte*>((*attachment)->segment_address(1)), std::byte{2});
  EXPECT_TRUE((*attachment)->detach()) << "a lease that ended with its daemon is no error";
}

TEST_F(AttachmentTest, PrivateCopyMayBeWrittenAndDisturbsNobody) {
  options_.access = memory::Access::private_copy;
  const auto writer = attach_to("small");
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_EQ((*writer)->access(), memory::Access::private_copy);
  std::memset(reinterpret_cast<void*>((*writer)->segment_address(0)), 9, kSegmentBytes);
  options_.access = memory::Access::shared_read;
  const auto reader = attach_to("small");
  ASSERT_TRUE(reader);
  EXPECT_EQ(*reinterpret_cast<const std::byte*>((*reader)->segment_address(0)), std::byte{1});
}

TEST_F(AttachmentTest, WrongCallIsRefusedBeforeAnythingIsSent) {
  options_.access = memory::Access::write;
  expect_refused(Code::invalid_argument, "is for reading");
  options_ = AttachOptions();
  expect_refused(Code::invalid_argument, "needs a device");
}

TEST_F(AttachmentTest, MissingEntryIsNotFoundAndAWaitTellsOfProgress) {
  const auto missing = attach_to("later");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  std::uint64_t done = 0;
  options_.wait = 5s;
  options_.on_progress = [&](const wire::fb::EntryInfoT& entry, std::uint64_t rate) {
    done = entry.done_bytes + rate;
    daemon_.add("later", small_manifest(), small_segments());
  };
  EXPECT_EQ(attach_to("later").error().code, Code::timed_out);
  EXPECT_EQ(done, 14U);
  const auto there = attach_to("later");
  EXPECT_TRUE(there) << there.error().message;
}

TEST_F(AttachmentTest, OtherWeightsThanExpectedAreAMismatchThatNamesTheField) {
  options_.expect = R"({"source": {"source_id": "made for a test"}, "form": "raw"})";
  EXPECT_TRUE(attach_to("small"));
  options_.expect = R"({"source": {"source_id": "another"}})";
  expect_refused(Code::mismatch, "source.source_id is \"made for a test\", expected \"another\"");
}

TEST_F(AttachmentTest, UnsealedSegmentIsCorrupt) {
  const Fd open = *memory::reserve_host(kSegmentBytes);
  daemon_.tamper_with_attached([&](auto&, auto& descriptors) { descriptors[2] = open; });
  expect_refused(Code::corrupt, "cannot attach \"small\": import segment 1 (8.0 KiB): memfd has");
}

TEST_F(AttachmentTest, WhatIsNoMemfdIsCorrupt) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  daemon_.tamper_with_attached([&](auto&, auto& descriptors) { descriptors[0] = null; });
  expect_refused(Code::corrupt, "manifest: not a memfd");
}

TEST_F(AttachmentTest, TheDaemonIsToldWhyAReaderCouldNotMapAndWhenItCould) {
  {
    ASSERT_TRUE(attach_to("small"));
  }
  for (int n = 0; n < 2000 && leases() > 0; ++n) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(last_detach().code, 0);
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  daemon_.tamper_with_attached([&](auto&, auto& descriptors) { descriptors[2] = null; });
  expect_refused(Code::corrupt, "import segment 1");
  EXPECT_EQ(last_detach().code, static_cast<int>(Code::corrupt));
  EXPECT_THAT(last_detach().message, HasSubstr("import segment 1 (8.0 KiB): not a memfd"));
  daemon_.tamper_with_attached([&](auto&, auto& descriptors) { descriptors[0] = null; });
  expect_refused(Code::corrupt, "manifest: not a memfd");
  EXPECT_EQ(last_detach().code, static_cast<int>(Code::unsupported)) << "no segment's fault";
}

TEST_F(AttachmentTest, WhatAStrangerPublishedIsDeniedUnlessHeIsTrusted) {
  constexpr std::uint32_t kStranger = 54'321;
  daemon_.tamper_with_attached(
      [](auto& attached, auto&) { attached.entry->publisher_uid = kStranger; });
  expect_refused(Code::denied, "published by uid 54321");
  EXPECT_FALSE(connection_->trusts(kStranger));
  auto options = fake_.options();
  options.environment.trust = "1,54321";
  const auto trusting = Connection::connect(options);
  ASSERT_TRUE(trusting);
  EXPECT_TRUE((*trusting)->trusts(kStranger));
}

TEST_F(AttachmentTest, SizesThatDisagreeAreCorrupt) {
  daemon_.tamper_with_attached([](auto& attached, auto&) { attached.segments[1]->bytes = 4096; });
  expect_refused(Code::corrupt, "segment 1 has 8,192 bytes in the manifest, 4,096 in the answer");
  daemon_.tamper_with_attached([](auto& attached, auto&) { attached.manifest_bytes += 1; });
  expect_refused(Code::corrupt, "manifest: memfd has");
  daemon_.tamper_with_attached([](auto& attached, auto&) { attached.manifest_bytes = 0; });
  expect_refused(Code::corrupt, "a manifest of 0 bytes");
}

TEST_F(AttachmentTest, CountsThatDisagreeAreCorrupt) {
  daemon_.tamper_with_attached([](auto&, auto& descriptors) { descriptors.pop_back(); });
  expect_refused(Code::corrupt, "2 descriptors came where 3 are due");
  daemon_.tamper_with_attached([](auto& attached, auto& descriptors) {
    attached.segments.pop_back();
    descriptors.pop_back();
  });
  expect_refused(Code::corrupt, "the manifest has 2 segments, the daemon handed over 1");
  daemon_.tamper_with_attached([](auto& attached, auto& descriptors) {
    attached.segments[1]->handle.Reset();
    descriptors.pop_back();
  });
  expect_refused(Code::corrupt, "without a handle");
  daemon_.tamper_with_attached([](auto& attached, auto&) { attached.entry.reset(); });
  expect_refused(Code::corrupt, "cannot attach the entry");
}

TEST_F(AttachmentTest, ManifestOfOtherContentIsCorrupt) {
  daemon_.tamper_with_attached([](auto& attached, auto&) { attached.entry->fingerprint = "00"; });
  expect_refused(Code::corrupt, "the entry of \"00\"");
}

TEST_F(AttachmentTest, HandleOfAnotherTransportIsRefused) {
  daemon_.tamper_with_attached([](auto& attached, auto& descriptors) {
    attached.segments[1]->handle.Set(wire::fb::IpcHandleT{});
    descriptors.pop_back();
  });
  expect_refused(Code::invalid_argument, "import segment 1");
}

TEST_F(AttachmentTest, DeviceThatIsNotHereIsTheFindersError) {
  options_.device = [](std::string_view device) -> Result<std::shared_ptr<memory::Device>> {
    return fail(Code::unsupported, "this process does not see the device \"{}\"", device);
  };
  expect_refused(Code::unsupported, "does not see the device \"cpu\"");
}

TEST_F(AttachmentTest, ForkedChildReadsOnAndItsEndIsNotTheLeases) {
  auto attachment = attach_to("small");
  ASSERT_TRUE(attachment);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto* bytes = reinterpret_cast<const std::byte*>((*attachment)->segment_address(1));
    const bool right = bytes[100] == std::byte{2} && connection_->forked();
    attachment->reset();
    connection_.reset();
    ::_exit(right ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_EQ(leases(), 1);
  EXPECT_TRUE((*attachment)->detach());
  EXPECT_EQ(leases(), 0);
}

}  // namespace
}  // namespace wc::client
