#include "checkpoint/hub.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/test_files.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::checkpoint {
namespace {

namespace fs = std::filesystem;
using support::TempFolder;
using testing::file_of;
using ::testing::HasSubstr;
using testing::u8;

// Environment variables of one test, put back at its end.
class Variables {
 public:
  void set(const char* name, const std::string& value) {
    keep(name);
    ::setenv(name, value.c_str(), 1);
  }
  void unset(const char* name) {
    keep(name);
    ::unsetenv(name);
  }
  Variables() = default;
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }

 private:
  void keep(const char* name) {
    const char* value = std::getenv(name);
    before_.try_emplace(name, value != nullptr ? std::optional<std::string>(value) : std::nullopt);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

class HubTest : public ::testing::Test {
 protected:
  HubTest() {
    variables_.unset("HF_HOME");
    variables_.unset("XDG_CACHE_HOME");
    variables_.set("HF_HUB_CACHE", cache_.path().string());
  }

  // As the hub's own tools lay it out.
  void publish(const std::string& file, const std::string& blob, const std::string& content) const {
    cache_.write(kRepository + "/blobs/" + blob, content);
    cache_.write(kRepository + "/refs/main", "0123abcd");
    const fs::path link = cache_.path() / kRepository / "snapshots/0123abcd" / file;
    fs::create_directories(link.parent_path());
    std::string up = "../../blobs/";
    if (file.find('/') != std::string::npos) up = "../" + up;
    fs::remove(link);
    fs::create_symlink(up + blob, link);
  }

  const std::string kRepository = "models--acme--tiny-1B";
  const std::string kContent = file_of("{" + u8("a", 0, 4) + "}", 4);
  TempFolder cache_;
  Variables variables_;
};

TEST(HubRulesTest, RepositoryIdsHaveTwoPlainParts) {
  for (const char* id : {"acme/tiny", "a/b", "meta-llama/Llama-3.1-8B", "org_1/x.y-z"}) {
    EXPECT_TRUE(is_repository_id(id)) << id;
  }
  for (const char* other : {"", "/", "acme", "acme/", "/tiny", "a/b/c", "./tiny", "../tiny",
                            "acme/.", "acme/..", "acme/a..b", "acme/a--b", "-a/b", "a/b-", "a b/c",
                            "~/model", "a/b\n", "acme/t\xC3\xAFny"}) {
    EXPECT_FALSE(is_repository_id(other)) << other;
  }
}

TEST(HubRulesTest, PlaceIsFoundInThePath) {
  const auto snapshot = hub_place("/c/hub/models--org--na-me/snapshots/abc");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->root, "/c/hub/models--org--na-me");
  EXPECT_EQ(snapshot->inside, "snapshots/abc");
  EXPECT_EQ(snapshot->name, "org/na-me");
  const auto below = hub_place("/c/models--org--x/snapshots/abc/transformer");
  ASSERT_TRUE(below);
  EXPECT_EQ(below->inside, "snapshots/abc/transformer");
  EXPECT_EQ(below->name, "org/x/transformer");
  EXPECT_EQ(hub_place("/models--gpt2/snapshots/abc")->name, "gpt2");
  EXPECT_FALSE(hub_place("/c/models--org--x"));
  EXPECT_FALSE(hub_place("/c/models--org--x/blobs"));
  EXPECT_FALSE(hub_place("/c/org/snapshots/abc"));
  EXPECT_FALSE(hub_place("/"));
  EXPECT_FALSE(hub_place(""));
}

TEST(HubRulesTest, CacheIsWhereTheVariablesSay) {
  Variables variables;
  variables.set("HOME", "/home/u");
  variables.unset("HF_HUB_CACHE");
  variables.unset("HF_HOME");
  variables.unset("XDG_CACHE_HOME");
  EXPECT_EQ(hub_cache(), "/home/u/.cache/huggingface/hub");
  variables.set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(hub_cache(), "/x/huggingface/hub");
  variables.set("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache(), "/home/u/hf/hub");
  variables.set("HF_HUB_CACHE", "/data/hub");
  EXPECT_EQ(hub_cache(), "/data/hub");
  variables.set("HF_HUB_CACHE", "");
  EXPECT_EQ(hub_cache(), "/home/u/hf/hub");
}

TEST_F(HubTest, RepositoryIdOpensTheSnapshotOfMain) {
  publish("model.safetensors", "b1", kContent);
  cache_.write(kRepository + "/refs/main", "0123abcd\n");
  const auto opened = Checkpoint::open("acme/tiny-1B");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->default_name(), "acme/tiny-1B");
  const fs::path snapshot = fs::canonical(cache_.path()) / kRepository / "snapshots/0123abcd";
  EXPECT_EQ(opened->directory(), snapshot.string());
  EXPECT_TRUE(opened->unchanged());
  const auto by_path = Checkpoint::open(snapshot.string());
  ASSERT_TRUE(by_path) << by_path.error().message;
  EXPECT_EQ(by_path->default_name(), "acme/tiny-1B");
  const auto by_file = Checkpoint::open((snapshot / "model.safetensors").string());
  ASSERT_TRUE(by_file) << by_file.error().message;
}

TEST_F(HubTest, IndexAndShardsOfASnapshotAreLinks) {
  publish("model-00001-of-00001.safetensors", "b1", kContent);
  publish("model.safetensors.index.json", "b2",
          R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})");
  EXPECT_TRUE(Checkpoint::open("acme/tiny-1B"));
  publish("transformer/model.safetensors", "b1", kContent);
  const auto below =
      Checkpoint::open((cache_.path() / kRepository / "snapshots/0123abcd/transformer").string());
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_EQ(below->default_name(), "acme/tiny-1B/transformer");
}

