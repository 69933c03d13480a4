#include "load/uring_reader.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/make_checkpoint.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::load {
namespace {

class UringReaderTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 5'000'001;

  void SetUp() override {
    content_.resize(kBytes);
    support::tensor_bytes("x", 0, content_.data(), kBytes);
    folder_.write("file", {reinterpret_cast<const char*>(content_.data()), kBytes});
    fd_ = Fd(::open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
    auto made = UringReader::create();
    if (!made) GTEST_SKIP() << "io_uring is refused here: " << made.error().message;
    reader_.emplace(std::move(*made));
  }

  support::TempFolder folder_;
  std::vector<std::byte> content_;
  Fd fd_;
  std::optional<UringReader> reader_;
};

TEST_F(UringReaderTest, ReadsEveryByteOnce) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{524'288},
                                    std::uint64_t{524'289}, std::uint64_t{4'900'000}}) {
    std::vector<std::byte> to(bytes);
    const auto got = reader_->read(fd_, 77, to);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*got, bytes);
    EXPECT_TRUE(std::equal(to.begin(), to.end(), content_.begin() + 77));
  }
}

TEST_F(UringReaderTest, EndOfTheFileEndsTheRead) {
  std::vector<std::byte> to(kBytes);
  const auto got = reader_->read(fd_, 1'000'000, to);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, kBytes - 1'000'000);
  const auto nothing = reader_->read(fd_, kBytes + 1, to);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, 0U);
}

TEST_F(UringReaderTest, RefusedReadsAreErrorsByName) {
  const Fd folder(::open(folder_.path().c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::byte> to(100);
  const auto got = reader_->read(folder, 0, to);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::io);
  EXPECT_EQ(got.error().origin, "EISDIR");
  EXPECT_TRUE(reader_->read(fd_, 0, to)) << "the ring serves on";
}

}  // namespace
}  // namespace wc::load
