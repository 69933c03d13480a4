#include "client/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_daemon_test.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using namespace wire::fb;
using testing::HasSubstr;

SelectorT named(const std::string& name) {
  SelectorT selector;
  selector.name = name;
  return selector;
}

EntryT entry(const std::string& name) {
  EntryT body;
  body.entry = std::make_unique<EntryInfoT>();
  body.entry->name = name;
  return body;
}

TEST(OperationsTest, ListsComeWholeWhateverTheNumberOfPages) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.greet();
    for (std::uint64_t page = 0; page < 3; ++page) {
      std::uint64_t request = 0;
      const auto list = peer.expect<ListT>(request);
      EXPECT_EQ(list.after, page * 10);
      EXPECT_EQ(list.selector->name, "x");
      EntriesT entries;
      for (int n = 0; n < 2; ++n) entries.entries.push_back(std::make_unique<EntryInfoT>());
      entries.next = page == 2 ? 0 : (page + 1) * 10;
      peer.send(request, entries);
    }
    std::uint64_t request = 0;
    peer.expect<LeasesT>(request);
    LeaseListT leases;
    leases.leases.push_back(std::make_unique<LeaseInfoT>());
    peer.send(request, leases);
  });
  const auto connection = daemon.connect();
  const auto entries = list_entries(*connection, named("x"));
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->size(), 6U);
  EXPECT_EQ(list_leases(*connection, {})->size(), 1U);
}

TEST(OperationsTest, PageThatLeadsBackIsCorrupt) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.greet();
    for (int page = 0; page < 2; ++page) {
      std::uint64_t request = 0;
      peer.expect<ListT>(request);
      EntriesT entries;
      entries.next = 5;
      peer.send(request, entries);
    }
  });
  const auto entries = list_entries(*daemon.connect(), {});
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, Code::corrupt);
  EXPECT_THAT(entries.error().message, HasSubstr("page 5 of a list leads back to 5"));
}

TEST(OperationsTest, EachIsOneRequestWithItsFields) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.greet();
    std::uint64_t request = 0;
    peer.expect<StatusT>(request);
    StatusReportT report;
    report.uptime_ns = 5;
    peer.send(request, report);
    EXPECT_EQ(peer.expect<LookupT>(request).selector->name, "a");
    peer.send(request, entry("a"));
    EXPECT_EQ(peer.expect<WaitT>(request).timeout_ms, 1500U);
    peer.send(request, entry("a"));
    EXPECT_EQ(peer.expect<WaitT>(request).timeout_ms, 0U);
    peer.send(request, entry("a"));
    EXPECT_TRUE(peer.expect<EvictT>(request).force);
    EvictedT evicted;
    evicted.bytes = 9;
    peer.send(request, evicted);
    EXPECT_TRUE(peer.expect<PinT>(request).pinned);
    peer.send(request, entry("a"));
    const auto drain = peer.expect<DrainT>(request);
    EXPECT_EQ(drain.timeout_ms, 1U);
    EXPECT_FALSE(drain.undo);
    peer.send(request, entry("a"));
    EXPECT_TRUE(peer.expect<DrainT>(request).undo);
    peer.send(request, entry("a"));
    EXPECT_TRUE(peer.expect<StopT>(request).drop);
    StoppingT stopping;
    stopping.dropped_bytes = 7;
    peer.send(request, stopping);
    peer.expect<LookupT>(request);
    peer.send(request, EntryT{});
  });
  const auto connection = daemon.connect();
  EXPECT_EQ(status(*connection)->uptime_ns, 5U);
  EXPECT_EQ(look_up(*connection, named("a"))->name, "a");
  EXPECT_TRUE(wait_for_entry(*connection, named("a"), {.limit = 1500ms}));
  EXPECT_TRUE(wait_for_entry(*connection, named("a"), {}));
  EXPECT_EQ(evict(*connection, named("a"), true)->bytes, 9U);
  EXPECT_TRUE(pin(*connection, named("a"), true));
  EXPECT_TRUE(drain(*connection, named("a"), {.limit = 1ns}));
  EXPECT_TRUE(end_drain(*connection, named("a")));
  EXPECT_EQ(stop(*connection, true)->dropped_bytes, 7U);
  EXPECT_EQ(look_up(*connection, named("a")).error().code, Code::corrupt);
}

TEST(OperationsTest, DaemonsErrorIsTheCallersWithEveryWord) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.greet();
    std::uint64_t request = 0;
    peer.expect<EvictT>(request);
    peer.send(request, wire::to_failure({Code::busy, "\"a\" is pinned (use force)", "X"}));
  });
  const auto evicted = evict(*daemon.connect(), named("a"), false);
  ASSERT_FALSE(evicted);
  EXPECT_EQ(evicted.error().code, Code::busy);
  EXPECT_EQ(evicted.error().message, "\"a\" is pinned (use force)");
  EXPECT_EQ(evicted.error().origin, "X");
}

}  // namespace
}  // namespace wc::client
