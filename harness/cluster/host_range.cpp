#include "harness/cluster/host_range.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "harness/cluster/host_words.hpp"

namespace verbscope {
namespace {

// The part of a range inside the brackets: "01-16,20" gives 01 ... 16 20.
std::vector<std::string> expand_list(std::string_view list, const std::string& what) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const std::size_t dash = item.find('-');
    const std::string_view low = item.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : item.substr(dash + 1);
    const int first = parse_number(low, 0, 99'999'999, what);
    const int last = parse_number(high, 0, 99'999'999, what);
    if (last < first) fail("{}: the range {} runs backwards", what, in_quotes(item));
    if (static_cast<std::size_t>(last - first) >= kMaxHosts - std::min(out.size(), kMaxHosts - 1)) {
      fail("{}: more than {} hosts", what, kMaxHosts);
    }
    for (int n = first; n <= last; ++n) out.push_back(fmt::format("{:0{}}", n, low.size()));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<std::string> expand_host_range(const std::string& pattern, const std::string& where) {
  const std::size_t open = pattern.find('[');
  const std::size_t close = pattern.find(']');
  if (open == std::string::npos && close == std::string::npos) return {pattern};
  if (open == std::string::npos || close == std::string::npos || close < open) {
    fail("{}: the brackets of {} do not pair", where, in_quotes(pattern));
  }
  const std::string what = fmt::format("{}: range {}", where, in_quotes(pattern));
  std::vector<std::string> out;
  for (const std::string& tail : expand_host_range(pattern.substr(close + 1), where)) {
    for (const std::string& number : expand_list(std::string_view(pattern).substr(open + 1, close - open - 1), what)) {
      if (out.size() == kMaxHosts) fail("{}: more than {} hosts", what, kMaxHosts);
      out.push_back(pattern.substr(0, open) + number + tail);
    }
  }
  return out;
}

std::vector<std::string> split_host_list(std::string_view list, const std::string& where) {
  std::vector<std::string> out;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth != 0)) continue;
    if (i == start) fail("{}: {} has an empty name", where, in_quotes(list));
    out.emplace_back(list.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

std::vector<std::string> expand_host_list(std::string_view list, const std::string& where) {
  std::vector<std::string> out;
  for (const std::string& pattern : split_host_list(list, where)) {
    for (std::string& name : expand_host_range(pattern, where)) {
      if (out.size() == kMaxHosts) fail("{}: more than {} hosts", where, kMaxHosts);
      out.push_back(std::move(name));
    }
  }
  return out;
}

}  // namespace verbscope