TEST_F(HubTest, LinksThatLeaveTheRepositoryAreRefused) {
  publish("model.safetensors", "b1", kContent);
  cache_.write("models--other--x/blobs/b2", kContent);
  const fs::path link = cache_.path() / kRepository / "snapshots/0123abcd/model.safetensors";
  fs::remove(link);
  fs::create_symlink("../../../models--other--x/blobs/b2", link);
  const auto refused = Checkpoint::open("acme/tiny-1B");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_THAT(refused.error().message, HasSubstr("leaves"));
  EXPECT_TRUE(Checkpoint::open("acme/tiny-1B", {.follow_symlinks = true}));
}

TEST_F(HubTest, MissingBlobIsTold) {
  publish("model.safetensors", "b1", kContent);
  fs::rename(cache_.path() / kRepository / "blobs/b1",
             cache_.path() / kRepository / "blobs/b1.incomplete");
  const auto refused = Checkpoint::open("acme/tiny-1B");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::not_found);
  EXPECT_THAT(refused.error().message,
              HasSubstr("\"model.safetensors\": the link points to \"../../blobs/b1\", which is "
                        "missing (in a hub cache: the blob was not fetched"));
}

TEST_F(HubTest, WhatTheCacheLacksIsNotFound) {
  const auto absent = Checkpoint::open("acme/none");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::not_found);
  EXPECT_THAT(absent.error().message, HasSubstr("nor such a repository in the hub cache \"" +
                                                cache_.path().string() + "\""));
  fs::create_directories(cache_.path() / kRepository / "snapshots");
  const auto no_ref = Checkpoint::open("acme/tiny-1B");
  ASSERT_FALSE(no_ref);
  EXPECT_EQ(no_ref.error().code, Code::not_found);
  EXPECT_THAT(no_ref.error().message, HasSubstr("refs/\"main\": the file is missing"));
  cache_.write(kRepository + "/refs/main", "feed");
  const auto no_snapshot = Checkpoint::open("acme/tiny-1B");
  ASSERT_FALSE(no_snapshot);
  EXPECT_EQ(no_snapshot.error().code, Code::not_found);
  EXPECT_THAT(no_snapshot.error().message, HasSubstr("snapshots/feed\""));
}

TEST_F(HubTest, RefsThatNameNoSnapshotAreCorrupt) {
  publish("model.safetensors", "b1", kContent);
  for (const char* bad : {"", "..", "../../x", "a/b", "a\tb"}) {
    cache_.write(kRepository + "/refs/main", bad);
    const auto refused = Checkpoint::open("acme/tiny-1B");
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, Code::corrupt) << refused.error().message;
  }
}

TEST_F(HubTest, FolderOfTheSameNameGoesFirst) {
  publish("model.safetensors", "b1", kContent);
  const fs::path before = fs::current_path();
  const TempFolder here;
  here.write("acme/tiny-1B/model.safetensors", kContent);
  fs::current_path(here.path());
  const auto opened = Checkpoint::open("acme/tiny-1B");
  fs::current_path(before);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->default_name(), "tiny-1B");
}

}  // namespace
}  // namespace wc::checkpoint
