// A publication in host memory from its beginning to its end.
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/publish_case_test.hpp"
#include "memory/host/seal.hpp"

namespace wc::daemon {
namespace {

class PublishTest : public PublishCase {};

TEST_F(PublishTest, WhatWasPublishedIsAttachedSealedAndWhole) {
  RawClient loader = connect();
  PublishedSample sample;
  sample.content.segments = {kMiB, 2 * kMiB, 4096};
  const auto published = publish(loader, sample);
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->outcome, fb::Outcome::loaded);
  EXPECT_EQ(published->entry->generation, 1U);
  EXPECT_EQ(published->entry->tensors, 3U);
  EXPECT_EQ(published->entry->bytes, 3 * kMiB + 4096);
  loader.disconnect();

  RawClient reader = connect();
  std::vector<Fd> files;
  const auto attached = attach(reader, "sample", &files);
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_EQ(attached->entry->leases, 1U);
  ASSERT_EQ(attached->segments.size(), 3U);
  ASSERT_EQ(files.size(), 4U);
  EXPECT_TRUE(memory::check_sealed(files[0], attached->manifest_bytes));
  for (std::size_t at = 0; at < 3; ++at) {
    EXPECT_EQ(attached->segments[at]->bytes, sample.content.segments[at]);
    const auto whole = memory::check_sealed(files[at + 1], sample.content.segments[at]);
    EXPECT_TRUE(whole) << whole.error().message;
    std::string text(6, '\0');
    EXPECT_EQ(::pread(files[at + 1].get(), text.data(), text.size(), 0), 6);
    EXPECT_EQ(text, "sample");
    EXPECT_EQ(::fcntl(files[at + 1].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  }
  ASSERT_TRUE(detach(reader, attached->lease));
  const auto evicted = evict(reader, "sample");
  ASSERT_TRUE(evicted) << evicted.error().message;
  EXPECT_EQ(evicted->bytes, 3 * kMiB + 4096);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, AttachingAndDetachingLeavesNothingBehind) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  const std::size_t before = daemon().descriptors();
  for (int count = 0; count < 500; ++count) {
    std::vector<Fd> files;
    const auto attached = attach(client, "sample", &files);
    ASSERT_TRUE(attached) << attached.error().message;
    ASSERT_TRUE(detach(client, attached->lease));
  }
  EXPECT_EQ(daemon().descriptors(), before);
  ASSERT_TRUE(evict(client, "sample"));
}

TEST_F(PublishTest, MemoryAndManifestMayBeAskedForInParts) {
  RawClient client = connect();
  PublishedSample sample;
  sample.content.segments = {kMiB, 2 * kMiB};
  RawPublisher publisher(client, sample);
  ASSERT_TRUE(publisher.begin());
  for (const std::uint64_t bytes : sample.content.segments) {
    fb::ReserveT reserve;
    reserve.load = publisher.load();
    reserve.segments = {bytes};
    std::vector<Fd> files;
    ASSERT_TRUE(client.call<fb::ReservedT>(reserve, &files));
    ASSERT_EQ(files.size(), 1U);
    publisher.files().push_back(std::move(files[0]));
  }
  fb::ReserveT reserve;
  reserve.load = publisher.load();
  reserve.manifest_bytes = publisher.manifest().bytes.size();
  std::vector<Fd> files;
  const auto reserved = client.call<fb::ReservedT>(reserve, &files);
  ASSERT_TRUE(reserved) << reserved.error().message;
  EXPECT_EQ(reserved->bytes, 3 * kMiB);
  ASSERT_EQ(files.size(), 1U);
  publisher.files().push_back(std::move(files[0]));
  ASSERT_TRUE(publisher.fill());
  const auto published = publisher.publish();
  EXPECT_TRUE(published) << published.error().message;
  ASSERT_TRUE(evict(client, "sample"));
}

TEST_F(PublishTest, TheSameContentIsResidentUnderEachOfItsNamesOnce) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  PublishedSample renamed;
  renamed.name = "renamed";
  const auto resident = client.call<fb::ResidentT>(RawPublisher(client, renamed).begin_message());
  ASSERT_TRUE(resident) << resident.error().message;
  EXPECT_EQ(resident->entry->name, "renamed");
  EXPECT_EQ(cpu(client).bytes, kMiB);
  ASSERT_TRUE(evict(client, "sample"));
  EXPECT_TRUE(attach(client, "renamed"));
  EXPECT_FALSE(attach(client, "sample"));
  ASSERT_TRUE(evict(client, "renamed"));
}

TEST_F(PublishTest, ALateCopyOfWhatIsResidentIsGivenBack) {
  RawClient first = connect();
  RawClient second = connect();
  RawPublisher one(first, {});
  ASSERT_TRUE(one.begin());
  PublishedSample unknown;
  unknown.name = "unknown";
  RawPublisher two(second, unknown);
  auto begin = two.begin_message();
  begin.aliases = {"receipt:other"};  // nothing tells that it is the same
  const auto granted = second.call<fb::GrantedT>(begin);
  ASSERT_TRUE(granted);
  two.granted(granted->load);
  for (RawPublisher* each : {&one, &two}) {
    ASSERT_TRUE(each->reserve());
    ASSERT_TRUE(each->fill());
  }
  ASSERT_TRUE(one.publish());
  const auto published = two.publish();
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->outcome, fb::Outcome::already_resident);
  EXPECT_EQ(published->entry->name, "unknown");
  EXPECT_TRUE(eventually([&] {
    const auto device = cpu(first);
    return device.bytes == kMiB && device.loading_bytes + device.releasing_bytes == 0;
  }));
  EXPECT_TRUE(attach(second, "unknown"));
  ASSERT_TRUE(evict(first, "sample"));
  ASSERT_TRUE(evict(first, "unknown", true));
}

TEST_F(PublishTest, AnOldGenerationStaysWithItsReadersAndGoesWithTheLast) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client, sample_of("old")));
  RawClient reader = connect();
  std::vector<Fd> files;
  ASSERT_TRUE(attach(reader, "sample", &files));
  PublishedSample next = sample_of("new");
  EXPECT_EQ(publish(client, next).error().code, Code::already_exists);
  next.replace = true;
  const auto published = publish(client, next);
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->entry->generation, 2U);
  EXPECT_EQ(cpu(client).bytes, 2 * kMiB);
  EXPECT_TRUE(attach(client, "sample", nullptr, 1));
  std::vector<Fd> fresh;
  ASSERT_TRUE(attach(client, "sample", &fresh));
  std::string text(3, '\0');
  EXPECT_EQ(::pread(fresh[1].get(), text.data(), text.size(), 0), 3);
  EXPECT_EQ(text, "new");
  client.disconnect();
  reader.disconnect();
  RawClient last = connect();
  EXPECT_TRUE(eventually([&] { return cpu(last).bytes == kMiB; }));
  EXPECT_FALSE(attach(last, "sample", nullptr, 1));
  ASSERT_TRUE(evict(last, "sample"));
}

}  // namespace
}  // namespace wc::daemon
