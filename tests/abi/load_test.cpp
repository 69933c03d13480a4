#include <filesystem>
#include <thread>

#include <sys/inotify.h>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class LoadTest : public AbiTest {};

/// Names of the files in a folder that are opened while it lives.
class OpenWatch {
 public:
  explicit OpenWatch(const std::string& folder)
      : watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (::inotify_add_watch(watch_.get(), folder.c_str(), IN_OPEN) < 0)
      ADD_FAILURE() << "inotify_add_watch";
  }
  [[nodiscard]] std::vector<std::string> opened() const {
    std::vector<std::string> names;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(watch_.get(), buffer.data(), buffer.size())) > 0;) {
      for (ssize_t at = 0; at < n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        if (event->len > 0) names.emplace_back(static_cast<const char*>(event->name));
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return names;
  }

 private:
  Fd watch_;
};

TEST_F(LoadTest, ALoadedCheckpointIsThereByteForByte) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Loaded loaded = connection.load(folder);
  EXPECT_EQ(loaded.outcome, WC_LOADED);
  EXPECT_FALSE(loaded.waited);
  EXPECT_GT(loaded.read_bytes, 15U * 5000);
  EXPECT_NE(loaded.tier, WC_TIER_AUTO);
  EXPECT_EQ(loaded.entry.name, "tiny");
  EXPECT_EQ(loaded.entry.form, "raw");
  EXPECT_EQ(loaded.entry.device, "cpu");
  EXPECT_EQ(loaded.entry.generation, 1U);
  EXPECT_EQ(loaded.entry.tensors, 15U);
  EXPECT_EQ(loaded.entry.state, WC_PUBLISHED);
  EXPECT_EQ(loaded.entry.fingerprint.size(), 32U);

  const Attachment weights = connection.attach("tiny");
  ASSERT_EQ(weights.size(), 15U);
  for (int shard = 0; shard < 3; ++shard) {
    for (int i = 0; i < 5; ++i) {
      const std::string name = "t" + std::to_string(shard) + "." + std::to_string(i);
      const Tensor tensor = weights.at(name);
      EXPECT_EQ(tensor.dtype, WC_U8);
      EXPECT_EQ(bytes_of(tensor), u8_tensor(name, 5000).bytes) << name;
      EXPECT_EQ(tensor.offset % 512, 0U);
    }
  }
  ASSERT_EQ(weights.attributes().size(), 1U);
  EXPECT_EQ(weights.attributes()[0].name, "safetensors.format");
  EXPECT_EQ(std::get<std::string>(weights.attributes()[0].value), "pt");
  EXPECT_EQ(std::string(weights.provenance().source), folder);
  EXPECT_THAT(weights.provenance().fingerprint_json, HasSubstr("model-0.safetensors"));
  EXPECT_EQ(weightcache::fingerprint(weights.provenance().fingerprint_json),
            loaded.entry.fingerprint);
}

TEST_F(LoadTest, ASecondLoadOfUnchangedFilesOpensNone) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Loaded first = connection.load(folder);
  const OpenWatch watch(folder);
  const Loaded second = connect().load(folder);
  EXPECT_EQ(second.outcome, WC_ALREADY_RESIDENT);
  EXPECT_EQ(second.read_bytes, 0U);
  EXPECT_EQ(second.entry.fingerprint, first.entry.fingerprint);
  EXPECT_EQ(second.entry.generation, first.entry.generation);
  for (const std::string& name : watch.opened())
    EXPECT_THAT(name, ::testing::Not(HasSubstr(".safetensors"))) << "was opened";
}

TEST_F(LoadTest, ASingleFileIsNamedAfterItself) {
  write_file(files() / "one.safetensors", safetensors({u8_tensor("x", 100)}));
  Connection connection = connect();
  EXPECT_EQ(connection.load(files() / "one.safetensors").entry.name, "one");
  EXPECT_EQ(bytes_of(connection.attach("one")[0]), u8_tensor("x", 100).bytes);
}

