// A fixed virtual address: part of what is published, kept by every process or refused by it.
#include <cstdint>

#include <sys/mman.h>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

constexpr std::uint64_t kAddress = 0x2000'0000'0000;
constexpr std::uint64_t kStep = std::uint64_t{32} << 20;

std::uint64_t address_of(const void* data) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
}

class AddressTest : public AbiTest {
 protected:
  // Two segments of a tensor each.
  static Loaded publish(Connection& connection, const std::string& name,
                        std::uint64_t address = kAddress) {
    weightcache::PublishOptions options;
    options.name = name;
    options.fingerprint = R"({"source": {"source_id": ")" + name + R"("}})";
    options.address = address;
    auto publication = connection.publish(options);
    EXPECT_TRUE(publication);
    for (const char* tensor_name : {"first", "second"}) {
      const auto segment = publication->reserve(5000);
      std::memset(segment.address, *tensor_name, 5000);
      weightcache::TensorDescription tensor;
      tensor.name = tensor_name;
      tensor.dtype = WC_U8;
      tensor.shape = {5000};
      tensor.segment = segment.segment;
      publication->tensor(tensor);
    }
    return publication->publish();
  }
};

TEST_F(AddressTest, EveryReaderHasTheSegmentsThere) {
  Connection connection = connect();
  EXPECT_EQ(publish(connection, "a").entry.address, kAddress);
  const Attachment weights = connection.attach("a");
  EXPECT_EQ(weights.entry().address, kAddress);
  EXPECT_EQ(address_of(weights.at("first").data), kAddress);
  EXPECT_EQ(address_of(weights.at("second").data), kAddress + kStep);
  EXPECT_EQ(bytes_of(weights.at("second")), std::string(5000, 's'));
}

TEST_F(AddressTest, ATakenAddressIsBusyAndLeavesNothing) {
  Connection connection = connect();
  publish(connection, "a");
  void* const taken = ::mmap(reinterpret_cast<void*>(kAddress + kStep), 4096, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(address_of(taken), kAddress + kStep);
  std::string message;
  EXPECT_EQ(code_of([&] { (void)connection.attach("a"); }, &message), WC_BUSY);
  EXPECT_THAT(message, HasSubstr("import segment 1"));
  EXPECT_THAT(message, HasSubstr("0x200002000000"));
  EXPECT_TRUE(connection.leases().empty());
  EXPECT_EQ(connection.list("a").at(0).state, WC_PUBLISHED) << "it is this process's fault";
  ASSERT_EQ(::munmap(taken, 4096), 0);
  EXPECT_EQ(connection.attach("a").entry().address, kAddress);
}

TEST_F(AddressTest, TwoEntriesAtOneAddressDoNotMeetInAProcess) {
  Connection connection = connect();
  publish(connection, "a");
  publish(connection, "b");
  const Attachment a = connection.attach("a");
  EXPECT_EQ(code_of([&] { (void)connection.attach("b"); }), WC_BUSY);
}

TEST_F(AddressTest, ALoaderWhoseAddressIsTakenPublishesNothing) {
  Connection connection = connect();
  publish(connection, "a");
  const Attachment a = connection.attach("a");
  weightcache::LoadOptions options;
  options.device = "cpu";
  options.address = kAddress;
  EXPECT_EQ(code_of([&] { (void)connection.load(make_checkpoint("b"), options); }), WC_BUSY);
  EXPECT_TRUE(connection.list("b").empty());
  EXPECT_EQ(loading_bytes(connection), 0U);
  options.address = kAddress + (std::uint64_t{1} << 32);
  EXPECT_EQ(connection.load(make_checkpoint("b"), options).entry.address, options.address);
}

TEST_F(AddressTest, AnAddressThatCannotBeIsRefused) {
  Connection connection = connect();
  for (const std::uint64_t wrong :
       {std::uint64_t{4096}, std::uint64_t{1} << 47, kAddress + 4096, UINT64_MAX << 21}) {
    weightcache::LoadOptions options;
    options.device = "cpu";
    options.address = wrong;
    EXPECT_EQ(code_of([&] { (void)connection.load(make_checkpoint("b"), options); }),
              WC_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace wc::abi
