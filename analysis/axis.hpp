// The axes of a figure: range, ticks, tick labels and title.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace verbscope {

struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  // Position of `value` on the axis: 0 at `low`, 1 at `high`.
  double position_of(double value) const;
};

// True if the values suit a logarithmic axis better than a linear one: at least three values, all above 0, largest at
// least 8 times the smallest.
bool is_geometric(const std::set<double>& values);

// Axis for an option. It extends slightly beyond the first and the last value (but not below 0 unless a value is
// negative) and has a tick at each value. Precondition: `values` is not empty; on a logarithmic axis all values are
// above 0.
Axis option_axis(const std::set<double>& values, bool logarithmic);

// Axis for results between `lowest` and `highest`, with at most `max_ticks` ticks at round numbers. A linear axis
// starts at 0 unless a value is negative and ends at a round number; a logarithmic one starts and ends at 1, 2 or 5
// times a power of 10.
Axis result_axis(double lowest, double highest, bool logarithmic, std::size_t max_ticks);

// Tick label: "64k" for bytes, else the plain number.
std::string tick_text(double value, bool bytes);

// The ticks whose labels fit, always with the first and the last. `room`: letters that fit along the whole axis.
std::vector<double> ticks_with_room(const Axis& axis, bool bytes, double room);

// "payload (bytes)" for the option "size", "rate (Mops)" for the result "rate_mops". An unlisted key is split at its
// unit: "get_lat_p50_ns" gives "get lat p50 (ns)". Counts, such as threads, have no unit.
std::string axis_title(const std::string& key);

}  // namespace verbscope
