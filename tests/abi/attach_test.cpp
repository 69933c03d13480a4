#include <fstream>
#include <thread>

#include <sys/mman.h>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class AttachTest : public AbiTest {};

/// The permissions of the mapping that holds an address, as in /proc/self/maps: "rw-p".
std::string permissions_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &first, &last, permissions) != 3) continue;
    if (wanted >= first && wanted < last) return permissions;
  }
  return "unmapped";
}

Attachment attach_with(Connection& connection, weightcache::Access access) {
  weightcache::AttachOptions options;
  options.access = access;
  return connection.attach("x", options);
}

TEST_F(AttachTest, APrivateReaderMayWriteAndDisturbsNobody) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  const Attachment writer = connection.attach("x");
  const Attachment reader = attach_with(connection, weightcache::Access::shared);
  EXPECT_EQ(permissions_at(writer[0].data), "rw-p");
  EXPECT_EQ(permissions_at(reader[0].data), "r--s");
  std::memcpy(writer[0].data, "scribble", 8);
  EXPECT_EQ(bytes_of(writer[0]), "scribble");
  EXPECT_EQ(bytes_of(reader[0]), "original");
  EXPECT_EQ(bytes_of(connection.attach("x")[0]), "original");
}

TEST_F(AttachTest, StrictMakesEveryMappingReadOnly) {
  publish_bytes(*std::make_unique<Connection>(connect()), "x", "s", "original");
  ASSERT_EQ(::setenv("WEIGHTCACHE_STRICT", "1", 1), 0);
  Connection connection = connect();
  const Attachment weights = attach_with(connection, weightcache::Access::private_copy);
  ASSERT_EQ(::unsetenv("WEIGHTCACHE_STRICT"), 0);
  EXPECT_EQ(permissions_at(weights[0].data), "r--s");
}

TEST_F(AttachTest, DetachUnmapsAndEndsTheLease) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  Attachment weights = connection.attach("x");
  const void* address = weights[0].data;
  EXPECT_EQ(connection.leases().size(), 1U);
  EXPECT_EQ(connection.list().at(0).leases, 1U);
  weights.detach();
  EXPECT_TRUE(connection.leases().empty());
  EXPECT_EQ(permissions_at(address), "unmapped");
}

TEST_F(AttachTest, WhatIsAttachedOutlivesTheDaemonThePublisherAndTheConnection) {
  auto connection = std::make_unique<Connection>(connect());
  publish_bytes(*std::make_unique<Connection>(connect()), "x", "s", "original");
  const Attachment weights = connection->attach("x");
  connection->evict("x");
  ASSERT_EQ(connection->list().size(), 1U);  // shown while somebody holds its memory
  EXPECT_EQ(connection->list()[0].state, WC_GONE);
  EXPECT_EQ(code_of([&] { (void)connection->attach("x"); }), WC_NOT_FOUND);
  EXPECT_EQ(bytes_of(weights[0]), "original");
  connection.reset();
  EXPECT_EQ(bytes_of(weights[0]), "original");
  daemon().end(SIGKILL);
  daemon_is_gone();
  EXPECT_EQ(bytes_of(weights[0]), "original");
  EXPECT_EQ(weights.entry().name, "x");
}

TEST_F(AttachTest, TensorsAreThereOneByOneAllTogetherAndByName) {
  Connection connection = connect();
  connection.load(make_checkpoint("tiny"));
  const Attachment weights = connection.attach("tiny");
  std::vector<wc_tensor> all(weights.size());
  all[0].struct_size = sizeof(wc_tensor);
  ASSERT_EQ(wc_attachment_tensors(weights.get(), 0, all.size(), all.data()), WC_OK);
  std::size_t at = 0;
  for (const Tensor& tensor : weights) {
    const wc_tensor& other = all[at++];
    EXPECT_EQ(other.struct_size, sizeof(wc_tensor));
    EXPECT_EQ(std::string_view(other.name, other.name_bytes), tensor.name);
    EXPECT_EQ(other.data, tensor.data);
    EXPECT_EQ(other.shape, tensor.shape.data());
    EXPECT_EQ(weights.at(std::string(tensor.name)).data, tensor.data);
  }
  EXPECT_EQ(at, all.size());
  EXPECT_EQ(wc_attachment_tensors(weights.get(), 1, all.size(), all.data()), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_attachment_tensors(weights.get(), SIZE_MAX, 2, all.data()), WC_INVALID_ARGUMENT);
  EXPECT_EQ(wc_attachment_tensors(weights.get(), all.size(), 0, all.data()), WC_OK);
}

