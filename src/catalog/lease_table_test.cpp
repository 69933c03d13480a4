#include "catalog/lease_table.hpp"

#include <set>

#include <gtest/gtest.h>

namespace wc::catalog {
namespace {

TEST(LeaseTableTest, IdsAreNeverGivenTwice) {
  LeaseTable table;
  Session session;
  std::set<LeaseId> seen;
  for (int n = 0; n < 1'000; ++n) {
    const LeaseId id = table.add(session, {}, 0);
    EXPECT_TRUE(seen.insert(id).second);
    table.remove(id);
    EXPECT_EQ(table.find(id), nullptr);
  }
  EXPECT_EQ(table.slots(), 1U);  // and nothing grows
  EXPECT_EQ(table.find(LeaseId::none), nullptr);
  EXPECT_EQ(table.find(LeaseId{UINT64_MAX}), nullptr);
}

TEST(LeaseTableTest, SessionsKeepTheirOwn) {
  LeaseTable table;
  Session one;
  Session two;
  const LeaseId a = table.add(one, {}, 0);
  const LeaseId b = table.add(two, {}, 0);
  const LeaseId c = table.add(one, {}, 0);
  const LeaseId d = table.add(one, {}, 0);
  table.remove(c);
  EXPECT_EQ(one.leases, 2U);
  std::set<LeaseId> left;
  while (one.leases != 0) {
    left.insert(table.first_of(one));
    table.remove(table.first_of(one));
  }
  EXPECT_EQ(left, (std::set<LeaseId>{a, d}));
  EXPECT_EQ(table.first_of(one), LeaseId::none);
  EXPECT_EQ(table.first_of(two), b);
  EXPECT_EQ(table.size(), 1U);
}

}  // namespace
}  // namespace wc::catalog
