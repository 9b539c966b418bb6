#include "harness/sweep/load_sweep.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <sstream>

#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/formula.hpp"

namespace verbscope {
namespace {

bool is_benchmark(const std::string& name) {
  const std::vector<std::string> names = benchmark_names();
  return std::ranges::find(names, name) != names.end();
}

// Converts `text` to a value of the option; keeps formulas as text.
Json value_of(const OptionSpec& option, const std::string& text, const std::string& where) {
  return takes_formulas(option) && is_formula(text) ? Json(text) : option_value_from_text(option, text, where);
}

// Splits "key=text" and checks it with the sweep's first benchmark; check_sweep checks the others.
void apply(Sweep& sweep, const std::string& setting, const std::string& option_word,
           const std::function<void(const OptionSpec& option, const std::string& text)>& set) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail_usage("{}: expected key=value, got \"{}\"", option_word, setting);
  }
  const std::string key = option_name(setting.substr(0, equals));
  if (is_reserved_option(key)) fail_usage("{}: \"{}\" is set by verbscope and cannot be changed", option_word, key);
  set(sweep.specs.at(sweep.benchmarks.front()).require(key, option_word), setting.substr(equals + 1));
}

void apply_settings(Sweep& sweep, const LoadOptions& options) {
  for (const std::string& setting : options.set) {
    apply(sweep, setting, "--set", [&sweep](const OptionSpec& option, const std::string& text) {
      override_key(sweep, option.name, value_of(option, text, "--set"));
    });
  }
  for (const std::string& setting : options.vary) {
    apply(sweep, setting, "--vary", [&sweep](const OptionSpec& option, const std::string& text) {
      std::vector<Json> values;
      for (const std::string& each : split(text, ',')) values.push_back(value_of(option, each, "--vary"));
      vary_key(sweep, option.name, std::move(values));
    });
  }
}

void check_clusters(const std::vector<std::string>& fabrics, const std::string& where) {
  for (const std::string& fabric : fabrics) {
    if (!is_simulated(fabric)) continue;
    try {
      find_config("clusters", fabric.substr(kSimulatedPrefix.size()));
    } catch (const Error& error) {
      fail("{}: fabrics: \"{}\": {}", where, fabric, error.what());
    }
  }
}

Sweep read_sweep(const std::string& name) {
  if (const auto path = sweep_file(name)) return parse_sweep(read_text_file(*path), path->string());
  Sweep sweep;
  sweep.where = name;
  sweep.benchmarks = split(name, ',');
  return sweep;
}

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

std::optional<std::filesystem::path> sweep_file(const std::string& name) {
  const std::vector<std::string> names = split(name, ',');
  if (std::ranges::all_of(names, is_benchmark)) return std::nullopt;
  const std::vector<std::string> sweeps = list_configs("sweeps");
  const std::string meant = did_you_mean(name, benchmark_names());
  const bool near_sweep = !did_you_mean(name, sweeps).empty() || name.find_first_of("/.") != std::string::npos;
  if (!near_sweep && !meant.empty()) fail_usage("unknown sweep or benchmark \"{}\"{}", name, meant);
  return find_config("sweeps", name);
}

Sweep load_sweep(const LoadOptions& options, const std::filesystem::path& folder) {
  Sweep sweep = read_sweep(options.sweep);
  check_clusters(sweep.fabrics, sweep.where);
  for (const SweepPoint& point : sweep.points) check_clusters(point.fabrics, sweep.where + ": points");
  for (const std::string& name : sweep.benchmarks) {
    try {
      sweep.specs.emplace(name, describe_benchmark(benchmark_binary(folder, name)));
    } catch (const Error& error) {
      fail("{}: \"benchmark\": {}", sweep.where, error.what());
    }
  }
  try {
    apply_settings(sweep, options);
  } catch (const Error& error) {
    throw UsageError(error.what());  // the mistake is on the command line, not in the file
  }
  if (options.seed) sweep.seed = *options.seed;
  if (options.repetitions) sweep.repetitions = *options.repetitions;
  for (const auto& [name, spec] : std::map(sweep.specs)) check_sweep(sweep, spec);
  return sweep;
}

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
    fail_usage(
        "{} already contains {} of these {} points: --resume runs those that are not ok, --append runs all again",
        results.string(), count, selection.points.size());
  }
  return selection;
}

}  // namespace verbscope
