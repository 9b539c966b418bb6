// The axes of a figure: range, ticks, and the texts at them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace verbscope {

struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  // The place of a value, 0 at `low` and 1 at `high`.
  double place(double value) const;
};

// Whether values are spread more evenly on a logarithmic axis than on a linear one: three or more, all above 0, over
// a factor of 8 at least.
bool is_geometric(const std::set<double>& values);

// An axis of an option: it ends just beyond the first and the last value, but not below 0 for values that are not, and
// has its ticks at the values. Values are not empty; above 0 on a logarithmic axis.
Axis option_axis(const std::set<double>& values, bool logarithmic);

// An axis of results from `lowest` to `highest`: from 0, if nothing is below, to a round number, with at most
// `most_ticks` ticks at round numbers; a logarithmic one begins and ends at 1, 2 or 5 times a power of 10.
Axis result_axis(double lowest, double highest, bool logarithmic, std::size_t most_ticks);

// The text at a tick: "64k" for bytes, else the number.
std::string tick_text(double value, bool bytes);

// The ticks whose texts have room: `room` of letters are on the whole axis. The first and the last stay.
std::vector<double> ticks_with_room(const Axis& axis, bool bytes, double room);

}  // namespace verbscope
