#include "memory/host/seal.hpp"

#include <array>
#include <cstring>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace wc::memory {
namespace {

using testing::HasSubstr;

constexpr std::array<std::byte, 5> kBytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                             std::byte{5}};

TEST(SealTest, SealedCopyHasItsBytesAndCannotBeWritten) {
  const auto fd = sealed_copy("test", kBytes);
  ASSERT_TRUE(fd);
  EXPECT_EQ(*sealed_bytes(*fd, 5), 5U);
  EXPECT_TRUE(check_sealed(*fd, 5));
  const auto mapping = map_sealed(*fd, 5);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(std::memcmp(mapping->data(), kBytes.data(), 5), 0);
  EXPECT_EQ(::pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EBADF) << "the descriptor must be open for reading only";
  EXPECT_EQ(::ftruncate(fd->get(), 1), -1);
}

TEST(SealTest, SealedMemfdRefusesWritesThroughItsWritableDescriptor) {
  const auto writable = make_memfd("test");
  ASSERT_TRUE(writable);
  ASSERT_EQ(::pwrite(writable->get(), "abc", 3, 0), 3);
  const auto readable = seal_and_reopen(*writable);
  ASSERT_TRUE(readable);
  EXPECT_EQ(::pwrite(writable->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(writable->get(), 0), -1);
  EXPECT_EQ(::ftruncate(writable->get(), 10), -1);
}

TEST(SealTest, SealingAgainIsHarmless) {
  const auto writable = make_memfd("test");
  ASSERT_TRUE(writable);
  ASSERT_TRUE(seal_and_reopen(*writable));
  EXPECT_TRUE(seal_and_reopen(*writable));
}

TEST(SealTest, EmptyMemfdIsSealedToo) {
  const auto fd = sealed_copy("test", {});
  ASSERT_TRUE(fd);
  EXPECT_TRUE(check_sealed(*fd, 0));
  const auto mapping = map_sealed(*fd, 100);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->size(), 0U);
}

TEST(SealTest, LeftWritableMappingMakesSealingBusy) {
  const auto writable = make_memfd("test");
  ASSERT_TRUE(writable);
  ASSERT_EQ(::ftruncate(writable->get(), 4096), 0);
  auto mapping = Mapping::map(
      *writable, {.bytes = 4096, .protection = PROT_READ | PROT_WRITE, .flags = MAP_SHARED});
  ASSERT_TRUE(mapping);
  const auto refused = seal_and_reopen(*writable);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_EQ(refused.error().origin, "EBUSY");
  mapping->reset();
  EXPECT_TRUE(seal_and_reopen(*writable));
}

TEST(SealTest, WhatIsNoMemfdIsCorrupt) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  for (const auto& checked : {check_sealed(read_end, 0), check_writable(read_end, 0)}) {
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::corrupt);
    EXPECT_THAT(checked.error().message, HasSubstr("not a memfd"));
  }
}

TEST(SealTest, MissingSealsAreCorrupt) {
  for (const int seals :
       {0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW,
        F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}) {
    const auto fd = make_memfd("test");
    ASSERT_TRUE(fd);
    ASSERT_EQ(::fcntl(fd->get(), F_ADD_SEALS, seals), 0);
    const auto checked = check_sealed(*fd, 0);
    ASSERT_FALSE(checked) << seals;
    EXPECT_EQ(checked.error().code, Code::corrupt);
    EXPECT_THAT(checked.error().message, HasSubstr("seals"));
  }
}

TEST(SealTest, MemfdClosedToSealsCannotBeSealed) {
  const auto fd = make_memfd("test");
  ASSERT_TRUE(fd);
  ASSERT_EQ(::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  const auto refused = seal_and_reopen(*fd);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::corrupt);
}

TEST(SealTest, OtherSizeIsCorruptWithBothNumbers) {
  const auto fd = sealed_copy("test", kBytes);
  ASSERT_TRUE(fd);
  const auto checked = check_sealed(*fd, 4096);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::corrupt);
  EXPECT_THAT(checked.error().message, HasSubstr("5 bytes where 4,096"));
  const auto bounded = sealed_bytes(*fd, 4);
  ASSERT_FALSE(bounded);
  EXPECT_EQ(bounded.error().code, Code::corrupt);
  EXPECT_FALSE(map_sealed(*fd, 4));
}

TEST(SealTest, HolesAreCorrupt) {
  const auto fd = make_memfd("test");
  ASSERT_TRUE(fd);
  ASSERT_EQ(::ftruncate(fd->get(), 1 << 20), 0);
  ASSERT_FALSE(check_writable(*fd, 1 << 20));
  ASSERT_TRUE(seal_and_reopen(*fd));
  const auto checked = check_sealed(*fd, 1 << 20);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::corrupt);
  EXPECT_THAT(checked.error().message, HasSubstr("holes"));
}

TEST(SealTest, OnlyUnsealedMemfdsAreWritable) {
  const auto fd = make_memfd("test");
  ASSERT_TRUE(fd);
  ASSERT_EQ(::fallocate(fd->get(), 0, 0, 8192), 0);
  EXPECT_TRUE(check_writable(*fd, 8192));
  EXPECT_FALSE(check_writable(*fd, 4096));
  ASSERT_TRUE(seal_and_reopen(*fd));
  const auto checked = check_writable(*fd, 8192);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::corrupt);
}

}  // namespace
}  // namespace wc::memory