TEST_F(LoadTest, ScalarsEmptyTensorsAndOddSizesKeepTheirPlaces) {
  const FileTensor scalar{"scalar", "F32", {}, std::string("\x00\x00\x80\x3f", 4)};
  const FileTensor empty{"empty", "BF16", {0, 7}, ""};
  write_file(files() / "odd.safetensors",
             safetensors({u8_tensor("first", 1), empty, u8_tensor("odd", 513), scalar}));
  Connection connection = connect();
  EXPECT_EQ(connection.load(files() / "odd.safetensors").entry.tensors, 4U);
  const Attachment weights = connection.attach("odd");
  EXPECT_EQ(weights.at("empty").bytes, 0U);
  EXPECT_EQ(weights.at("empty").shape.size(), 2U);
  EXPECT_EQ(weights.at("scalar").shape.size(), 0U);
  EXPECT_EQ(bytes_of(weights.at("scalar")), scalar.bytes);
  EXPECT_EQ(bytes_of(weights.at("odd")), u8_tensor("odd", 513).bytes);
}

TEST_F(LoadTest, OneContentUnderTwoNamesIsHeldOnce) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Loaded first = connection.load(folder);
  weightcache::LoadOptions options;
  options.name = "other";
  const Loaded second = connection.load(folder, options);
  EXPECT_EQ(second.outcome, WC_ALREADY_RESIDENT);
  EXPECT_EQ(second.entry.name, "other");
  EXPECT_EQ(second.entry.fingerprint, first.entry.fingerprint);
  EXPECT_EQ(connection.list().size(), 2U);
  ASSERT_EQ(connection.status().devices.size(), 1U);
  EXPECT_EQ(connection.status().devices[0].bytes, first.entry.bytes);
}

TEST_F(LoadTest, ACopyOfTheFilesIsTheSameContent) {
  const std::string folder = make_checkpoint("tiny");
  std::filesystem::copy(folder, files() / "copy");
  Connection connection = connect();
  const Loaded first = connection.load(folder);
  const Loaded second = connection.load(files() / "copy");
  EXPECT_EQ(second.outcome, WC_ALREADY_RESIDENT);
  EXPECT_EQ(second.entry.name, "copy");
  EXPECT_EQ(second.entry.fingerprint, first.entry.fingerprint);
  EXPECT_EQ(connection.status().devices.at(0).bytes, first.entry.bytes);
  // From now on the copy is known by its receipts too.
  EXPECT_EQ(connection.load(files() / "copy").read_bytes, 0U);
}

TEST_F(LoadTest, OtherContentUnderATakenNameNeedsReplace) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  const Loaded first = connection.load(folder);
  write_sharded(folder, 3, 5, 5000, 1);
  std::string message;
  EXPECT_EQ(code_of([&] { connection.load(folder); }, &message), WC_ALREADY_EXISTS);
  EXPECT_THAT(message, HasSubstr("tiny"));
  EXPECT_EQ(loading_bytes(connection), 0U);
  EXPECT_EQ(bytes_of(connection.attach("tiny").at("t0.0")), u8_tensor("t0.0", 5000).bytes);

  weightcache::LoadOptions options;
  options.replace = true;
  const Attachment old = connection.attach("tiny");
  const Loaded second = connection.load(folder, options);
  EXPECT_EQ(second.outcome, WC_LOADED);
  EXPECT_GT(second.entry.generation, first.entry.generation);
  EXPECT_EQ(bytes_of(connection.attach("tiny").at("t0.0")), u8_tensor("t0.0", 5000, 1).bytes);
  EXPECT_EQ(bytes_of(old.at("t0.0")), u8_tensor("t0.0", 5000).bytes);
}

TEST_F(LoadTest, WhatIsWrongOnDiskIsSaidBeforeMemoryIsTaken) {
  Connection connection = connect();
  std::string message;
  EXPECT_EQ(code_of([&] { connection.load(files() / "nowhere"); }, &message), WC_NOT_FOUND);
  EXPECT_THAT(message, HasSubstr("nowhere"));

  const std::string folder = make_checkpoint("cut");
  std::filesystem::resize_file(folder + "/model-1.safetensors", 5000);
  EXPECT_EQ(code_of([&] { connection.load(folder); }, &message), WC_CORRUPT);
  EXPECT_THAT(message, HasSubstr("model-1.safetensors"));
  EXPECT_TRUE(connection.list().empty());
  EXPECT_EQ(loading_bytes(connection), 0U);
}

