// A table of text for a terminal: grouped columns under two header lines, as wide as its widest cells, or as there is
// room.
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
  void add_note(std::vector<std::string> cells, const std::string& text);
  // Adds a line across the table.
  void add_heading(const std::string& text);

  // The whole table; groups are separated by " | ". Ends with a newline. Where it would be wider than `width` (0: no
  // limit), long texts go over several lines; columns that still have no room follow in further tables, each of which
  // begins with the first group, or where that is wide itself, with the number of the row. Nothing is cut.
  std::string text(std::size_t width = 0) const;

 private:
  struct Line {
    std::vector<std::string> cells;
    std::string rest;  // instead of the cells that are missing
  };
  struct Column {
    std::size_t group;
    const TableColumn* words;
  };
  // Some of the columns, beside each other.
  struct Part {
    std::vector<std::size_t> columns, widths;
  };

  std::vector<Column> columns() const;
  std::vector<std::size_t> cell_widths() const;
  std::vector<Part> parts(std::size_t width) const;
  // The parts of a table that has no room, and whose first group has `key` columns.
  std::vector<Part> split(std::size_t width, const std::vector<std::size_t>& natural, std::size_t key) const;
  // `natural` are the widths of all columns.
  Part part_of(std::vector<std::size_t> columns, const std::vector<std::size_t>& natural) const;
  std::size_t width_of(const Part& part) const;
  // The same table with the number of its row before each row.
  TextTable numbered() const;

  std::string part_text(const Part& part, std::size_t first_missing, std::size_t width) const;
  std::string rows_text(const Part& part, const std::vector<std::string>& cells) const;
  std::string note_text(const Part& part, const Line& line, std::size_t width) const;
  std::string group_header(const Part& part) const;
  std::string separator(const Part& part, std::size_t i) const;

  std::vector<TableGroup> groups_;
  std::vector<Line> lines_;
};

// Three digits or more, as many as are no noise; "-" for nothing.
std::string number_text(const std::optional<double>& value);

}  // namespace verbscope
