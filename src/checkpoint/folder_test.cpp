// A checkpoint's folder: its index, numbered sets, links, and what only looks like a shard.
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/test_files.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::checkpoint {
namespace {

namespace fs = std::filesystem;
using support::TempFolder;
using ::testing::AllOf;
using testing::file_of;
using ::testing::HasSubstr;
using testing::u8;

class FolderTest : public ::testing::Test {
 protected:
  void shard(std::string_view name, std::string_view members, std::size_t bytes) const {
    folder_.write(name, file_of("{" + std::string(members) + "}", bytes));
  }
  void index(std::string_view map) const {
    folder_.write("model.safetensors.index.json",
                  R"({"metadata":{"total_size":12},"weight_map":{)" + std::string(map) + "}}\n");
  }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }

  void expect_refused(Code code, std::string_view message, const OpenOptions& options = {}) const {
    const auto opened = Checkpoint::open(path(), options);
    ASSERT_FALSE(opened) << message;
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr(std::string(message)));
  }
  void expect_accepted(const OpenOptions& options = {}) const {
    const auto opened = Checkpoint::open(path(), options);
    EXPECT_TRUE(opened) << opened.error().message;
  }

  TempFolder folder_;
};

TEST_F(FolderTest, TensorsComeInTheOrderOfShardsThenOfBytes) {
  shard("b.safetensors", u8("b1", 0, 4), 4);
  shard("a.safetensors", u8("a2", 4, 6) + "," + u8("a1", 0, 4), 6);
  index(R"("b1":"b.safetensors","a1":"a.safetensors","a2":"a.safetensors")");
  const auto opened = Checkpoint::open(path());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(opened->shards().size(), 2U);
  EXPECT_EQ(opened->shards()[0].name, "a.safetensors");
  ASSERT_EQ(opened->tensors().size(), 3U);
  EXPECT_EQ(opened->tensors()[0].name, "a1");
  EXPECT_EQ(opened->tensors()[1].name, "a2");
  EXPECT_EQ(opened->tensors()[1].offset, opened->shards()[0].data_offset + 4);
  EXPECT_EQ(opened->tensors()[2].name, "b1");
  EXPECT_EQ(opened->tensors()[2].shard, 1U);
  EXPECT_EQ(opened->tensor_bytes(), 10U);
  EXPECT_EQ(opened->file_bytes(),
            opened->shards()[0].receipt.size_bytes + opened->shards()[1].receipt.size_bytes);
  EXPECT_EQ(opened->directory(), fs::canonical(folder_.path()).string());
  EXPECT_EQ(opened->default_name(), folder_.path().filename().string());
}

