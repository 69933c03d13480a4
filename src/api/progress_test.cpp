#include "api/progress.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace wc::api {
namespace {

struct Told {
  std::vector<wc_progress> progress;
  static void hear(const wc_progress* progress, void* user) {
    static_cast<Told*>(user)->progress.push_back(*progress);
  }
};

TEST(ProgressTellerTest, TheFirstAndTheLastAreToldWhateverTheirNumber) {
  Told told;
  ProgressTeller teller(&Told::hear, &told);
  for (std::uint64_t i = 0; i <= 1000; ++i) teller.reading({i, 1000, std::chrono::seconds(1)});
  ASSERT_GE(told.progress.size(), 2U);
  EXPECT_LT(told.progress.size(), 100U);
  EXPECT_EQ(told.progress.front().done_bytes, 0U);
  EXPECT_EQ(told.progress.back().done_bytes, 1000U);
  EXPECT_EQ(told.progress.back().bytes_per_s, 1000U);
  EXPECT_EQ(told.progress.back().struct_size, sizeof(wc_progress));
  EXPECT_EQ(told.progress.back().waiting, 0);
}

TEST(ProgressTellerTest, WaitingIsSaidAndKept) {
  Told told;
  ProgressTeller teller(&Told::hear, &told);
  EXPECT_FALSE(teller.waited());
  wire::fb::EntryInfoT entry;
  entry.done_bytes = 3;
  entry.total_bytes = 9;
  teller.waiting()(entry, 5);
  ASSERT_EQ(told.progress.size(), 1U);
  EXPECT_EQ(told.progress[0].waiting, 1);
  EXPECT_EQ(told.progress[0].bytes_per_s, 5U);
  EXPECT_TRUE(teller.waited());
}

TEST(ProgressTellerTest, WithoutAListenerNobodyIsAskedToTell) {
  ProgressTeller teller(nullptr, nullptr);
  EXPECT_FALSE(teller.waiting());
  EXPECT_TRUE(teller.waiting(true));
  teller.waiting(true)(wire::fb::EntryInfoT(), 0);
  teller.reading({1, 1, {}});
  EXPECT_TRUE(teller.waited());
}

TEST(ProgressTellerTest, OneThreadAtATimeIsHeard) {
  struct Alone {
    std::atomic<int> inside = 0;
    bool together = false;
    static void hear(const wc_progress* /*progress*/, void* user) {
      auto& self = *static_cast<Alone*>(user);
      self.together = self.together || ++self.inside > 1;
      std::this_thread::yield();
      --self.inside;
    }
  } alone;
  ProgressTeller teller(&Alone::hear, &alone);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) teller.reading({7, 7, {}});  // complete: always told
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(alone.together);
}

}  // namespace
}  // namespace wc::api
