#include "harness/run_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "common/paths.hpp"
#include "harness/benchmarks.hpp"
#include "harness/point_runner.hpp"
#include "harness/progress.hpp"
#include "harness/text_file.hpp"

namespace verbscope {
namespace {

void apply_set(Sweep& sweep, const BenchmarkSpec& spec, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) fail("--set: expected key=value, got \"{}\"", setting);
    const std::string key = option_name(setting.substr(0, equals));
    override_key(sweep, key, option_value_from_text(spec.require(key, "--set"), setting.substr(equals + 1), "--set"));
  }
}

// Opens the sweep and applies what the command line says of it.
Sweep load_sweep(const RunOptions& options, const std::filesystem::path& folder, BenchmarkSpec& spec) {
  const std::filesystem::path path = find_config("sweeps", options.sweep);
  Sweep sweep = parse_sweep(read_text_file(path), path.string());
  spec = describe_benchmark(benchmark_binary(folder, sweep.benchmark));
  apply_set(sweep, spec, options.set);
  check_sweep(sweep, spec);
  if (options.seed) sweep.seed = *options.seed;
  if (options.repetitions) sweep.repetitions = *options.repetitions;
  return sweep;
}

// The keys of the points that are ok in the file; none when there is no file.
std::set<std::string> finished_points(const std::filesystem::path& path) {
  std::set<std::string> keys;
  if (!std::filesystem::exists(path)) return keys;
  const Results results = read_results(path);
  for (const std::string& warning : results.warnings) fmt::print(stderr, "verbscope: warning: {}\n", warning);
  for (const Record& record : results.records) {
    if (record.status == RecordStatus::ok && record.config.contains("point")) {
      keys.insert(point_key(record.config.at("point")));
    }
  }
  return keys;
}

// What tells the points of this sweep apart, and nothing else: "post_list=16 size=60 #2".
class PointNames {
 public:
  explicit PointNames(const std::vector<Point>& points) {
    for (const Point& point : points) {
      repeated_ = repeated_ || point.repetition > 0;
      for (const auto& [key, value] : point.params.items()) {
        const Json& first = points.front().params;
        if (!first.contains(key) || first.at(key) != value) varying_.insert(key);
      }
      for (const auto& [key, value] : points.front().params.items()) {
        if (!point.params.contains(key)) varying_.insert(key);
      }
    }
  }

  std::string name(const std::string& benchmark, const Point& point) const {
    std::string text = benchmark;
    for (const auto& [key, value] : point.params.items()) {
      if (varying_.contains(key)) text += " " + option_argument(key, value).substr(2);
    }
    return repeated_ ? fmt::format("{} #{}", text, point.repetition + 1) : text;
  }

 private:
  std::set<std::string> varying_;
  bool repeated_ = false;
};

}  // namespace

std::filesystem::path results_path(const std::string& out, const std::string& name) {
  if (!out.empty()) return out;
  const std::filesystem::path folder = "results/local";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("cannot make the folder {}: {}", folder.string(), error.message());
  return folder / (name + ".jsonl");
}

std::string outcome_text(const Record& record) {
  if (record.status == RecordStatus::failed) return "FAILED: " + record.reason;
  const auto rate = record.result.find("rate_mops");
  if (rate == record.result.end() || !rate->is_number()) return "ok";
  return fmt::format("{:.2f} Mops", rate->get<double>());
}

int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  BenchmarkSpec spec;
  const Sweep sweep = load_sweep(options, folder, spec);
  const RunTarget target = parse_target(options.hosts);
  std::vector<Point> points = expand_sweep(sweep, target.fabric);
  const PointNames names(points);
  const std::filesystem::path path = results_path(options.out, std::filesystem::path(options.sweep).stem().string());
  const PointRunner runner(benchmark_binary(folder, sweep.benchmark), spec, target, options.timeout, &interrupt);
  std::size_t skipped = 0;
  if (options.resume) {
    const std::set<std::string> finished = finished_points(path);
    skipped = std::erase_if(points, [&](const Point& p) { return finished.contains(point_key(runner.identity(p))); });
  }
  ResultsWriter writer(path);
  fmt::print(out, "{} on {}{}: {} points{}\n", sweep.benchmark, target.fabric,
             target.fabric.starts_with("sim:") ? " (simulated)" : "", points.size(),
             skipped ? fmt::format(", {} more are in {} already", skipped, path.string()) : "");
  Progress progress(points.size(), out, isatty(fileno(out)) == 1);
  std::size_t failures = 0;
  for (const Point& point : points) {
    const std::string name = names.name(sweep.benchmark, point);
    progress.started(name);
    const auto start = std::chrono::steady_clock::now();
    const std::optional<Record> record = interrupt.pending() ? std::nullopt : runner.run(point);
    if (!record) {
      fmt::print(out, "\ninterrupted: the points that had ended are in {}; --resume does the rest\n", path.string());
      return kExitInterrupted;
    }
    writer.append(*record);
    if (record->status == RecordStatus::failed) ++failures;
    progress.finished(name, outcome_text(*record), std::chrono::steady_clock::now() - start);
  }
  if (failures > 0) fmt::print(out, "{} of {} points failed\n", failures, points.size());
  fmt::print(out, "records: {}\n", path.string());
  return failures > 0 ? 1 : 0;
}

}  // namespace verbscope
