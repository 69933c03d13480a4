#include "load/file_reader.hpp"

#include <array>
#include <numeric>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/file_hooks.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::load {
namespace {

using testing::HasSubstr;

class FileReaderTest : public testing::Test {
 protected:
  FileReaderTest() {
    std::string text(1000, ' ');
    std::iota(text.begin(), text.end(), '\0');
    folder_.write("file", text);
    fd_ = Fd(::open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  }

  Result<> read(std::uint64_t offset, std::span<std::byte> to) {
    return read_into(hooks_, {fd_, name_, offset}, to);
  }

  static void expect_bytes(std::span<const std::byte> bytes, std::uint64_t offset) {
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      ASSERT_EQ(bytes[n], static_cast<std::byte>(offset + n)) << n;
    }
  }

  support::TempFolder folder_;
  support::FileHooks hooks_;
  Fd fd_;
  const std::string name_ = "a.safetensors";
};

TEST_F(FileReaderTest, ShortReadsAreContinued) {
  hooks_.most_bytes = 7;
  std::array<std::byte, 100> bytes = {};
  ASSERT_TRUE(read(13, bytes));
  expect_bytes(bytes, 13);
  EXPECT_EQ(hooks_.reads(), 15U);
}

TEST_F(FileReaderTest, SeveralPlacesAreFilledInTurnEvenEmptyOnes) {
  for (const std::uint64_t most : {0U, 1U, 5U, 9U}) {
    hooks_.most_bytes = most;
    std::array<std::byte, 30> bytes = {};
    std::array<iovec, 5> places = {{{bytes.data(), 0},
                                    {bytes.data(), 5},
                                    {bytes.data() + 5, 0},
                                    {bytes.data() + 5, 1},
                                    {bytes.data() + 6, 24}}};
    ASSERT_TRUE(read_into(hooks_, {fd_, name_, 40}, places));
    expect_bytes(bytes, 40);
  }
}

TEST_F(FileReaderTest, InterruptedReadsAreRepeated) {
  hooks_.on_read = [](std::uint64_t number) -> std::optional<ssize_t> {
    if (number == 1 || number == 3) return -EINTR;
    if (number == 2) return -EAGAIN;
    return std::nullopt;
  };
  std::array<std::byte, 10> bytes = {};
  ASSERT_TRUE(read(0, bytes));
  expect_bytes(bytes, 0);
  EXPECT_EQ(hooks_.reads(), 4U);
}

TEST_F(FileReaderTest, EndlessInterruptionsEnd) {
  hooks_.on_read = [](std::uint64_t) -> std::optional<ssize_t> { return -EINTR; };
  std::array<std::byte, 10> bytes = {};
  const auto done = read(0, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().origin, "EINTR");
}

TEST_F(FileReaderTest, EndBeforeTheExpectedOneIsCorrupt) {
  std::array<std::byte, 100> bytes = {};
  const auto done = read(950, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::corrupt);
  EXPECT_THAT(done.error().message, HasSubstr("\"a.safetensors\" ends at byte 1,000"));
}

TEST_F(FileReaderTest, ErrorsNameFileOffsetAndErrno) {
  hooks_.most_bytes = 60;
  hooks_.on_read = [](std::uint64_t number) -> std::optional<ssize_t> {
    return number == 2 ? std::optional<ssize_t>(-EIO) : std::nullopt;
  };
  std::array<std::byte, 100> bytes = {};
  const auto done = read(100, bytes);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::io);
  EXPECT_EQ(done.error().origin, "EIO");
  EXPECT_THAT(done.error().message, HasSubstr("\"a.safetensors\": read at byte 160"));
}

TEST_F(FileReaderTest, NothingIsReadWithoutACall) {
  ASSERT_TRUE(read(5000, {}));
  EXPECT_EQ(hooks_.reads(), 0U);
}

}  // namespace
}  // namespace wc::load
