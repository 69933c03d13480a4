// What a checkpoint may be called, and whether it stays what it was.
#include "checkpoint/checkpoint.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "checkpoint/test_files.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::checkpoint {
namespace {

namespace fs = std::filesystem;
using support::TempFolder;
using testing::file_of;
using ::testing::HasSubstr;
using testing::u8;

const std::string kFile = file_of("{" + u8("a", 0, 4) + "}", 4);

void expect_not_opened(const std::string& source, Code code, std::string_view message) {
  const auto opened = Checkpoint::open(source);
  ASSERT_FALSE(opened) << source;
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
  EXPECT_THAT(opened.error().message, HasSubstr(std::string(message)));
}

TEST(CheckpointTest, OneFileIsACheckpoint) {
  const TempFolder folder;
  folder.write("llama.safetensors", kFile);
  folder.write("other.safetensors", "");
  const auto opened = Checkpoint::open(folder / "llama.safetensors");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->default_name(), "llama");
  EXPECT_EQ(opened->directory(), fs::canonical(folder.path()).string());
  EXPECT_EQ(opened->shards()[0].name, "llama.safetensors");
}

TEST(CheckpointTest, RefusesWhatIsNoCheckpoint) {
  const TempFolder folder;
  folder.write("model.bin", kFile);
  expect_not_opened("", Code::invalid_argument, "no checkpoint has this name");
  expect_not_opened(std::string("a\0b", 3), Code::invalid_argument, "\"a\\x00b\"");
  expect_not_opened(folder / "model.bin", Code::invalid_argument,
                    "it is neither a folder nor a file that ends in \".safetensors\"");
  expect_not_opened(folder / "nothing", Code::not_found, "nothing\"");
  expect_not_opened(folder / "model.bin/x", Code::not_found, "x\"");
  expect_not_opened(folder / "nothing.safetensors", Code::not_found, "nothing.safetensors\"");
  ASSERT_EQ(::mkfifo((folder / "pipe.safetensors").c_str(), 0600), 0);
  expect_not_opened(folder / "pipe.safetensors", Code::corrupt,
                    "\"pipe.safetensors\": it is a FIFO, not a regular file");
  fs::create_symlink("gone", folder.path() / "link.safetensors");
  expect_not_opened(folder / "link.safetensors", Code::not_found, "points to \"gone\"");
}

TEST(CheckpointTest, FoldersAreCalledAsTheUserCallsThem) {
  const TempFolder folder;
  folder.write("real/model.safetensors", kFile);
  fs::create_directory_symlink("real", folder.path() / "llama");
  const auto linked = Checkpoint::open(folder / "llama///");
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(linked->default_name(), "llama");
  EXPECT_EQ(linked->directory(), (fs::canonical(folder.path()) / "real").string());
  const auto dotted = Checkpoint::open(folder / "real/../real/.");
  ASSERT_TRUE(dotted);
  EXPECT_EQ(dotted->default_name(), "real");
}

TEST(CheckpointTest, NoticesAFileThatChanged) {
  const TempFolder folder;
  folder.write("model.safetensors", kFile);
  const auto opened = Checkpoint::open(folder.path().string());
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->unchanged());
  {
    std::ofstream(folder / "model.safetensors", std::ios::app) << "more";
  }
  const auto grown = opened->unchanged();
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, Code::corrupt);
  EXPECT_THAT(
      grown.error().message,
      HasSubstr(format("\"model.safetensors\": it changed after it was opened: size {} -> {}",
                       kFile.size(), kFile.size() + 4)));
  fs::resize_file(folder.path() / "model.safetensors", kFile.size() - 1);
  const auto cut = opened->unchanged();
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr(format("-> {}", kFile.size() - 1)));
}

TEST(CheckpointTest, NoticesAFileThatWasReplacedOrRemoved) {
  const TempFolder folder;
  folder.write("model.safetensors", kFile);
  // A second name keeps the link count, and with it the ctime, out of the first case.
  folder.write("new", kFile);
  const auto opened = Checkpoint::open(folder.path().string());
  ASSERT_TRUE(opened);
  fs::rename(folder.path() / "new", folder.path() / "model.safetensors");
  const auto replaced = opened->unchanged();
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, Code::corrupt);
  fs::remove(folder.path() / "model.safetensors");
  EXPECT_FALSE(opened->unchanged());
}

TEST(CheckpointTest, NoticesALinkThatPointsElsewhere) {
  const TempFolder folder;
  folder.write("one", kFile);
  folder.write("two", kFile);
  fs::create_symlink("one", folder.path() / "model.safetensors");
  const auto opened = Checkpoint::open(folder.path().string());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(opened->unchanged());
  fs::remove(folder.path() / "model.safetensors");
  fs::create_symlink("two", folder.path() / "model.safetensors");
  const auto elsewhere = opened->unchanged();
  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(elsewhere.error().message, HasSubstr("another file"));
}

TEST(CheckpointTest, NoticesATouchOfTheSameBytes) {
  const TempFolder folder;
  folder.write("model.safetensors", kFile);
  const auto opened = Checkpoint::open(folder.path().string());
  ASSERT_TRUE(opened);
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / "model.safetensors").c_str(), times, 0), 0);
  const auto touched = opened->unchanged();
  ASSERT_FALSE(touched);
  EXPECT_THAT(touched.error().message, HasSubstr("mtime changed, ctime changed"));
}

TEST(CheckpointTest, TooManyShardsForTheDescriptorsIsExhausted) {
  const TempFolder folder;
  constexpr int kShards = 40;
  for (int at = 1; at <= kShards; ++at) {
    folder.write(format("m-{:05}-of-{:05}.safetensors", at, kShards),
                 file_of("{" + u8(format("t{}", at), 0, 4) + "}", 4));
  }
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 24;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  // One thread: the undefined-behaviour sanitizer looks at a thread's object through a pipe of its
  // own.
  const auto opened = Checkpoint::open(folder.path().string(), {.threads = 1});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::exhausted);
  EXPECT_THAT(opened.error().message, HasSubstr("raise RLIMIT_NOFILE"));
  EXPECT_EQ(opened.error().origin, "EMFILE");
}

TEST(CheckpointTest, RefusingLeavesNoDescriptorOpen) {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const TempFolder folder;
  folder.write("m-00001-of-00002.safetensors", kFile);
  folder.write("m-00002-of-00002.safetensors", kFile + "x");
  const auto before = descriptors();
  EXPECT_FALSE(Checkpoint::open(folder.path().string()));
  EXPECT_EQ(descriptors(), before);
  EXPECT_TRUE(Checkpoint::open(folder / "m-00001-of-00002.safetensors"));
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace wc::checkpoint
