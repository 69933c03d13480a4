#include "checkpoint/survey.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoint/test_files.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::checkpoint {
namespace {

namespace fs = std::filesystem;
using support::TempFolder;
using testing::file_of;
using testing::u8;

const std::string kContent = file_of("{" + u8("a", 0, 4) + "}", 4);
const std::string kDigest(64, 'e');

std::string names_of(const Survey& seen) {
  std::string names;
  for (const auto& file : seen.files) names += file.name + " ";
  return names;
}

void set_times(const std::string& path, std::int64_t seconds) {
  const timespec times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

std::int64_t seconds_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

TEST(SurveyTest, ReceiptsAreThoseOfTheOpenedFiles) {
  const TempFolder folder;
  folder.write("b.safetensors", kContent);
  folder.write("a.safetensors", kContent);
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"b.safetensors"}})");
  const auto seen = survey(folder.path().string());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(names_of(*seen), "a.safetensors b.safetensors model.safetensors.index.json ");
  const auto opened = Checkpoint::open(folder.path().string());
  ASSERT_TRUE(opened);
  EXPECT_EQ(seen->files[1].receipt, opened->shards()[0].receipt);
  EXPECT_EQ(seen->directory, opened->directory());
  EXPECT_EQ(seen->default_name, opened->default_name());
  EXPECT_EQ(seen->files[1].claimed_sha256, "");
}

TEST(SurveyTest, SeesEveryChangeThatOpeningWould) {
  const TempFolder folder;
  folder.write("model.safetensors", kContent);
  const auto before = survey(folder.path().string());
  ASSERT_TRUE(before);
  std::ofstream(folder / "model.safetensors", std::ios::app) << "x";
  const auto grown = survey(folder.path().string());
  ASSERT_TRUE(grown);
  EXPECT_NE(before->files[0].receipt, grown->files[0].receipt);
  folder.write("second.safetensors", kContent);
  const auto ambiguous = survey(folder.path().string());
  ASSERT_FALSE(ambiguous);
  EXPECT_EQ(ambiguous.error().code, Code::invalid_argument);
}

TEST(SurveyTest, ReadsNoShardsContent) {
  const TempFolder folder;
  folder.write("model.safetensors", "no safetensors at all");
  EXPECT_TRUE(survey(folder.path().string()));
  const auto alone = survey(folder / "model.safetensors");
  ASSERT_TRUE(alone);
  EXPECT_EQ(names_of(*alone), "model.safetensors ");
  EXPECT_EQ(alone->default_name, "model");
}

