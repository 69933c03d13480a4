#include <thread>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class OperateTest : public AbiTest {};

class BudgetTest : public AbiTest {
 protected:
  void SetUp() override {
    support::DaemonOptions options;
    options.serve.budgets = {{"cpu", 1 << 20}};
    start(options);
  }
};

TEST_F(OperateTest, ListShowsWhatIsThere) {
  Connection connection = connect();
  EXPECT_TRUE(connection.list().empty());
  publish_bytes(connection, "a", "one", "original");
  publish_bytes(connection, "b", "two", "other");
  EXPECT_EQ(connection.list().size(), 2U);
  const auto found = connection.list("b");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "b");
  EXPECT_EQ(found[0].state, WC_PUBLISHED);
  EXPECT_EQ(found[0].transport, WC_HOST_FD);
  EXPECT_EQ(found[0].world, 1U);
  EXPECT_GT(found[0].since_unix_ns, 0);
  EXPECT_TRUE(connection.list("c").empty());
}

TEST_F(OperateTest, WaitingWithoutTimeIsALookUp) {
  Connection connection = connect();
  EXPECT_EQ(code_of([&] { connection.wait("a"); }), WC_NOT_FOUND);
  publish_bytes(connection, "a", "one", "original");
  EXPECT_EQ(connection.wait("a").name, "a");
}

TEST_F(OperateTest, LeasesTellWhoHoldsWhat) {
  Connection connection = connect("engine 7");
  publish_bytes(connection, "a", "one", "original");
  publish_bytes(connection, "b", "two", "other");
  const Attachment a = connection.attach("a");
  const Attachment b = connection.attach("b");
  EXPECT_EQ(connection.leases().size(), 2U);
  const auto leases = connection.leases("a");
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].name, "a");
  EXPECT_EQ(leases[0].label, "engine 7");
  EXPECT_EQ(leases[0].pid, ::getpid());
  EXPECT_EQ(leases[0].uid, ::getuid());
  EXPECT_GT(leases[0].bytes, 0U);
}

TEST_F(OperateTest, APinnedEntryIsEvictedByForceOnly) {
  Connection connection = connect();
  publish_bytes(connection, "a", "one", "original");
  connection.pin("a");
  EXPECT_TRUE(connection.list().at(0).pinned);
  EXPECT_EQ(code_of([&] { connection.evict("a"); }), WC_BUSY);
  connection.pin("a", false);
  const auto evicted = connection.evict("a");
  EXPECT_EQ(evicted.entries, 1U);
  EXPECT_GT(evicted.bytes, 0U);
  EXPECT_EQ(evicted.leases, 0U);
  EXPECT_EQ(code_of([&] { connection.evict("a"); }), WC_NOT_FOUND);
}

TEST_F(OperateTest, DrainingRefusesNewcomersAndWaitsForTheRest) {
  Connection connection = connect();
  publish_bytes(connection, "a", "one", "original");
  {
    const Attachment weights = connection.attach("a");
    weightcache::Patience brief;
    brief.wait = std::chrono::milliseconds(50);
    EXPECT_EQ(code_of([&] { connection.drain("a", brief); }), WC_TIMED_OUT);
    EXPECT_EQ(connection.list().at(0).state, WC_DRAINING);
    EXPECT_EQ(code_of([&] { (void)connection.attach("a"); }), WC_BUSY);
    connection.undo_drain("a");
    EXPECT_EQ(connection.attach("a").size(), 1U);
  }
  connection.drain("a");
  EXPECT_EQ(connection.list().at(0).state, WC_DRAINING);
}

TEST_F(OperateTest, StatusCountsWhatIsThere) {
  Connection connection = connect();
  publish_bytes(connection, "a", "one", std::string(1 << 20, 'x'));
  const Attachment weights = connection.attach("a");
  const auto status = connection.status();
  EXPECT_EQ(status.epoch, connection.daemon().epoch);
  EXPECT_EQ(status.epoch, weights.epoch());
  EXPECT_EQ(status.epoch.size(), 32U);
  EXPECT_EQ(status.pid, daemon().pid());
  EXPECT_EQ(status.entries, 1U);
  EXPECT_EQ(status.leases, 1U);
  EXPECT_GE(status.connections, 1U);
  EXPECT_GT(status.uptime.count(), 0);
  ASSERT_EQ(status.devices.size(), 1U);
  EXPECT_EQ(status.devices[0].device, "cpu");
  EXPECT_EQ(status.devices[0].bytes, 1U << 20);
  EXPECT_EQ(connection.daemon().socket, socket().string());
}

TEST_F(OperateTest, StopEndsTheDaemon) {
  Connection connection = connect();
  publish_bytes(connection, "a", "one", "original");
  const Attachment weights = connection.attach("a");
  const auto stopping = connection.stop(true);
  EXPECT_GT(stopping.kept_bytes + stopping.dropped_bytes, 0U);
  EXPECT_EQ(daemon().wait(), 0);
  daemon_is_gone();
  EXPECT_EQ(bytes_of(weights[0]), "original");
}

TEST_F(BudgetTest, WhatDoesNotFitIsRefusedBeforeAByteIsRead) {
  Connection connection = connect();
  publish_bytes(connection, "small", "one", "original");
  std::string message;
  EXPECT_EQ(code_of([&] { connection.load(make_checkpoint("large", 0, 100'000)); }, &message),
            WC_EXHAUSTED);
  EXPECT_THAT(message, HasSubstr("1.4 MiB"));    // needed
  EXPECT_THAT(message, HasSubstr("1.0 MiB"));    // the budget
  EXPECT_THAT(message, HasSubstr("\"small\""));  // what could be evicted
  EXPECT_EQ(connection.list().size(), 1U);
  EXPECT_EQ(loading_bytes(connection), 0U);
  EXPECT_EQ(connection.load(make_checkpoint("fits", 0, 1000)).outcome, WC_LOADED);
}

}  // namespace
}  // namespace wc::abi
