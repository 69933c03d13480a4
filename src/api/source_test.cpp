#include "api/source.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"

namespace wc::api {
namespace {

checkpoint::Survey two_files() {
  checkpoint::Survey survey;
  survey.files.push_back({"a.safetensors", {1, 2, 3, 4, 5}, std::string(64, 'a')});
  survey.files.push_back({"b.safetensors", {1, 9, 3, 4, 5}, std::string(64, 'b')});
  return survey;
}

TEST(SourceTest, EveryPartOfAReceiptMakesAnotherAlias) {
  std::set<std::string> seen = {receipt_alias(two_files())};
  const auto changed = [&](auto change) {
    checkpoint::Survey survey = two_files();
    change(survey);
    EXPECT_TRUE(seen.insert(receipt_alias(survey)).second);
  };
  changed([](auto& s) { s.files[0].receipt.device++; });
  changed([](auto& s) { s.files[0].receipt.inode++; });
  changed([](auto& s) { s.files[0].receipt.size_bytes++; });
  changed([](auto& s) { s.files[0].receipt.mtime_ns++; });
  changed([](auto& s) { s.files[1].receipt.ctime_ns++; });
  changed([](auto& s) { s.files[1].name = "c.safetensors"; });
  changed([](auto& s) { s.files.pop_back(); });
  changed([](auto& s) { std::swap(s.files[0].receipt, s.files[1].receipt); });
}

TEST(SourceTest, TheNameAndTheFolderOfACheckpointAreNoPartOfItsAliases) {
  checkpoint::Survey moved = two_files();
  moved.directory = "/elsewhere";
  moved.default_name = "other";
  EXPECT_EQ(receipt_alias(moved), receipt_alias(two_files()));
  EXPECT_EQ(content_alias(moved), content_alias(two_files()));
}

TEST(SourceTest, WeakReceiptsAreNotStrongOnes) {
  const auto aliases = lookup_aliases(two_files());
  ASSERT_EQ(aliases.size(), 2U);
  EXPECT_TRUE(aliases[0].starts_with("receipt:"));
  EXPECT_TRUE(aliases[1].starts_with("weak-receipt:"));
}

TEST(SourceTest, ContentIsClaimedOnlyWhereEveryShardIs) {
  EXPECT_TRUE(content_alias(two_files()).starts_with("sha256:"));
  checkpoint::Survey survey = two_files();
  survey.files[1].claimed_sha256.clear();
  EXPECT_EQ(content_alias(survey), "");
  EXPECT_EQ(content_alias(checkpoint::Survey{}), "");
}

TEST(SourceTest, AnIndexCountsByItsContent) {
  const support::TempFolder folder;
  folder.write("model.safetensors.index.json", "{}");
  checkpoint::Survey survey = two_files();
  survey.directory = folder.path().string();
  survey.files.push_back({"model.safetensors.index.json", {}, {}});
  const std::string before = content_alias(survey);
  EXPECT_NE(before, "");
  EXPECT_NE(before, content_alias(two_files()));
  folder.write("model.safetensors.index.json", "{ }");
  EXPECT_NE(content_alias(survey), before);
  std::filesystem::remove(folder.path() / "model.safetensors.index.json");
  EXPECT_EQ(content_alias(survey), "");
}

TEST(SourceTest, ATildeIsTheHomeDirectory) {
  ASSERT_EQ(::setenv("HOME", "/home/somebody", 1), 0);
  EXPECT_EQ(expand_home("~"), "/home/somebody");
  EXPECT_EQ(expand_home("~/models"), "/home/somebody/models");
  EXPECT_EQ(expand_home("~other/models"), "~other/models");
  EXPECT_EQ(expand_home("/a/~"), "/a/~");
}

}  // namespace
}  // namespace wc::api
