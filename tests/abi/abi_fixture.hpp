// The public library against a real daemon: what every test here begins with.
#pragma once

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weightcache/weightcache.hpp"

#include "tests/abi/checkpoint_files.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::abi {

using ::testing::HasSubstr;
using weightcache::Attachment;
using weightcache::Connection;
using weightcache::Entry;
using weightcache::Loaded;
using weightcache::Tensor;

/// The code that a call fails with, WC_OK where it does not; the message goes to `message`.
template <typename Call>
int code_of(Call&& call, std::string* message = nullptr) {
  try {
    std::forward<Call>(call)();
    return WC_OK;
  } catch (const weightcache::error& failure) {
    EXPECT_STRNE(failure.what(), "");
    if (message != nullptr) *message = failure.what();
    return failure.code();
  }
}

class AbiTest : public support::DaemonTest {
 protected:
  void SetUp() override { start(); }

  /// Everything is given back before the daemon's descriptors are counted.
  void TearDown() override {
    if (daemon_lives_) {
      Connection connection = connect();
      for (const Entry& entry : connection.list())
        (void)code_of([&] { connection.evict(entry.name, true); });
      EXPECT_TRUE(connection.leases().empty());
    }
    DaemonTest::TearDown();
  }

  [[nodiscard]] Connection connect(const std::string& label = "test") const {
    weightcache::ConnectOptions options;
    options.socket = socket().string();
    options.label = label;
    return Connection(options);
  }

  /// A folder with a checkpoint of 3 shards of 5 tensors each.
  [[nodiscard]] std::string make_checkpoint(const std::string& name, unsigned seed = 0,
                                            std::int64_t tensor_bytes = 5000) const {
    const std::string folder = files_ / name;
    std::filesystem::create_directories(folder);
    write_sharded(folder, 3, 5, tensor_bytes, seed);
    return folder;
  }

  [[nodiscard]] const support::TempFolder& files() const { return files_; }
  void daemon_is_gone() { daemon_lives_ = false; }

  /// Bytes that loads in progress hold on the daemon's devices.
  static std::uint64_t loading_bytes(Connection& connection) {
    std::uint64_t bytes = 0;
    for (const auto& device : connection.status().devices) bytes += device.loading_bytes;
    return bytes;
  }

 private:
  support::TempFolder files_;
  bool daemon_lives_ = true;
};

/// A published entry with one U8 tensor "data" of these bytes.
inline Loaded publish_bytes(Connection& connection, const std::string& name,
                            const std::string& source_id, const std::string& bytes,
                            bool replace = false) {
  weightcache::PublishOptions options;
  options.name = name;
  options.fingerprint = R"({"source": {"source_id": ")" + source_id + R"("}})";
  options.replace = replace;
  auto publication = connection.publish(options);
  if (!publication) throw weightcache::error(WC_ALREADY_EXISTS, "resident already", "");
  const auto segment = publication->reserve(bytes.size());
  std::memcpy(segment.address, bytes.data(), bytes.size());
  weightcache::TensorDescription tensor;
  tensor.name = "data";
  tensor.dtype = WC_U8;
  tensor.shape = {static_cast<std::int64_t>(bytes.size())};
  tensor.segment = segment.segment;
  publication->tensor(tensor);
  return publication->publish();
}

inline std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes)};
}

}  // namespace wc::abi
