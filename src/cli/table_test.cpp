#include "cli/table.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "cli/text.hpp"

namespace wc::cli {
namespace {

Table models() {
  Table table({{.title = "NAME", .shrinks = true},
               {.title = "SIZE", .align = Align::right},
               {.title = "NOTE", .drops = true}});
  table.add({{"llama-8b"}, {"15.0 GiB"}, {"first"}});
  table.add({{"a-name-that-is-longer-than-most"}, {"1 B"}, {""}});
  return table;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, cells(line));
  return widest;
}

TEST(TableTest, ColumnsAreAlignedAndNoLineEndsInSpaces) {
  EXPECT_EQ(models().render({}),
            "NAME                                 SIZE  NOTE\n"
            "llama-8b                         15.0 GiB  first\n"
            "a-name-that-is-longer-than-most       1 B\n");
}

TEST(TableTest, FitsTheTerminalByClippingThenLeavingOut) {
  for (std::size_t columns = 18; columns < 60; ++columns) {
    const std::string text = models().render({.interactive = true, .columns = columns});
    EXPECT_LE(widest_line(text), columns) << text;
  }
  const std::string wide = models().render({.interactive = true, .columns = 40});
  EXPECT_NE(wide.find("NOTE"), std::string::npos) << wide;
  const std::string narrow = models().render({.interactive = true, .columns = 26});
  EXPECT_EQ(narrow.find("NOTE"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("15.0 GiB"), std::string::npos) << narrow;
}

TEST(TableTest, ColoursDoNotMoveColumns) {
  Table table({{.title = "STATE"}, {.title = "N", .align = Align::right}});
  table.add({{"published", Colour::green}, {"1"}});
  EXPECT_EQ(table.render({.interactive = true, .colours = true, .columns = 80}),
            "\x1b[1mSTATE\x1b[0m      \x1b[1mN\x1b[0m\n\x1b[32mpublished\x1b[0m  1\n");
  EXPECT_EQ(table.render({}), "STATE      N\npublished  1\n");
}

TEST(TableTest, TextsOfOthersCannotSteerTheTerminal) {
  Table table({{.title = "NAME"}});
  table.add({{"evil\x1b]0;owned\x07"}});
  EXPECT_EQ(table.render({}), "NAME\nevil\\x1b]0;owned\\x07\n");
}

}  // namespace
}  // namespace wc::cli
