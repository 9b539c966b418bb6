// Comma-separated values (RFC 4180).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace verbscope {

// One line with its newline. Cells with commas, quotes or line ends are quoted. A text that begins with = + - or @ gets
// a leading apostrophe, because a spreadsheet would read it as a formula; a number stays as it is. Control characters
// other than line ends are escaped.
std::string csv_line(const std::vector<std::string>& cells);
// The shortest digits that read back as the same number; empty if there is no value.
std::string csv_number(const std::optional<double>& value);

}  // namespace verbscope