TEST(SurveyTest, RefusesWhatOpeningWouldRefuse) {
  const TempFolder folder;
  EXPECT_EQ(survey(folder / "nothing").error().code, Code::not_found);
  EXPECT_EQ(survey(folder.path().string()).error().code, Code::not_found);
  fs::create_symlink("/etc/hostname", folder.path() / "model.safetensors");
  EXPECT_EQ(survey(folder.path().string()).error().code, Code::denied);
  fs::remove(folder.path() / "model.safetensors");
  ASSERT_EQ(::mkfifo((folder / "model.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(survey(folder.path().string()).error().code, Code::corrupt);
}

TEST(SurveyTest, BesideAnIndexAFileThatCannotBeHadIsOnlyPresent) {
  const TempFolder folder;
  folder.write("a.safetensors", kContent);
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors"}})");
  fs::create_symlink("gone", folder.path() / "consolidated.safetensors");
  const auto seen = survey(folder.path().string());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(names_of(*seen),
            "a.safetensors consolidated.safetensors model.safetensors.index.json ");
  EXPECT_EQ(seen->files[1].receipt, Receipt{});
  EXPECT_TRUE(Checkpoint::open(folder.path().string()));
}

// A snapshot of a hub cache with one file.
class CacheClaimTest : public ::testing::Test {
 protected:
  void publish(const std::string& blob_name) {
    blob_ = "models--acme--tiny/blobs/" + blob_name;
    cache_.write(blob_, kContent);
    fs::create_directories(cache_.path() / kSnapshot);
    fs::create_symlink("../../blobs/" + blob_name, cache_.path() / kSnapshot / "model.safetensors");
  }
  [[nodiscard]] std::string claim() const {
    const auto seen = survey((cache_.path() / kSnapshot).string());
    if (!seen) return seen.error().message;
    return seen->files.at(0).claimed_sha256;
  }

  const std::string kSnapshot = "models--acme--tiny/snapshots/0123";
  TempFolder cache_;
  std::string blob_;
};

TEST_F(CacheClaimTest, BlobsNameIsTheClaim) {
  publish(kDigest);
  EXPECT_EQ(claim(), kDigest);
}

TEST_F(CacheClaimTest, GitsDigestsAreNoClaim) {
  publish(std::string(40, 'e'));
  EXPECT_EQ(claim(), "");
}

TEST_F(CacheClaimTest, OtherNamesAreNoClaim) {
  publish(std::string(64, 'g'));
  EXPECT_EQ(claim(), "");
}

TEST_F(CacheClaimTest, BlobChangedAfterTheLinkIsNotBelieved) {
  publish(kDigest);
  set_times(cache_ / (kSnapshot + "/model.safetensors"), seconds_now() - 100);
  EXPECT_EQ(claim(), "");
}

TEST_F(CacheClaimTest, SettingTheMtimeBackDoesNotHelp) {
  publish(kDigest);
  const auto link = cache_ / (kSnapshot + "/model.safetensors");
  ASSERT_EQ(claim(), kDigest);
  // The ctime cannot be set; so that of the change must be later than the link's.
  const auto ctime_of = [](const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return receipt_of(status).ctime_ns;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  do {
    cache_.write(blob_, kContent);
    set_times(cache_ / blob_, seconds_now() - 1000);
  } while (ctime_of(cache_ / blob_) <= ctime_of(link) &&
           std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(claim(), "");
}

TEST_F(CacheClaimTest, BlobThatIsALinkItselfIsNotBelieved) {
  publish(kDigest);
  cache_.write("models--acme--tiny/blobs/other", kContent);
  fs::remove(cache_.path() / blob_);
  fs::create_symlink("other", cache_.path() / blob_);
  EXPECT_EQ(claim(), "");
}

// `hf download --local-dir`.
class RecordClaimTest : public ::testing::Test {
 protected:
  RecordClaimTest() { folder_.write("model.safetensors", kContent); }
  void record(std::string_view text) const {
    folder_.write(".cache/huggingface/download/model.safetensors.metadata", text);
  }
  [[nodiscard]] std::string claim() const {
    const auto seen = survey(folder_.path().string());
    if (!seen) return seen.error().message;
    return seen->files.at(0).claimed_sha256;
  }
  TempFolder folder_;
};

TEST_F(RecordClaimTest, RecordOfALaterTimeIsBelieved) {
  EXPECT_EQ(claim(), "");
  record("commit\n" + kDigest + "\n" + format("{}.123456\n", seconds_now() + 10));
  EXPECT_EQ(claim(), kDigest);
  record("commit\n" + kDigest + "\n" + format("{}", seconds_now() + 10));
  EXPECT_EQ(claim(), kDigest);
}

TEST_F(RecordClaimTest, FileYoungerThanItsRecordIsNotBelieved) {
  record("commit\n" + kDigest + "\n" + format("{}.5\n", seconds_now() - 10));
  EXPECT_EQ(claim(), "");
}

TEST_F(RecordClaimTest, BrokenRecordsAreNoClaim) {
  const std::string later = format("{}", seconds_now() + 10);
  for (const std::string& text :
       {std::string(), std::string("commit"), "commit\n" + kDigest, "commit\n" + kDigest + "\n",
        "commit\n" + kDigest + "\nnan\n", "commit\n" + kDigest + "\ninf\n",
        "commit\n" + kDigest + "\n1e300\n", "commit\n" + kDigest + "\n" + later + "x\n",
        "commit\n" + std::string(40, 'e') + "\n" + later + "\n",
        "commit\n" + std::string(63, 'e') + "\n" + later + "\n",
        kDigest + "\n" + later + "\n" + later + "\n", std::string(5000, '\n')}) {
    record(text);
    EXPECT_EQ(claim(), "") << text;
  }
}

}  // namespace
}  // namespace wc::checkpoint
