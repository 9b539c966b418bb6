// A table of text for a terminal: grouped columns under two header lines, as wide as its widest cells.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

struct TableColumn {
  std::string header;  // this column's header, on the second line
  bool left = false;   // aligned to the left
  std::string top{};   // first line, where the group has no header
};

struct TableGroup {
  std::string header;  // above its columns, first line; empty: each column has its own
  std::vector<TableColumn> columns;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableGroup> groups) : groups_(std::move(groups)) {}

  // Adds a row; it has a cell for each column, in order. Control characters are escaped, here as in the others.
  void add_row(std::vector<std::string> cells);
  // A row whose first `cells` are given and the rest of which is free text.
  void add_note(std::vector<std::string> cells, std::string text);
  // Adds a line across the table.
  void add_heading(std::string text);

  // The whole table; groups are separated by " | ". Ends with a newline.
  std::string text() const;

 private:
  struct Line {
    std::vector<std::string> cells;
    std::string rest;  // instead of the cells that are missing
  };
  std::vector<std::size_t> column_widths() const;
  std::string line_text(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;
  std::string group_header(const std::vector<std::size_t>& widths) const;

  std::vector<TableGroup> groups_;
  std::vector<Line> lines_;
};

// Three digits or more, as many as are no noise; "-" for nothing.
std::string number_text(const std::optional<double>& value);

}  // namespace verbscope
