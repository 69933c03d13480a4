#include "cli/table.hpp"

#include <algorithm>
#include <utility>

#include "cli/text.hpp"

namespace wc::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeftOut = 0;  // the width of a column that is not shown

std::size_t total(const std::vector<std::size_t>& widths) {
  std::size_t sum = 0;
  for (const std::size_t width : widths) sum += width == kLeftOut ? 0 : width + kGap;
  return sum == 0 ? 0 : sum - kGap;
}

// Takes from the widest column that may shrink, down to `floor`, until the table fits.
void shrink(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t limit,
            std::size_t floor) {
  while (total(widths) > limit) {
    std::size_t* widest = nullptr;
    for (std::size_t at = 0; at < widths.size(); ++at) {
      const std::size_t least = std::max(floor, columns[at].title.size());
      if (!columns[at].shrinks || widths[at] <= least) continue;
      if (widest == nullptr || widths[at] > *widest) widest = &widths[at];
    }
    if (widest == nullptr) return;
    --*widest;
  }
}

void leave_out(std::vector<std::size_t>& widths, const std::vector<Column>& columns,
               std::size_t limit) {
  for (std::size_t at = widths.size(); at-- > 0 && total(widths) > limit;) {
    if (columns[at].drops) widths[at] = kLeftOut;
  }
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row) cell.text = printable(cell.text);
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::natural_widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t at = 0; at < columns_.size(); ++at) {
    std::size_t width = columns_[at].title.size();
    for (const auto& row : rows_) width = std::max(width, cells(row[at].text));
    widths.push_back(width);
  }
  return widths;
}

std::string Table::line(const std::vector<Cell>& row, const std::vector<std::size_t>& widths,
                        const Terminal& terminal) const {
  std::string out;
  std::size_t owed = 0;  // spaces due before the next text, so that no line ends in some
  for (std::size_t at = 0; at < row.size(); ++at) {
    if (widths[at] == kLeftOut) continue;
    const std::string text = clipped(row[at].text, widths[at]);
    const std::size_t slack = widths[at] - cells(text);
    if (columns_[at].align == Align::right) owed += slack;
    if (!text.empty()) {
      out.append(std::exchange(owed, 0), ' ');
      out += painted(text, row[at].colour, terminal);
    }
    if (columns_[at].align == Align::left) owed += slack;
    owed += kGap;
  }
  return out + '\n';
}

std::string Table::render(const Terminal& terminal) const {
  constexpr std::size_t kComfortable = 16;
  constexpr std::size_t kLeast = 4;
  auto widths = natural_widths();
  if (terminal.columns > 0) {
    shrink(widths, columns_, terminal.columns, kComfortable);
    leave_out(widths, columns_, terminal.columns);
    shrink(widths, columns_, terminal.columns, kLeast);
  }
  std::vector<Cell> titles;
  titles.reserve(columns_.size());
  for (const auto& column : columns_) titles.push_back({column.title, Colour::bold});
  std::string out = line(titles, widths, terminal);
  for (const auto& row : rows_) out += line(row, widths, terminal);
  return out;
}

}  // namespace wc::cli
