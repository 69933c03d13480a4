#include "client/introduction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace wc::client {
namespace {

using testing::HasSubstr;

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST(IntroductionTest, SaysWhoThisIs) {
  const auto hello = introduce("trainer\n7", {1, 4});
  EXPECT_EQ(hello.label, "trainer 7");
  EXPECT_EQ(hello.pid, ::getpid());
  EXPECT_EQ(hello.min_version, 1);
  EXPECT_EQ(hello.max_version, 4);
  EXPECT_THAT(hello.command, HasSubstr("client_test"));
  EXPECT_EQ(introduce("", {}).label, "client_test");
}

TEST(IntroductionTest, ContainerIsFoundInControlGroups) {
  EXPECT_EQ(container_in("0::/system.slice/docker-" + kId + ".scope\n"), "docker-0123456789ab");
  EXPECT_EQ(container_in("12:memory:/docker/" + kId + "\n"), "0123456789ab");
  EXPECT_EQ(container_in("0::/kubepods.slice/pod1/cri-containerd-" + kId + ".scope"),
            "cri-containerd-0123456789ab");
  EXPECT_EQ(container_in("0::/user.slice/user-1000.slice/session-1.scope\n"), "");
  EXPECT_EQ(container_in(""), "");
}

TEST(IntroductionTest, TextBecomesPlain) {
  EXPECT_EQ(plain_text("a\tb\x7f", 100), "a b ");
  EXPECT_EQ(plain_text(std::string("a\0b", 3), 100), "a b");
  EXPECT_EQ(plain_text("gr\xc3\xbc\xc3\x9f", 100), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(plain_text("\xc3(\xff\xe2\x82", 100), "?(???");
  EXPECT_EQ(plain_text("\xed\xa0\x80\xc0\x80\xf5\x80\x80\x80", 100), "?????????");
  EXPECT_EQ(plain_text("\xe2\x82\xac\xe2\x82\xac", 5), "\xe2\x82\xac");
}

}  // namespace
}  // namespace wc::client
