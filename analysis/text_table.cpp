#include "analysis/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/digits.hpp"
#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr const char* kGroupSeparator = " | ";

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void TextTable::add_row(std::vector<std::string> cells) {
  add_note(std::move(cells), "");
}

void TextTable::add_note(std::vector<std::string> cells, std::string text) {
  for (std::string& cell : cells) cell = on_one_line(cell);
  lines_.push_back({std::move(cells), on_one_line(text)});
}

void TextTable::add_heading(std::string text) {
  lines_.push_back({{}, on_one_line(text)});
}

// The last column of a group takes what its group's header needs more.
std::vector<std::size_t> TextTable::column_widths() const {
  std::vector<std::size_t> widths;
  for (const TableGroup& group : groups_) {
    std::size_t group_width = group.columns.size() - 1;
    for (const TableColumn& column : group.columns) {
      std::size_t width = std::max(column.header.size(), group.header.empty() ? column.top.size() : 0);
      for (const Line& line : lines_) {
        if (widths.size() < line.cells.size()) width = std::max(width, line.cells[widths.size()].size());
      }
      widths.push_back(width);
      group_width += width;
    }
    if (group.header.size() > group_width) widths.back() += group.header.size() - group_width;
  }
  return widths;
}

std::string TextTable::line_text(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string out;
  std::size_t i = 0;
  for (const TableGroup& group : groups_) {
    for (const TableColumn& column : group.columns) {
      if (i == cells.size()) return out;
      if (i > 0) out += &column == &group.columns.front() ? kGroupSeparator : " ";
      out += column.left ? fmt::format("{:<{}}", cells[i], widths[i]) : fmt::format("{:>{}}", cells[i], widths[i]);
      ++i;
    }
  }
  return out;
}

std::string TextTable::group_header(const std::vector<std::size_t>& widths) const {
  std::string out;
  std::size_t i = 0;
  for (const TableGroup& group : groups_) {
    if (i > 0) out += kGroupSeparator;
    std::size_t width = group.columns.size() - 1;
    std::string tops;
    for (const TableColumn& column : group.columns) {
      width += widths[i];
      tops += fmt::format("{}{:>{}}", tops.empty() ? "" : " ", column.top, widths[i++]);
    }
    out += group.header.empty() ? tops : fmt::format("{:<{}}", group.header, width);
  }
  return out;
}

std::string TextTable::text() const {
  const std::vector<std::size_t> widths = column_widths();
  std::vector<std::string> headers;
  for (const TableGroup& group : groups_) {
    for (const TableColumn& column : group.columns) headers.push_back(column.header);
  }
  std::string out = without_trailing_blanks(group_header(widths)) + '\n';
  const std::string second = line_text(headers, widths);
  out += without_trailing_blanks(second) + '\n' + std::string(second.size(), '-') + '\n';
  for (const Line& line : lines_) {
    std::string text = line_text(line.cells, widths);
    if (!line.rest.empty()) text += (text.empty() ? "" : kGroupSeparator) + line.rest;
    out += without_trailing_blanks(text) + '\n';
  }
  return out;
}

std::string number_text(const std::optional<double>& value) {
  if (!value) return "-";
  const double v = std::abs(*value);
  const int decimals = v >= 100 ? 1 : v >= 1 || v == 0 ? 2 : v >= 0.1 ? 3 : 4;
  return with_digits(*value, decimals);
}

}  // namespace verbscope
