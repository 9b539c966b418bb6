#include "harness/commands/run_command.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "common/paths.hpp"
#include "harness/commands/job_array.hpp"
#include "harness/point/provenance.hpp"
#include "harness/point/site.hpp"
#include "harness/process/text_file.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// A sweep, and what its benchmarks say of themselves.
struct LoadedSweep {
  Sweep sweep;
  std::map<std::string, BenchmarkSpec> specs;
};

void apply_set(LoadedSweep& loaded, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) fail("--set: expected key=value, got \"{}\"", setting);
    const std::string key = option_name(setting.substr(0, equals));
    const BenchmarkSpec& spec = loaded.specs.begin()->second;  // check_sweep asks the others
    override_key(loaded.sweep, key,
                 option_value_from_text(spec.require(key, "--set"), setting.substr(equals + 1), "--set"));
  }
}

// Opens the sweep and applies what the command line says of it.
LoadedSweep load_sweep(const RunOptions& options, const std::filesystem::path& folder) {
  const std::filesystem::path path = find_config("sweeps", options.sweep);
  LoadedSweep loaded{.sweep = parse_sweep(read_text_file(path), path.string()), .specs = {}};
  for (const std::string& benchmark : loaded.sweep.benchmarks) {
    loaded.specs.emplace(benchmark, describe_benchmark(benchmark_binary(folder, benchmark)));
  }
  apply_set(loaded, options.set);
  if (options.seed) loaded.sweep.seed = *options.seed;
  if (options.repetitions) loaded.sweep.repetitions = *options.repetitions;
  for (const auto& [name, spec] : loaded.specs) check_sweep(loaded.sweep, spec);
  return loaded;
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

std::set<std::string> lines_of(const std::filesystem::path& path) {
  std::set<std::string> lines;
  std::istringstream in(read_text_file(path));
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

// The points to run now: the sweep's, less what --points, --share and --resume leave out, in this order: a share is the
// same points whatever has finished.
struct Selection {
  std::vector<Point> points;
  std::size_t finished = 0;  // ok in the results file already
};

Selection select_points(const RunOptions& options, const Sweep& sweep, const std::string& fabric,
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
  if (options.resume) {
    const std::set<std::string> finished = finished_points(results);
    selection.finished = std::erase_if(selection.points, [&](const Point& p) { return finished.contains(key(p)); });
  }
  return selection;
}

// Every point here, on the hosts of the site.
int run_here(const RunOptions& options, const LoadedSweep& loaded, const Selection& selection, const Site& site,
             const std::filesystem::path& folder, ResultsWriter& writer, Interrupt& interrupt, std::FILE* out) {
  const RunTarget& target = site.target();
  std::map<std::string, PointRunner> runners;
  for (const auto& [name, spec] : loaded.specs) {
    runners.emplace(name, PointRunner(benchmark_binary(folder, name), spec, target, options.limits, &interrupt));
  }
  const std::size_t cpus = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t jobs = options.jobs == 0 ? cpus : static_cast<std::size_t>(options.jobs);
  if (target.cast && jobs > 1)
    fail_usage("--jobs: points on hosts run one after another, they would disturb each other");
  const Provenance provenance(site);
  Progress progress(selection.points.size(), out, isatty(fileno(out)) == 1);
  const PointsOutcome outcome = run_points(
      selection.points,
      [&](const Point& point) {
        const Provenance::Time started = Provenance::Time::clock::now();
        std::optional<Record> record = runners.at(point.benchmark).run(point);
        if (record) provenance.add_to(*record, started);
        return record;
      },
      {.jobs = jobs, .retries = options.retries, .fail_fast = options.fail_fast}, writer, progress, interrupt);
  if (outcome.interrupted) {
    fmt::print(out, "\ninterrupted: the points that had ended are in {}; --resume does the rest\n",
               writer.path().string());
    return kExitInterrupted;
  }
  if (outcome.ended < selection.points.size()) {
    fmt::print(out, "stopped at the first failure: {} points did not run\n", selection.points.size() - outcome.ended);
  }
  if (outcome.failed > 0) fmt::print(out, "{} of {} points failed\n", outcome.failed, outcome.ended);
  fmt::print(out, "records: {}\n", writer.path().string());
  return outcome.failed > 0 ? 1 : 0;
}

std::string headline(const LoadedSweep& loaded, const std::string& fabric, const std::string& where,
                     const Selection& selection, const std::filesystem::path& path) {
  const std::string left_out =
      selection.finished ? fmt::format(", {} more are in {} already", selection.finished, path.string()) : "";
  return fmt::format("{} on {}{}{}: {} points{}\n", fmt::join(loaded.sweep.benchmarks, ", "), fabric,
                     fabric.starts_with("sim:") ? " (simulated)" : "", where, selection.points.size(), left_out);
}

}  // namespace

std::filesystem::path results_path(const std::string& out, const std::string& name) {
  if (!out.empty()) return out;
  const std::filesystem::path folder = "results/local";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("cannot make the folder {}: {}", folder.string(), error.message());
  return folder / (name + ".jsonl");
}

int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  require_target(options.hosts);
  const LoadedSweep loaded = load_sweep(options, folder);
  const std::filesystem::path path = results_path(options.out, std::filesystem::path(options.sweep).stem().string());
  const std::string fabric = fabric_of(options.hosts);
  const Selection selection = select_points(options, loaded.sweep, fabric, path);
  if (options.array > 0) {
    fmt::print(out, "{}", headline(loaded, fabric, " as a job array", selection, path));
    return run_job_array(options, selection.points, fabric, path, folder, &interrupt, out);
  }
  const Site site(options.hosts, options.launcher, folder, loaded.sweep.benchmarks, options.port, &interrupt);
  ResultsWriter writer(path);
  const std::string where = site.target().launcher ? fmt::format(" by {}", site.launcher_name()) : "";
  fmt::print(out, "{}", headline(loaded, fabric, where, selection, path));
  return run_here(options, loaded, selection, site, folder, writer, interrupt, out);
}

}  // namespace verbscope
