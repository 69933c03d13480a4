// A publication in host memory from its beginning to its end, and every way in which it ends early.
#include <algorithm>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/host/seal.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/raw_publisher.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;
using support::attach;
using support::DaemonOptions;
using support::detach;
using support::eventually;
using support::PublishedSample;
using support::RawClient;
using support::RawPublisher;
using support::Reply;
using support::select;
using ::testing::HasSubstr;

namespace fb = wire::fb;

constexpr std::uint64_t kMiB = 1 << 20;

class PublishTest : public support::DaemonTest {
 protected:
  void SetUp() override { start(); }

  RawClient connect() {
    RawClient client(socket());
    EXPECT_TRUE(client.hello());
    return client;
  }

  Result<fb::PublishedT> publish(RawClient& client, const PublishedSample& sample = {}) {
    return RawPublisher(client, sample).run();
  }

  static Result<fb::EvictedT> evict(RawClient& client, const std::string& name,
                                    bool force = false) {
    fb::EvictT evict;
    evict.selector = select(name);
    evict.force = force;
    return client.call<fb::EvictedT>(evict);
  }

  static fb::DeviceStatusT cpu(RawClient& client) {
    const auto status = client.call<fb::StatusReportT>(fb::StatusT());
    if (!status || status->devices.empty()) return {};
    return *status->devices[0];
  }
  bool nothing_left() {
    RawClient client = connect();
    const auto device = cpu(client);
    return device.bytes + device.loading_bytes + device.releasing_bytes == 0;
  }
};

PublishedSample sample_of(const std::string& source) {
  PublishedSample sample;
  sample.content.source = source;
  return sample;
}

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

TEST_F(PublishTest, StepsOutOfOrderAreRefusedAndTheLoadGoesOn) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  EXPECT_EQ(publisher.publish().error().code, Code::invalid_argument);  // nothing reserved
  fb::ReserveT manifest_only;
  manifest_only.load = publisher.load();
  manifest_only.manifest_bytes = 100;
  EXPECT_EQ(client.call<fb::ReservedT>(manifest_only).error().code, Code::invalid_argument);
  fb::ReserveT segments_only;
  segments_only.load = publisher.load();
  segments_only.segments = {kMiB};
  ASSERT_TRUE(client.call<fb::ReservedT>(segments_only));
  EXPECT_EQ(publisher.publish().error().code, Code::invalid_argument);  // no manifest
  fb::SupplyT supply;
  supply.load = publisher.load();
  EXPECT_EQ(client.call<fb::DoneT>(supply).error().code, Code::invalid_argument);
  fb::ReserveT foreign;
  foreign.load = 999;
  foreign.segments = {kMiB};
  EXPECT_EQ(client.call<fb::ReservedT>(foreign).error().code, Code::not_found);
  fb::AbandonT abandon;
  abandon.load = publisher.load();
  abandon.message = "enough";
  EXPECT_TRUE(client.call<fb::DoneT>(abandon));
  EXPECT_EQ(client.call<fb::DoneT>(abandon).error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, AnotherSessionsLoadIsNobodyElsesBusiness) {
  RawClient loader = connect();
  RawPublisher publisher(loader, {});
  ASSERT_TRUE(publisher.begin());
  RawClient other = connect();
  RawPublisher thief(other, {});
  thief.granted(publisher.load());
  EXPECT_EQ(thief.reserve().error().code, Code::not_found);
  EXPECT_EQ(thief.publish().error().code, Code::not_found);
}

TEST_F(PublishTest, AWritableMappingThatIsLeftEndsThePublicationInWords) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  ASSERT_TRUE(publisher.fill());
  auto mapping = Mapping::map(publisher.files()[0], {kMiB, 3, 1, 0});
  ASSERT_TRUE(mapping);
  const auto published = publisher.publish();
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, Code::busy);
  EXPECT_EQ(attach(client, "sample").error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, AManifestThatLiesPublishesNothing) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  ASSERT_TRUE(publisher.fill());
  ASSERT_EQ(::pwrite(publisher.files().back().get(), "no manifest", 11, 0), 11);
  EXPECT_EQ(publisher.publish().error().code, Code::corrupt);
  EXPECT_EQ(attach(client, "sample").error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, MoreThanTheBudgetIsExhaustedBeforeAnythingIsReserved) {
  daemon().end(SIGTERM);
  DaemonOptions options;
  options.serve.budgets = {{"cpu", 2 * kMiB}};
  start(options);
  RawClient client = connect();
  PublishedSample sample;
  sample.content.segments = {3 * kMiB};
  RawPublisher publisher(client, sample);
  ASSERT_TRUE(publisher.begin());
  const auto reserved = publisher.reserve();
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code, Code::exhausted);
  EXPECT_THAT(reserved.error().message, HasSubstr("3.0 MiB"));
  EXPECT_THAT(reserved.error().message, HasSubstr("2.0 MiB"));
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

