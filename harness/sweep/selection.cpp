#include "harness/sweep/selection.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "common/files.hpp"
#include "common/record.hpp"

namespace verbscope {
namespace {

// The keys of the points in the file, all or only those that are ok; empty if it is not a regular file.
std::set<std::string> points_in(const std::filesystem::path& path, bool only_ok) {
  std::set<std::string> keys;
  if (!std::filesystem::is_regular_file(path)) return keys;
  const Results results = read_results_warning(path);
  for (const Record& record : results.records) {
    if ((record.status == RecordStatus::ok || !only_ok) && record.config.contains("point")) {
      keys.insert(point_key(record.config.at("point")));
    }
  }
  return keys;
}

std::set<std::string> lines_of(const std::filesystem::path& path) {
  std::set<std::string> lines;
  std::istringstream in(read_text_file(path));
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

}  // namespace

Share parse_share(const std::string& text) {
  Share share;
  const char* const end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, share.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, share.count);
    if (count.ec == std::errc() && count.ptr == end && share.index < share.count) return share;
  }
  fail_usage("--share: expected I/N with I below N, got \"{}\"", text);
}

Selection select_points(const SelectOptions& options, const Sweep& sweep, const std::string& fabric,
                        const std::filesystem::path& results) {
  Selection selection{.points = expand_sweep(sweep, fabric), .finished = 0};
  const auto key = [&fabric](const Point& point) { return point_key(point_identity(point, fabric)); };
  if (!options.points.empty()) {
    const std::set<std::string> wanted = lines_of(options.points);
    std::erase_if(selection.points, [&](const Point& p) { return !wanted.contains(key(p)); });
    if (selection.points.empty())
      fail("--points {}: no line is a point of {} on {}", options.points, sweep.where, fabric);
  }
  std::size_t place = 0;
  std::erase_if(selection.points, [&](const Point&) { return place++ % options.share.count != options.share.index; });
  if (options.append) return selection;
  const std::set<std::string> there = points_in(results, options.resume);
  const auto is_there = [&](const Point& point) { return there.contains(key(point)); };
  if (options.resume) {
    selection.finished = std::erase_if(selection.points, is_there);
  } else if (const auto count = std::ranges::count_if(selection.points, is_there); count > 0) {
    fail_usage("{} has {} of these {} points: --resume runs those that are not ok there, --append runs all again",
               results.string(), count, selection.points.size());
  }
  return selection;
}

}  // namespace verbscope
