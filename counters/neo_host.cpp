#include "counters/neo_host.hpp"

#include <charconv>

namespace verbscope {

namespace {

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// For "|| name || value ||| name || value [unit] ||": removes and returns the cell before the next bars, and removes
// the bars.
std::string_view take_cell(std::string_view& line) {
  const std::size_t bars = std::min(line.size(), line.find('|'));
  const std::string_view cell = without_blanks(line.substr(0, bars));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of('|', bars)));
  return cell;
}

}  // namespace

LineKind NeoHostFormat::take(const Fields& fields, Sums& sums) {
  // Names contain no commas, so a line with a comma is no row.
  if (fields.size() != 1 || !fields[0].starts_with("||")) return LineKind::text;
  std::string_view line = fields[0].substr(2);
  const std::string name(take_cell(line));
  if (name == "Counter Name") {
    seen_ = true;
    return LineKind::header;
  }
  if (!seen_ || name.empty() || name.starts_with('-') || name.starts_with('=')) return LineKind::text;
  const std::string_view value = take_cell(line);
  const std::string analysis(take_cell(line));
  if (const std::string_view text = take_cell(line); !text.empty()) {
    const std::size_t bracket = text.find('[');
    const std::string_view number = without_blanks(text.substr(0, bracket));
    double parsed = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed);
    if (error == std::errc{} && end == number.data() + number.size() && bracket != text.npos) {
      analysis_[analysis + " " + std::string(text.substr(bracket))] = parsed;
    }
  }
  std::uint64_t count = 0;
  if (parse_count(value, count)) return add_count(sums, name, count) ? LineKind::row : LineKind::damaged;
  // The chip's clock is a number with decimals, not a count.
  double gauge = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), gauge);
  if (error != std::errc{} || end != value.data() + value.size() || value.empty()) return LineKind::damaged;
  analysis_[name] = gauge;
  return LineKind::row;
}

std::string NeoHostFormat::blind() const {
  return "which program of the device it was; PCIe transactions; numbers are taken for events a second, as no public "
         "document says of what time they are";
}

}  // namespace verbscope
