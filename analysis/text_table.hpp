// Tables as text: grouped columns for a terminal, under two header lines and as wide as the widest cells or as the
// terminal; or comma-separated values (RFC 4180).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

struct TableColumn {
  std::string header;  // this column's header, on the second line
  bool left = false;   // aligned to the left
  std::string top{};   // header on the first line, if the group has none
};

struct TableGroup {
  std::string header;  // on the first line, above its columns; empty: each column has its own
  std::vector<TableColumn> columns;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableGroup> groups) : groups_(std::move(groups)) {}

  // Adds a row with one cell per column, in order. Control characters are escaped in all three functions.
  void add_row(std::vector<std::string> cells);
  // Adds a row that begins with `cells` and ends with free text.
  void add_note(std::vector<std::string> cells, const std::string& text);
  // Adds a line across the table.
  void add_heading(const std::string& text);

  // The whole table. Groups are separated by " | ". Ends with a newline. If it is wider than `width` (0: unlimited),
  // long texts wrap. Columns that still do not fit follow in further tables, which begin with the first group, or with
  // row numbers if that group is wide. Nothing is cut off.
  std::string text(std::size_t width = 0) const;

 private:
  struct Line {
    std::vector<std::string> cells;
    std::string rest;  // replaces the missing cells
  };
  struct Column {
    std::size_t group;
    const TableColumn* words;
  };
  // Columns that are printed next to each other.
  struct Part {
    std::vector<std::size_t> columns, widths;
  };

  std::vector<Column> columns() const;
  std::vector<std::size_t> cell_widths() const;
  std::vector<Part> parts(std::size_t width) const;
  // The parts of a table that does not fit. `key`: number of columns of the first group.
  std::vector<Part> split(std::size_t width, const std::vector<std::size_t>& natural, std::size_t key) const;
  // `natural`: the widths of all columns.
  Part part_of(std::vector<std::size_t> columns, const std::vector<std::size_t>& natural) const;
  std::size_t width_of(const Part& part) const;
  // The same table with row numbers.
  TextTable numbered() const;

  std::string part_text(const Part& part, std::size_t first_missing, std::size_t width) const;
  std::string rows_text(const Part& part, const std::vector<std::string>& cells) const;
  std::string note_text(const Part& part, const Line& line, std::size_t width) const;
  std::string group_header(const Part& part) const;
  std::string separator(const Part& part, std::size_t i) const;

  std::vector<TableGroup> groups_;
  std::vector<Line> lines_;
};

// At least three digits, and all that are significant; "-" if there is no value.
std::string number_text(const std::optional<double>& value);

// One line with its newline. Cells with commas, quotes or line ends are quoted. A text that begins with = + - or @ gets
// a leading apostrophe, because a spreadsheet would read it as a formula; a number stays as it is. Control characters
// other than line ends are escaped.
std::string csv_line(const std::vector<std::string>& cells);
// The shortest digits that read back as the same number; empty if there is no value.
std::string csv_number(const std::optional<double>& value);

}  // namespace verbscope
