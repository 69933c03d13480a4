// Aligned columns that fit the terminal. Where there is less room than text, long names are clipped
// first, then the columns that people miss least are left out; without a terminal nothing is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace wc::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  bool shrinks = false;  // its texts may be clipped
  bool drops = false;    // may be left out; the rightmost goes first
};

struct Cell {
  std::string text;
  Colour colour = Colour::none;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as there are columns. Texts are made printable here.
  void add(std::vector<Cell> row);
  /// With the titles, each line ended by a newline.
  [[nodiscard]] std::string render(const Terminal& terminal) const;

 private:
  [[nodiscard]] std::vector<std::size_t> natural_widths() const;
  [[nodiscard]] std::string line(const std::vector<Cell>& row,
                                 const std::vector<std::size_t>& widths,
                                 const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace wc::cli
