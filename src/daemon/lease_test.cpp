// Leases, waiting, and what operators do.
#include <algorithm>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

class LeaseTest : public PublishCase {};

TEST_F(LeaseTest, WhatWaitsIsToldHowFarItIsAndThenGetsIt) {
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

TEST_F(LeaseTest, AWaitEndsAtItsDeadlineOrWhenItIsCancelled) {
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

TEST_F(LeaseTest, AReaderThatDiesEndsItsLease) {
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

TEST_F(LeaseTest, ALeaseThatEndsBeforeItsAnswerIsReadSendsNoStrangeDescriptor) {
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

TEST_F(LeaseTest, PinnedStaysWithoutForce) {
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

TEST_F(LeaseTest, ADrainWaitsForItsReadersAndRefusesNewOnes) {
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

TEST_F(LeaseTest, AllPagesOfAListTogetherHaveEveryEntryOnce) {
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
