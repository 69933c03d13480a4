// One header as a test case: parsed from the bytes of a whole file, accepted or refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/header.hpp"

namespace wc::checkpoint {

inline Result<Header> parse_header(std::string_view file, const HeaderRules& rules = {}) {
  HeaderParser parser;
  return parser.parse(std::as_bytes(std::span(file)), file.size(), rules);
}

inline void expect_refused(std::string_view file, std::string_view message,
                           const HeaderRules& rules = {}) {
  const auto header = parse_header(file, rules);
  ASSERT_FALSE(header) << message;
  EXPECT_EQ(header.error().code, Code::corrupt);
  EXPECT_THAT(header.error().message, ::testing::HasSubstr(std::string(message)));
}

inline void expect_accepted(std::string_view file, const HeaderRules& rules = {}) {
  const auto header = parse_header(file, rules);
  EXPECT_TRUE(header) << header.error().message;
}

}  // namespace wc::checkpoint
