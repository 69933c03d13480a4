// Every table has an end, which is told before anything is changed, and can be come back from.
#include "catalog/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

template <typename T>
Code code(const Result<T>& result) {
  return result ? Code::ok : result.error().code;
}

TEST(LimitsTest, LeasesOfOneConnection) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  for (std::size_t n = 0; n < kMaxLeasesOfSession; ++n) ASSERT_TRUE(bench.attach(2, named("m")));
  EXPECT_EQ(code(bench.attach(2, named("m"))), Code::exhausted);
  EXPECT_TRUE(bench.attach(3, named("m")));
  bench.catalog.session_closed(SessionId{2}, bench.now);
  EXPECT_EQ(bench.catalog.lease_count(), 1U);
}

TEST(LimitsTest, RequestsThatWait) {
  Bench bench;
  std::uint64_t session = 100;
  for (std::size_t n = 0; n < kMaxWaits; ++n) {
    if (n % kMaxWaitsOfSession == 0) {
      ASSERT_TRUE(bench.catalog.session_opened(SessionId{++session}));
    }
    ASSERT_TRUE(
        bench.catalog.wait(SessionId{session}, RequestId{n + 1}, named("m"), {}, bench.now));
  }
  const auto more = [&] {
    return code(bench.catalog.wait(SessionId{1}, RequestId{1}, named("m"), {}, bench.now));
  };
  EXPECT_EQ(more(), Code::exhausted);
  bench.catalog.session_closed(SessionId{session}, bench.now);
  EXPECT_EQ(more(), Code::ok);
  ASSERT_TRUE(bench.load(2, wanting("m"), 1));
  EXPECT_EQ(bench.taken<Answer>().size(), kMaxWaits - kMaxWaitsOfSession + 1);
  EXPECT_FALSE(bench.catalog.next_deadline());
}

TEST(LimitsTest, NamesOfOneContent) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  for (std::size_t n = 1; n < kMaxPlacesOfEntry; ++n) {
    ASSERT_TRUE(bench.begin(1, wanting(format("m{}", n), {"a"})));
  }
  EXPECT_EQ(code(bench.begin(1, wanting("more", {"a"}))), Code::exhausted);
  ASSERT_TRUE(bench.catalog.evict(named("m7"), false, bench.now));
  EXPECT_EQ(code(bench.begin(1, wanting("more", {"a"}))), Code::ok);
  Selector all;
  all.aliases = {"unknown", "a"};
  auto evicted = bench.catalog.evict(all, false, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->entries, kMaxPlacesOfEntry);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
}

TEST(LimitsTest, NamesAltogether) {
  Bench bench;
  const std::size_t contents = kMaxSets / kMaxPlacesOfEntry;
  for (unsigned content = 0; content < contents; ++content) {
    const std::string alias = format("a{}", content);
    ASSERT_TRUE(bench.load(1, wanting(format("m{}", content), {alias}), content));
    for (std::size_t n = 1; n < kMaxPlacesOfEntry; ++n) {
      ASSERT_TRUE(bench.begin(1, wanting(format("m{}-{}", content, n), {alias})));
    }
  }
  EXPECT_EQ(code(bench.begin(1, wanting("more", {"b"}))), Code::exhausted);
  ASSERT_TRUE(bench.catalog.evict(named("m0-7"), false, bench.now));
  EXPECT_EQ(code(bench.begin(1, wanting("more", {"b"}))), Code::ok);
}

TEST(LimitsTest, FormsOfOneName) {
  Bench bench;
  auto wanted = wanting("m");
  for (unsigned n = 0; n < kMaxLinesOfName; ++n) {
    wanted.form = format("{{\"n\":{}}}", n);
    ASSERT_TRUE(bench.load(1, wanted, n));
  }
  wanted.form = "raw";
  EXPECT_EQ(code(bench.begin(1, wanted)), Code::exhausted);
  auto several = bench.attach(1, named("m"));
  EXPECT_THAT(several.error().message, ::testing::HasSubstr("and 248 more"));
}