TEST_F(LoadTest, WrongOptionsAreRefusedBeforeAnythingIsRead) {
  const std::string folder = make_checkpoint("tiny");
  const OpenWatch watch(folder);
  Connection connection = connect();
  const auto refused = [&](auto set) {
    weightcache::LoadOptions options;
    set(options);
    return code_of([&] { connection.load(folder, options); });
  };
  EXPECT_EQ(refused([](auto& o) { o.name = "a@b"; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.tier = 17; }), WC_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.transport = "pigeon"; }), WC_UNSUPPORTED);
  EXPECT_EQ(refused([](auto& o) { o.transport = "vmm_fd", o.device = "cpu"; }), WC_UNSUPPORTED);
  EXPECT_NE(refused([](auto& o) { o.device = "cuda:99"; }), WC_OK);
  EXPECT_TRUE(connection.list().empty());
  for (const std::string& name : watch.opened())
    EXPECT_THAT(name, ::testing::Not(HasSubstr("model-"))) << "was opened";
}

TEST_F(LoadTest, OfManyLoadersOneReads) {
  const std::string folder = make_checkpoint("tiny", 0, 2'000'000);
  std::vector<std::thread> threads;
  std::atomic<int> loaded = 0;
  std::atomic<int> resident = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const Loaded result = connect().load(folder);
      EXPECT_EQ(result.entry.name, "tiny");
      ++(result.outcome == WC_LOADED ? loaded : resident);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ(resident, 5);
}

TEST_F(LoadTest, ProgressReachesTheWhole) {
  const std::string folder = make_checkpoint("tiny");
  Connection connection = connect();
  weightcache::LoadOptions options;
  std::vector<weightcache::Progress> told;
  options.progress = [&](const weightcache::Progress& progress) { told.push_back(progress); };
  const Loaded loaded = connection.load(folder, options);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().done_bytes, told.back().total_bytes);
  EXPECT_EQ(told.back().total_bytes, loaded.read_bytes);
  for (std::size_t i = 1; i < told.size(); ++i)
    EXPECT_GE(told[i].done_bytes, told[i - 1].done_bytes);
  EXPECT_EQ(told.front().waiting, 0);
}

TEST_F(LoadTest, AProgressFunctionMayThrow) {
  Connection connection = connect();
  weightcache::LoadOptions options;
  options.progress = [](const weightcache::Progress&) { throw std::logic_error("enough"); };
  EXPECT_THROW(connection.load(make_checkpoint("tiny"), options), std::logic_error);
}

TEST_F(LoadTest, ACancelledLoadGivesEverythingBack) {
  const std::string folder = make_checkpoint("tiny", 0, 4'000'000);
  Connection connection = connect();
  weightcache::Cancellation cancellation;
  weightcache::LoadOptions options;
  options.cancellation = &cancellation;
  options.progress = [&](const weightcache::Progress&) { cancellation.cancel(); };
  const int code = code_of([&] { connection.load(folder, options); });
  // The last progress may come when there is nothing left to cancel.
  EXPECT_TRUE(code == WC_CANCELLED || (code == WC_OK && !connection.list().empty())) << code;
  EXPECT_EQ(loading_bytes(connection), 0U);

  weightcache::Cancellation before;
  before.cancel();
  options.cancellation = &before;
  options.name = "never";
  options.progress = nullptr;
  write_sharded(folder, 3, 5, 4000, 9);
  EXPECT_EQ(code_of([&] { connection.load(folder, options); }), WC_CANCELLED);
  EXPECT_EQ(code_of([&] { connection.wait("never"); }), WC_NOT_FOUND);
}

TEST_F(LoadTest, AFileThatChangesUnderTheLoaderIsNeverPublished) {
  const std::string folder = make_checkpoint("tiny", 0, 4'000'000);
  Connection connection = connect();
  weightcache::LoadOptions options;
  std::atomic<bool> touched = false;
  options.progress = [&](const weightcache::Progress&) {
    if (touched.exchange(true)) return;
    write_file(folder + "/model-9.safetensors", safetensors({u8_tensor("late", 10)}));
  };
  std::string message;
  EXPECT_EQ(code_of([&] { connection.load(folder, options); }, &message), WC_CORRUPT);
  EXPECT_THAT(message, HasSubstr("changed"));
  EXPECT_TRUE(connection.list().empty());
}

}  // namespace
}  // namespace wc::abi