TEST_F(PublishTest, WhatWaitsIsToldHowFarItIsAndThenGetsIt) {
  RawClient loader = connect();
  RawPublisher publisher(loader, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  RawClient waiting = connect();
  fb::WaitT wait;
  wait.selector = select("sample");
  const std::uint64_t request = waiting.send(wait);
  Reply first = waiting.receive();
  ASSERT_EQ(first.type, fb::Body::Progress);
  EXPECT_EQ(first.request, request);
  EXPECT_EQ(attach(loader, "sample").error().code, Code::busy);
  ::poll(nullptr, 0, 300);
  fb::ReportProgressT report;
  report.load = publisher.load();
  report.done_bytes = kMiB / 2;
  report.total_bytes = kMiB;
  loader.send(report);
  Reply second = waiting.receive();
  ASSERT_EQ(second.type, fb::Body::Progress);
  EXPECT_EQ(second.as<fb::ProgressT>()->entry->done_bytes, kMiB / 2);
  ASSERT_TRUE(publisher.fill());
  ASSERT_TRUE(publisher.publish());
  const Reply answer = waiting.answer(request);
  ASSERT_EQ(answer.type, fb::Body::Entry);
  EXPECT_EQ(answer.as<fb::EntryT>()->entry->generation, 1U);
  ASSERT_TRUE(evict(loader, "sample"));
}

TEST_F(PublishTest, AWaitEndsAtItsDeadlineOrWhenItIsCancelled) {
  RawClient client = connect();
  fb::WaitT wait;
  wait.selector = select("never");
  wait.timeout_ms = 50;
  EXPECT_EQ(client.call<fb::EntryT>(wait).error().code, Code::timed_out);
  wait.timeout_ms = 0;
  const std::uint64_t request = client.send(wait);
  fb::CancelT cancel;
  cancel.request = request;
  const std::uint64_t cancelling = client.send(cancel);
  bool cancelled = false;
  bool done = false;
  for (int count = 0; count < 2; ++count) {
    const Reply reply = client.receive();
    if (reply.request == request) {
      cancelled = reply.as<fb::EntryT>().error().code == Code::cancelled;
    }
    if (reply.request == cancelling) done = reply.type == fb::Body::Done;
  }
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(done);
}

TEST_F(PublishTest, WhoeverWaitsForADeadLoaderLoadsInItsPlace) {
  auto loader = std::make_unique<RawClient>(connect());
  RawPublisher publisher(*loader, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  RawClient heir = connect();
  PublishedSample waiting;
  waiting.wait = true;
  RawPublisher next(heir, waiting);
  const std::uint64_t request = heir.send(next.begin_message());
  ASSERT_EQ(heir.receive().type, fb::Body::Progress);
  loader->disconnect();
  const Reply answer = heir.answer(request);
  ASSERT_EQ(answer.type, fb::Body::Granted);
  next.granted(answer.as<fb::GrantedT>()->load);
  ASSERT_TRUE(next.reserve());
  ASSERT_TRUE(next.fill());
  EXPECT_TRUE(next.publish());
  ASSERT_TRUE(evict(heir, "sample"));
}

TEST_F(PublishTest, ALoaderThatGoesAtAnyStepLeavesNothing) {
  for (int step = 0; step < 5; ++step) {
    RawClient loader = connect();
    RawPublisher publisher(loader, {});
    ASSERT_TRUE(publisher.begin());
    fb::ReserveT reserve;
    reserve.load = publisher.load();
    reserve.segments = {kMiB};
    if (step == 1) loader.send(reserve);  // goes while it is being made
    if (step >= 2) {
      ASSERT_TRUE(publisher.reserve());
    }
    if (step >= 3) {
      ASSERT_TRUE(publisher.fill());
    }
    if (step == 4) loader.send(publisher.publish_message());  // goes while it is being sealed
    loader.disconnect();
    publisher.files().clear();
    RawClient client = connect();
    if (step == 4) {
      // It was over, or it was published before the end was seen: both are in order.
      ASSERT_TRUE(eventually([&] { return cpu(client).loading_bytes == 0; }));
      static_cast<void>(evict(client, "sample"));
    }
    EXPECT_TRUE(eventually([&] { return nothing_left(); })) << step;
    EXPECT_EQ(attach(client, "sample").error().code, Code::not_found) << step;
  }
}

TEST_F(PublishTest, AReaderThatDiesEndsItsLease) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  {
    RawClient reader = connect();
    std::vector<Fd> files;
    ASSERT_TRUE(attach(reader, "sample", &files));
    const auto leases = client.call<fb::LeaseListT>(fb::LeasesT());
    ASSERT_TRUE(leases);
    ASSERT_EQ(leases->leases.size(), 1U);
    EXPECT_EQ(leases->leases[0]->label, "raw");
    EXPECT_EQ(leases->leases[0]->pid, ::getpid());
    EXPECT_EQ(leases->leases[0]->uid, ::getuid());
    EXPECT_EQ(leases->leases[0]->bytes, kMiB);
    const auto evicted = evict(client, "sample");
    ASSERT_TRUE(evicted);
    EXPECT_EQ(evicted->leases, 1U);
    EXPECT_EQ(cpu(client).bytes, kMiB);
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, ALeaseThatEndsBeforeItsAnswerIsReadSendsNoStrangeDescriptor) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  // Answers wait behind each other: the second attach is not sent before the first is read.
  fb::AttachT message;
  message.selector = select("sample");
  const std::uint64_t first = client.send(message);
  const std::uint64_t second = client.send(message);
  RawClient operating = connect();
  ASSERT_TRUE(eventually([&] {
    const auto status = operating.call<fb::StatusReportT>(fb::StatusT());
    return status && status->leases == 2;
  }));
  EXPECT_TRUE(evict(operating, "sample", true));
  EXPECT_EQ(client.answer(first).descriptors.size(), 2U);
  const Reply answer = client.answer(second);
  EXPECT_EQ(answer.type, fb::Body::Attached);  // the lease still holds it
  EXPECT_EQ(answer.descriptors.size(), 2U);
}

TEST_F(PublishTest, PinnedStaysWithoutForce) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  fb::PinT pin;
  pin.selector = select("sample");
  pin.pinned = true;
  const auto pinned = client.call<fb::EntryT>(pin);
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_TRUE(pinned->entry->pinned);
  EXPECT_EQ(evict(client, "sample").error().code, Code::busy);
  EXPECT_TRUE(evict(client, "sample", true));
}