TEST(LimitsTest, Aliases) {
  Bench bench;
  std::vector<std::string> aliases(kMaxAliasesOfEntry);
  const std::size_t entries = kMaxAliases / kMaxAliasesOfEntry;
  for (unsigned n = 0; n < entries; ++n) {
    for (std::size_t at = 0; at < aliases.size(); ++at) aliases[at] = format("{}-{}", n, at);
    ASSERT_TRUE(bench.load(1, wanting(format("m{}", n), aliases), n, 1));
  }
  EXPECT_EQ(code(bench.begin(1, wanting("more", {"x"}))), Code::exhausted);
  auto without = wanting("more");
  without.fingerprint = fingerprint(5'000);
  const EntryId load = bench.granted(1, without);
  ASSERT_TRUE(bench.reserve(1, load, {1}));
  EXPECT_EQ(code(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(5'000), {"x"}})),
            Code::exhausted);
  ASSERT_TRUE(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(5'000), {}}));
  EXPECT_EQ(code(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(5'000), {}})),
            Code::busy);
}

TEST(LimitsTest, AliasesOfOneEntryMakeRoomForNewerOnes) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"first"}), 1));
  for (std::size_t n = 0; n < kMaxAliasesOfEntry; ++n) {
    ASSERT_TRUE(bench.load(1, wanting("m", {format("a{}", n)}), 1));
  }
  Selector selector;
  selector.aliases = {"first"};
  EXPECT_EQ(code(bench.attach(2, selector)), Code::not_found);
  selector.aliases = {"a0"};
  EXPECT_EQ(code(bench.attach(2, selector)), Code::ok);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(LimitsTest, CancelledLoadsThatALoaderNeverAsksFor) {
  Bench bench;
  std::vector<EntryId> loads;
  for (std::size_t n = 0; n <= kMaxLoadsOfSession; ++n) {
    loads.push_back(bench.granted(1, wanting("m")));
    ASSERT_NE(loads.back(), EntryId::none);
    ASSERT_TRUE(bench.catalog.evict(named("m"), true, bench.now));
  }
  const auto asked = [&](EntryId load) {
    return code(bench.catalog.progress(SessionId{1}, load, 1, 1, bench.now));
  };
  EXPECT_EQ(asked(loads.front()), Code::not_found);
  EXPECT_EQ(asked(loads.back()), Code::cancelled);
}

TEST(LimitsTest, Selectors) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  ASSERT_TRUE(bench.load(1, wanting("n"), 2));
  std::vector<Selector> bad(8);
  bad[1].fingerprint = fingerprint(1);
  bad[1].generation = 1;
  bad[2].name = std::string(kMaxNameBytes + 1, 'x');
  bad[3] = named("m");
  bad[3].form = std::string(kMaxFormBytes + 1, 'x');
  bad[4] = named("m");
  bad[4].device = std::string(kMaxDeviceBytes + 1, 'x');
  bad[5].aliases = {std::string(kMaxAliasBytes + 1, 'x')};
  bad[6].fingerprint = std::string(kFingerprintDigits + 1, 'a');
  bad[7].fingerprint = fingerprint(1).substr(0, 8);  // not unique
  for (const Selector& selector : bad) {
    EXPECT_EQ(code(bench.attach(2, selector)), Code::invalid_argument);
    EXPECT_EQ(code(bench.catalog.evict(selector, true, bench.now)), Code::invalid_argument);
  }
  EXPECT_EQ(code(bench.attach(99, named("m"))), Code::invalid_argument);  // no such session
  EXPECT_EQ(bench.attach(2, named("zzzzzzzzzzzz")).error().message, "there is no \"zzzzzzzzzzzz\"");
}

TEST(LimitsTest, Devices) {
  Bench bench;
  for (std::size_t n = 0; n < kMaxDevices; ++n) {
    ASSERT_TRUE(bench.catalog.set_budget(format("GPU-{}", n), 1, bench.now));
  }
  EXPECT_EQ(code(bench.catalog.set_budget("one-more", 1, bench.now)), Code::exhausted);
  EXPECT_EQ(code(bench.begin(1, wanting("m"))), Code::exhausted);
}

}  // namespace
}  // namespace wc::catalog