TEST_F(FolderTest, DescriptorsReadTheFilesTheyStandFor) {
  shard("model.safetensors", u8("a", 0, 4), 4);
  const auto opened = Checkpoint::open(path());
  ASSERT_TRUE(opened);
  const Shard& only = opened->shards()[0];
  char bytes[4] = {};
  EXPECT_EQ(::pread(only.fd.get(), bytes, 4, static_cast<off_t>(only.data_offset)), 4);
  EXPECT_EQ(std::string(bytes, 4), "ZZZZ");
  EXPECT_EQ(::fcntl(only.fd.get(), F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_RDONLY);
  EXPECT_NE(::fcntl(only.fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(FolderTest, IndexIsTheListOfWhatIsLoaded) {
  shard("a.safetensors", u8("x", 0, 4) + "," + u8("unlisted", 4, 6), 6);
  shard("b.safetensors", u8("x", 0, 4) + "," + u8("y", 4, 8), 8);
  index(R"("x":"b.safetensors","y":"b.safetensors")");
  auto opened = Checkpoint::open(path());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->shards().size(), 1U);
  index(R"("x":"a.safetensors","y":"b.safetensors")");
  opened = Checkpoint::open(path());
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(opened->tensors().size(), 2U);
  EXPECT_EQ(opened->tensors()[0].shard, 0U);
  EXPECT_EQ(opened->shards()[0].tensors, 2U);
  EXPECT_EQ(opened->shards()[0].passed_over, 1U);
  EXPECT_EQ(opened->shards()[1].passed_over, 1U);
  EXPECT_EQ(opened->tensor_bytes(), 8U);
}

TEST_F(FolderTest, IndexMapsEachTensorToTheShardThatHasIt) {
  shard("a.safetensors", u8("x", 0, 4), 4);
  shard("b.safetensors", u8("y", 0, 4), 4);
  index(R"("x":"b.safetensors","y":"b.safetensors")");
  expect_refused(Code::corrupt,
                 "\"b.safetensors\": tensor \"x\": the index says that it is in this file");
  index(R"("x":"a.safetensors","z":"a.safetensors")");
  expect_refused(Code::corrupt, "\"a.safetensors\": tensor \"z\": the index says");
}

TEST_F(FolderTest, IndexNamesPlainFilesOnly) {
  shard("a.safetensors", u8("x", 0, 4), 4);
  const auto refused = [this](std::string_view name, std::string_view why) {
    index("\"x\":\"" + std::string(name) + "\"");
    expect_refused(Code::corrupt, why);
  };
  refused("../x.safetensors",
          "\"model.safetensors.index.json\": tensor \"x\": the shard's name "
          "\"../x.safetensors\" has a path separator");
  refused("/etc/x.safetensors", "has a path separator");
  refused("sub/a.safetensors", "has a path separator");
  refused("sub\\\\a.safetensors", "has a path separator");
  refused("..", "does not end in \".safetensors\"");
  refused(".", "does not end in");
  refused("", "does not end in");
  refused("a.bin", "does not end in");
  refused("a.safetensors.incomplete", "does not end in");
  refused("a.SAFETENSORS", "does not end in");
  refused("a.safetensors ", "does not end in");
  refused("C:a.safetensors", "has a drive letter");
  refused("a\\u0000.safetensors", "has a control character");
  refused("a\\n.safetensors", "has a control character");
  refused(std::string(300, 'n') + ".safetensors", "is 312 bytes long (255 at most)");
}

TEST_F(FolderTest, IndexIsAnObjectWithAMap) {
  shard("a.safetensors", u8("x", 0, 4), 4);
  const auto refused = [this](std::string_view text, std::string_view why) {
    folder_.write("model.safetensors.index.json", text);
    expect_refused(Code::corrupt, "\"model.safetensors.index.json\": " + std::string(why));
  };
  refused("", "the index is empty");
  refused("[]", "the index starts with 0x5B");
  refused("\xEF\xBB\xBF{}", "the index starts with 0xEF");
  refused("{}", "\"weight_map\" is missing");
  refused(R"({"weight_map":null})", "\"weight_map\" is null, not an object of text to text");
  refused(R"({"weight_map":["a"]})", "\"weight_map\" is an array");
  refused(R"({"weight_map":{"x":1}})", "\"weight_map\": the shard of tensor \"x\" is a number");
  refused(R"({"weight_map":{"x":null}})", "\"weight_map\": the shard of tensor \"x\" is null");
  refused(R"({"weight_map":{"x":"a.safetensors","\u0078":"a.safetensors"}})",
          "\"weight_map\": tensor \"x\" stands twice");
  refused(R"({"weight_map":{},"weight_map":{}})", "\"weight_map\" stands twice");
  refused(R"({"a":1,"weight_map":{},"a":2})", "the name \"a\" stands twice");
  refused(R"({"metadata":{"a":1,"a":2},"weight_map":{}})",
          "the name \"a\" stands twice in one object");
  refused(R"({"weight_map":{"x":"a.safetensors",}})", "the index is not valid JSON at byte");
  refused(R"({"weight_map":{"x":"a.safetensors"}} {})", "the index is not valid JSON at byte");
  refused("{\"weight_map\":{\"\xFF\":\"a.safetensors\"}}", "the index is not UTF-8 at byte 16");
  refused("{\"a\":" + std::string(100'000, '[') + "}", "the index is not valid JSON");
  folder_.write(
      "model.safetensors.index.json",
      " \n{\"weight_map\" : { \"x\":\t\"a.safetensors\"} , \"metadata\": [1.5e3, {}]}\r\n");
  expect_accepted();
}

TEST_F(FolderTest, IndexIsBounded) {
  shard("a.safetensors", u8("x", 0, 4), 4);
  index(R"("x":"a.safetensors")");
  fs::resize_file(folder_.path() / "model.safetensors.index.json", (256U << 20) + 1);
  expect_refused(Code::corrupt, "the index is 268,435,457 bytes long (268,435,456 at most)");
}

TEST_F(FolderTest, EveryShardIsThereAndRegular) {
  index(R"("x":"a.safetensors")");
  expect_refused(Code::not_found, "\"a.safetensors\": the file is missing");
  fs::create_directory(folder_.path() / "a.safetensors");
  expect_refused(Code::corrupt, "\"a.safetensors\": it is a directory, not a regular file");
  fs::remove(folder_.path() / "a.safetensors");
  ASSERT_EQ(::mkfifo((folder_ / "a.safetensors").c_str(), 0600), 0);
  expect_refused(Code::corrupt, "\"a.safetensors\": it is a FIFO, not a regular file");
  fs::remove(folder_.path() / "a.safetensors");
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "a.safetensors").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_refused(Code::corrupt, "\"a.safetensors\": it is a socket, not a regular file");
  fs::remove(folder_.path() / "a.safetensors");
  fs::create_symlink("/dev/null", folder_.path() / "a.safetensors");
  expect_refused(Code::corrupt, "it is a device, not a regular file", {.follow_symlinks = true});
}

TEST_F(FolderTest, EveryShardIsValid) {
  shard("a.safetensors", u8("x", 0, 4), 4);
  shard("b.safetensors", u8("y", 0, 4), 3);
  index(R"("x":"a.safetensors","y":"b.safetensors")");
  expect_refused(Code::corrupt,
                 "\"b.safetensors\": tensor \"y\": data_offsets end 4 is past the "
                 "data's length 3");
  shard("b.safetensors", u8("y", 0, 4), 5);
  expect_refused(Code::corrupt, "\"b.safetensors\": 1 bytes of data after");
  const auto opened = Checkpoint::open(path(), {.allow_trailing = true});
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->shards()[1].trailing_bytes, 1U);
}

TEST_F(FolderTest, FirstBadShardIsToldWhateverTheThreads) {
  std::string map;
  for (int at = 10; at < 40; ++at) {
    const std::string name = format("s{}", at);
    shard(name + ".safetensors", u8(name, 0, 4), at % 3 == 2 ? 3 : 4);
    map += format("{}\"{}\":\"{}.safetensors\"", map.empty() ? "" : ",", name, name);
  }
  index(map);
  for (const unsigned threads : {1U, 2U, 8U, 64U}) {
    expect_refused(Code::corrupt, "\"s11.safetensors\"", {.threads = threads});
  }
}

TEST_F(FolderTest, LinksInsideAreFollowed) {
  shard("blob", u8("x", 0, 4), 4);
  fs::create_symlink("blob", folder_.path() / "model.safetensors");
  expect_accepted();
}

TEST_F(FolderTest, LinksThatLeaveAreRefused) {
  const TempFolder elsewhere;
  elsewhere.write("x.safetensors", file_of("{" + u8("x", 0, 4) + "}", 4));
  const fs::path link = folder_.path() / "model.safetensors";
  const std::string up = "../" + elsewhere.path().filename().string() + "/x.safetensors";
  for (const std::string& target : {up, elsewhere / "x.safetensors"}) {
    fs::remove(link);
    fs::create_symlink(target, link);
    expect_refused(Code::denied, "\"model.safetensors\": the link to \"" + target + "\" leaves");
    expect_accepted({.follow_symlinks = true});
  }
  // Through a folder of the folder.
  fs::remove(link);
  fs::create_directory_symlink(elsewhere.path(), folder_.path() / "sub");
  fs::create_symlink("sub/x.safetensors", link);
  expect_refused(Code::denied, "leaves");
  const auto alone = Checkpoint::open((folder_.path() / "model.safetensors").string());
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::denied);
}

TEST_F(FolderTest, DanglingLinksSayWhatIsMissing) {
  const fs::path link = folder_.path() / "model.safetensors";
  fs::create_symlink("blobs/0123", link);
  expect_refused(Code::not_found,
                 "\"model.safetensors\": the link points to \"blobs/0123\", which is "
                 "missing");
  fs::remove(link);
  fs::create_symlink("model.safetensors", link);
  expect_refused(Code::denied, "leads in a circle");
  fs::remove(link);
  shard("blobs/0123.incomplete", u8("x", 0, 4), 4);
  fs::create_symlink("blobs/0123.incomplete", link);
  expect_refused(Code::not_found, "not fetched to its end");
  fs::remove(link);
  fs::create_symlink("/proc/self/fd/0", link);
  expect_refused(Code::denied, "model.safetensors", {.follow_symlinks = true});
}

TEST_F(FolderTest, WithoutAnIndexOneFileOrOneCompleteSetCounts) {
  expect_refused(Code::not_found,
                 "there is neither \"model.safetensors.index.json\" nor any "
                 "*.safetensors; it is empty");
  folder_.write("pytorch_model.bin", "");
  folder_.write("model.safetensors.incomplete", "");
  expect_refused(Code::not_found,
                 "it holds \"model.safetensors.incomplete\", \"pytorch_model.bin\"");
  shard("model-00002-of-00003.safetensors", u8("b", 0, 4), 4);
  expect_refused(
      Code::invalid_argument,
      "of the set of 3 files 1 are there: \"model-00002-of-00003.safetensors\"; missing: "
      "\"model-00001-of-00003.safetensors\", \"model-00003-of-00003.safetensors\"");
  shard("model-00001-of-00003.safetensors", u8("a", 0, 4), 4);
  shard("model-00003-of-00003.safetensors", u8("c", 0, 4), 4);
  shard(".hidden.safetensors", "", 0);
  expect_accepted();
  shard("consolidated.safetensors", u8("a", 0, 4), 4);
  expect_refused(
      Code::invalid_argument,
      "ambiguous: there is no \"model.safetensors.index.json\", and 4 files could be the "
      "checkpoint: \"consolidated.safetensors\", \"model-00001-of-00003.safetensors\", ");
}

TEST_F(FolderTest, BesideAnIndexOtherFilesDoNotCount) {
  shard("model-00001-of-00001.safetensors", u8("a", 0, 4), 4);
  shard("consolidated.safetensors", "broken", 4);
  folder_.write("adapter_model.safetensors", "");
  index(R"("a":"model-00001-of-00001.safetensors")");
  expect_accepted();
}

TEST_F(FolderTest, TwoSetsAreAmbiguous) {
  shard("a-00001-of-00001.safetensors", u8("a", 0, 4), 4);
  expect_accepted();
  shard("b-00001-of-00001.safetensors", u8("b", 0, 4), 4);
  expect_refused(Code::invalid_argument, "2 files could be the checkpoint");
}

TEST_F(FolderTest, InASetNoTensorStandsInTwoShards) {
  shard("m-00001-of-00002.safetensors", u8("a", 0, 4), 4);
  shard("m-00002-of-00002.safetensors", u8("a", 0, 4), 4);
  expect_refused(Code::corrupt,
                 "\"m-00002-of-00002.safetensors\": tensor \"a\": "
                 "\"m-00001-of-00002.safetensors\" has it too");
}

TEST_F(FolderTest, BadIndexIsNotPassedOver) {
  shard("model.safetensors", u8("a", 0, 4), 4);
  fs::create_symlink("nowhere", folder_.path() / "model.safetensors.index.json");
  expect_refused(Code::not_found, "\"model.safetensors.index.json\": the link points to");
  fs::remove(folder_.path() / "model.safetensors.index.json");
  ASSERT_EQ(::mkfifo((folder_ / "model.safetensors.index.json").c_str(), 0600), 0);
  expect_refused(Code::corrupt, "\"model.safetensors.index.json\": it is a FIFO");
}

}  // namespace
}  // namespace wc::checkpoint
