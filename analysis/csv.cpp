#include "analysis/csv.hpp"

#include <fmt/format.h>

#include <charconv>

#include "common/terminal.hpp"

namespace verbscope {
namespace {

bool is_number(const std::string& cell) {
  double value = 0;
  const char* end = cell.data() + cell.size();
  return std::from_chars(cell.data(), end, value).ptr == end;
}

std::string csv_cell(const std::string& text) {
  std::string cell = for_terminal(text);
  if (!cell.empty() && std::string_view("=+-@").find(cell.front()) != std::string_view::npos && !is_number(cell)) {
    cell.insert(cell.begin(), '\'');
  }
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return line + "\r\n";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace verbscope