TEST_F(PublishTest, ADrainWaitsForItsReadersAndRefusesNewOnes) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  RawClient reader = connect();
  const auto attached = attach(reader, "sample");
  ASSERT_TRUE(attached);
  fb::DrainT drain;
  drain.selector = select("sample");
  drain.timeout_ms = 50;
  EXPECT_EQ(client.call<fb::EntryT>(drain).error().code, Code::timed_out);
  EXPECT_EQ(attach(client, "sample").error().code, Code::busy);
  drain.timeout_ms = 0;
  const std::uint64_t request = client.send(drain);
  ASSERT_TRUE(detach(reader, attached->lease));
  const Reply answer = client.answer(request);
  ASSERT_EQ(answer.type, fb::Body::Entry);
  EXPECT_EQ(answer.as<fb::EntryT>()->entry->state, fb::State::draining);
  drain.undo = true;
  ASSERT_TRUE(client.call<fb::EntryT>(drain));
  EXPECT_TRUE(attach(client, "sample"));
  ASSERT_TRUE(evict(client, "sample"));
}

TEST_F(PublishTest, AnEvictionWithForceTakesALoadAway) {
  RawClient loader = connect();
  RawPublisher publisher(loader, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  RawClient client = connect();
  EXPECT_EQ(evict(client, "sample").error().code, Code::busy);
  ASSERT_TRUE(evict(client, "sample", true));
  EXPECT_EQ(publisher.publish().error().code, Code::cancelled);
  EXPECT_EQ(publisher.reserve().error().code, Code::cancelled);
  publisher.files().clear();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(PublishTest, AllPagesOfAListTogetherHaveEveryEntryOnce) {
  RawClient client = connect();
  constexpr int kEntries = 300;
  ASSERT_TRUE(publish(client));
  for (int count = 0; count < kEntries; ++count) {
    PublishedSample sample;
    sample.name = format("name-{:03}-{}", count, std::string(200, 'n'));
    ASSERT_TRUE(client.call<fb::ResidentT>(RawPublisher(client, sample).begin_message()));
  }
  std::vector<std::string> names;
  fb::ListT list;
  int pages = 0;
  do {
    const auto page = client.call<fb::EntriesT>(list);
    ASSERT_TRUE(page) << page.error().message;
    for (const auto& entry : page->entries) names.push_back(entry->name);
    list.after = page->next;
    ++pages;
  } while (list.after != 0);
  EXPECT_GT(pages, 2);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::unique(names).size(), 0U);
  EXPECT_EQ(names.size(), kEntries + 1U);
  stays_resident();
}

}  // namespace
}  // namespace wc::daemon
