#include "memory/types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wc::memory {
namespace {

using testing::HasSubstr;

TEST(TransportTest, EveryNameLeadsBackToItsTransport) {
  for (const auto transport : {Transport::host_fd, Transport::vmm_fd, Transport::torch_ipc}) {
    const auto named = transport_named(name_of(transport));
    ASSERT_TRUE(named);
    EXPECT_EQ(*named, transport);
  }
}

TEST(TransportTest, NoNameMeansTheDefault) {
  const auto named = transport_named("");
  ASSERT_TRUE(named);
  EXPECT_EQ(*named, std::nullopt);
}

TEST(TransportTest, UnknownNamesAreRefusedWithThoseThatExist) {
  for (const char* name : {"VMM_FD", "vmm", "host_fd ", "ucx"}) {
    const auto named = transport_named(name);
    ASSERT_FALSE(named) << name;
    EXPECT_EQ(named.error().code, Code::unsupported);
    EXPECT_THAT(named.error().message, HasSubstr("host_fd, vmm_fd and torch_ipc"));
  }
}

TEST(TransportTest, ANumberThatIsNoneHasNoName) {
  EXPECT_EQ(name_of(static_cast<Transport>(99)), "unknown");
}

}  // namespace
}  // namespace wc::memory
