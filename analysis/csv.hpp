// Comma-separated values as RFC 4180 has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

// One line with its newline; cells with commas, quotes or line ends are quoted. A spreadsheet takes a cell that begins
// with = + - or @ for a formula: a text that does gets a leading apostrophe, a number stays. Control characters but
// line ends are escaped.
std::string csv_line(const std::vector<std::string>& cells);
// Shortest digits that read back as the same number; empty for nothing.
std::string csv_number(const std::optional<double>& value);

}  // namespace verbscope
