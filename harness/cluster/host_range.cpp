#include "harness/cluster/host_range.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

// Enough for row, rack, chassis and blade.
constexpr std::size_t kMaxGroups = 8;

constexpr int kMaxNumber = 99'999'999;

// A range of numbers: 01 to 16 in steps of 2.
struct Run {
  int first = 0, count = 0, step = 1;
  std::size_t digits = 0;
};

// "01-16/5" or "01-16:5": every fifth number.
Run parse_run(std::string_view item, const std::string& what) {
  const std::size_t slash = item.find_first_of("/:");
  const std::string_view range = item.substr(0, slash);
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const int first = parse_number(low, 0, kMaxNumber, what);
  const int last = parse_number(high, 0, kMaxNumber, what);
  if (last < first) fail("{}: the range {} is descending; write LOW-HIGH", what, in_quotes(item));
  const int step = slash == std::string_view::npos ? 1 : parse_number(item.substr(slash + 1), 1, kMaxNumber, what);
  return {.first = first, .count = (last - first) / step + 1, .step = step, .digits = low.size()};
}

// A part of a pattern in brackets, and the text before it.
struct Group {
  std::string_view before;
  std::vector<Run> runs;
  std::size_t count = 0;  // total of numbers in `runs`

  std::string number(std::size_t i) const {
    auto run = runs.begin();
    for (; i >= static_cast<std::size_t>(run->count); ++run) i -= static_cast<std::size_t>(run->count);
    return fmt::format("{:0{}}", run->first + static_cast<int>(i) * run->step, run->digits);
  }
};

Group parse_group(std::string_view before, std::string_view list, const std::string& what) {
  Group group{.before = before, .runs = {}, .count = 0};
  while (true) {
    const std::size_t comma = list.find(',');
    const Run run = parse_run(list.substr(0, comma), what);
    group.count += static_cast<std::size_t>(run.count);
    if (group.count > kMaxHosts) fail("{}: more than {} hosts", what, kMaxHosts);
    group.runs.push_back(run);
    if (comma == std::string_view::npos) return group;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

bool is_plain(std::string_view text, std::string_view others) {
  const auto plain = [others](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && text.size() <= 255 && std::ranges::all_of(text, plain);
}

int parse_number(std::string_view text, int low, int high, const std::string& what) {
  const std::optional<int> value = number_from<int>(text);
  if (!value || *value < low || *value > high) {
    fail("{}: expected a number from {} to {}, got {}", what, low, high, in_quotes(text));
  }
  return *value;
}

std::vector<std::string> expand_host_range(std::string_view pattern, const std::string& where) {
  if (pattern.find_first_of("{}") != std::string_view::npos) {
    std::string brackets(pattern);
    std::ranges::replace(brackets, '{', '[');
    std::ranges::replace(brackets, '}', ']');
    fail("{}: {} has braces; write ranges in brackets: {}", where, in_quotes(pattern), in_quotes(brackets));
  }
  const std::string what = fmt::format("{}: range {}", where, in_quotes(pattern));
  std::vector<Group> groups;
  std::string_view rest = pattern;
  std::size_t count = 1;
  while (true) {
    const std::size_t open = rest.find('['), close = rest.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) break;
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
      fail("{}: unbalanced brackets in {}", where, in_quotes(pattern));
    }
    if (groups.size() == kMaxGroups) fail("{}: more than {} pairs of brackets", what, kMaxGroups);
    groups.push_back(parse_group(rest.substr(0, open), rest.substr(open + 1, close - open - 1), what));
    count *= groups.back().count;
    if (count > kMaxHosts) fail("{}: more than {} hosts", what, kMaxHosts);
    rest.remove_prefix(close + 1);
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    // The last group varies fastest, as in pdsh and Slurm.
    std::string name(rest);
    std::size_t left = i;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      name.insert(0, group->number(left % group->count));
      name.insert(0, group->before);
      left /= group->count;
    }
    out.push_back(std::move(name));
  }
  return out;
}

std::vector<std::string> split_host_list(std::string_view list, const std::string& where) {
  std::vector<std::string> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (list[i] == '[' || list[i] == '{')) ++depth;
    if (i < list.size() && (list[i] == ']' || list[i] == '}')) --depth;
    if (i < list.size() && (list[i] != ',' || depth != 0)) continue;
    if (i == start) fail("{}: {} contains an empty name", where, in_quotes(list));
    if (out.size() == kMaxHosts) fail("{}: more than {} hosts", where, kMaxHosts);
    out.emplace_back(list.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

}  // namespace verbscope
