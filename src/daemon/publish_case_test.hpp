// A daemon, and what the tests of its publications, leases and operators say to it.
#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/raw_publisher.hpp"

namespace wc::daemon {

namespace fb = wire::fb;

// The words in which these tests are written.
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

class PublishCase : public support::DaemonTest {
 protected:
  void SetUp() override { start(); }

  support::RawClient connect() {
    support::RawClient client(socket());
    EXPECT_TRUE(client.hello());
    return client;
  }

  Result<fb::PublishedT> publish(support::RawClient& client,
                                 const support::PublishedSample& sample = {}) {
    return support::RawPublisher(client, sample).run();
  }

  static Result<fb::EvictedT> evict(support::RawClient& client, const std::string& name,
                                    bool force = false) {
    fb::EvictT evict;
    evict.selector = support::select(name);
    evict.force = force;
    return client.call<fb::EvictedT>(evict);
  }

  static fb::DeviceStatusT cpu(support::RawClient& client) {
    const auto status = client.call<fb::StatusReportT>(fb::StatusT());
    if (!status || status->devices.empty()) return {};
    return *status->devices[0];
  }
  bool nothing_left() {
    support::RawClient client = connect();
    const auto device = cpu(client);
    return device.bytes + device.loading_bytes + device.releasing_bytes == 0;
  }
};

inline support::PublishedSample sample_of(const std::string& source) {
  support::PublishedSample sample;
  sample.content.source = source;
  return sample;
}

}  // namespace wc::daemon