TEST_F(AttachTest, AShorterStructOfAnOlderProgramIsNotWrittenPastItsEnd) {
  Connection connection = connect();
  connection.load(make_checkpoint("tiny"));
  const Attachment weights = connection.attach("tiny");
  // As if a wc_tensor had ended after `data`.
  constexpr std::size_t kOld = offsetof(wc_tensor, bytes);
  std::vector<std::byte> array(3 * kOld + 8, std::byte{0xee});
  const std::size_t size = kOld;
  std::memcpy(array.data(), &size, sizeof size);
  ASSERT_EQ(wc_attachment_tensors(weights.get(), 0, 3, reinterpret_cast<wc_tensor*>(array.data())),
            WC_OK);
  for (std::size_t i = 0; i < 3; ++i) {
    void* data = nullptr;
    std::memcpy(&data, array.data() + i * kOld + offsetof(wc_tensor, data), sizeof data);
    EXPECT_EQ(data, weights[i].data);
  }
  for (std::size_t i = 3 * kOld; i < array.size(); ++i) EXPECT_EQ(array[i], std::byte{0xee});
}

TEST_F(AttachTest, ANameThatIsNearlyRightIsTold) {
  Connection connection = connect();
  connection.load(make_checkpoint("tiny"));
  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.attach("tinny"); }, &message), WC_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("\"tiny\""));
  const Attachment weights = connection.attach("tiny");
  EXPECT_EQ(code_of([&] { (void)weights.at("t0.O"); }, &message), WC_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("t0.0"));
  EXPECT_FALSE(weights.find("t0.O").has_value());
  EXPECT_TRUE(weights.find("t0.0").has_value());
  EXPECT_EQ(code_of([&] { (void)weights[15]; }), WC_INVALID_ARGUMENT);
}

TEST_F(AttachTest, AnEntryIsFoundByNameGenerationFingerprintAndPath) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Entry entry = connection.load(folder).entry;
  const std::string files_folder = std::filesystem::path(folder).parent_path().string();
  const std::string back = std::filesystem::current_path().string();
  std::filesystem::current_path(files_folder);
  for (const std::string& text :
       {std::string("tiny"), std::string("tiny@1"), "@" + entry.fingerprint,
        "@" + entry.fingerprint.substr(0, 8), folder, std::string("./tiny"),
        files_folder + "/../" + std::filesystem::path(files_folder).filename().string() +
            "/tiny"}) {
    EXPECT_EQ(connection.attach(text).entry().fingerprint, entry.fingerprint) << text;
  }
  // A name that no entry has is taken as a path.
  weightcache::LoadOptions options;
  options.name = "another-name";
  connection.load(folder, options);
  connection.evict("tiny");
  EXPECT_EQ(connection.attach("tiny").entry().fingerprint, entry.fingerprint);
  std::filesystem::current_path(back);

  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.attach("tiny@7"); }), WC_NOT_FOUND);
  (void)make_checkpoint("absent", 5);
  EXPECT_EQ(code_of([&] { (void)connection.attach(files_folder + "/absent"); }, &message),
            WC_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("not resident"));
  EXPECT_EQ(code_of([&] { (void)connection.attach(files_folder + "/nothing"); }), WC_NOT_FOUND);
}

TEST_F(AttachTest, OtherWeightsThanExpectedAreAMismatchThatNamesTheFields) {
  Connection connection = connect();
  publish_bytes(connection, "x", "org/name@1", "original");
  weightcache::AttachOptions options;
  options.expect = R"({"source": {"source_id": "org/name@1"}, "form": "raw"})";
  EXPECT_EQ(connection.attach("x", options).size(), 1U);
  options.expect = R"({"source": {"source_id": "org/name@2"}})";
  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.attach("x", options); }, &message), WC_MISMATCH);
  EXPECT_THAT(message, HasSubstr("source.source_id"));
  EXPECT_THAT(message, HasSubstr("org/name@1"));
  EXPECT_THAT(message, HasSubstr("org/name@2"));
  EXPECT_TRUE(connection.leases().empty());
  options.expect = "{";
  EXPECT_EQ(code_of([&] { (void)connection.attach("x", options); }), WC_INVALID_ARGUMENT);
}

TEST_F(AttachTest, AReaderMayWaitForItsEntry) {
  std::thread publisher;
  {
    Connection connection = connect();
    weightcache::AttachOptions options;
    options.wait = std::chrono::milliseconds(50);
    EXPECT_EQ(code_of([&] { (void)connection.attach("x", options); }), WC_TIMED_OUT);
    publisher = std::thread([&] {
      Connection own = connect();
      publish_bytes(own, "x", "s", "original");
    });
    options.wait = std::chrono::seconds(20);
    EXPECT_EQ(bytes_of(connection.attach("x", options)[0]), "original");
  }
  publisher.join();
}

TEST_F(AttachTest, AWaitIsEndedByItsCancellation) {
  Connection connection = connect();
  weightcache::Cancellation cancellation;
  std::thread canceller([&] {
    support::eventually([&] { return connect().status().connections > 1; });
    cancellation.cancel();
  });
  weightcache::AttachOptions options;
  options.wait = std::chrono::seconds(20);
  options.cancellation = &cancellation;
  EXPECT_EQ(code_of([&] { (void)connection.attach("x", options); }), WC_CANCELLED);
  canceller.join();
}

}  // namespace
}  // namespace wc::abi
