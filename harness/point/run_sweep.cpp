#include "harness/point/run_sweep.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <map>

#include "common/cli.hpp"
#include "common/output_file.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/point/job_array.hpp"
#include "harness/point/provenance.hpp"
#include "harness/point/site.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/results_path.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// Says how a run of so many points ended. Returns the exit code.
int report_outcome(const PointsOutcome& outcome, std::size_t points, const ResultsWriter& writer, std::FILE* out) {
  const std::string results = writer.path().string();
  if (outcome.interrupted) {
    print_format(out, "\ninterrupted: the points that had ended are in {}; --resume does the rest\n", results);
    return kExitInterrupted;
  }
  if (outcome.ended < points) {
    print_format(out, "stopped at the first failure: {} points did not run\n", points - outcome.ended);
  }
  if (outcome.failed > 0) print_format(out, "{} of {} points failed\n", outcome.failed, outcome.ended);
  print_format(out, "records: {}\n", results);
  if (writer.moved())
    print_format(out, "the first of them are where that file went: it was deleted or renamed meanwhile\n");
  return outcome.failed > 0 || writer.moved() ? 1 : 0;
}

// Runs every point here, on the hosts of the site.
int run_here(const RunOptions& options, const LoadedSweep& loaded, const Selection& selection, const Site& site,
             const std::filesystem::path& folder, ResultsWriter& writer, Interrupt& interrupt, std::FILE* out) {
  const RunTarget& target = site.target();
  std::map<std::string, PointRunner> runners;
  for (const auto& [name, spec] : loaded.specs) {
    runners.emplace(name, PointRunner(benchmark_binary(folder, name), spec, target, options.limits, &interrupt));
  }
  const std::size_t jobs = job_count(options.jobs);
  if (target.cast && jobs > 1)
    fail_usage("--jobs: points on hosts run one after another, they would disturb each other");
  const Provenance provenance(site, loaded.sweep.where);
  Progress progress(selection.points.size(), out, isatty(fileno(out)) == 1);
  const PointsOutcome outcome = run_points(
      selection.points,
      [&](const Point& point) {
        const Provenance::Time started = Provenance::Time::clock::now();
        std::optional<Record> record = runners.at(point.benchmark).run(point);
        if (record) provenance.add_to(*record, point, started);
        return record;
      },
      {.jobs = jobs, .retries = options.retries, .fail_fast = options.fail_fast}, writer, progress, interrupt);
  return report_outcome(outcome, selection.points.size(), writer, out);
}

std::string headline(const LoadedSweep& loaded, const std::string& fabric, const std::string& where,
                     const Selection& selection, const std::filesystem::path& path) {
  const std::string left_out =
      selection.finished ? fmt::format(", {} more are in {} already", selection.finished, path.string()) : "";
  return fmt::format("{} on {}{}{}: {} points{}\n", fmt::join(loaded.sweep.benchmarks, ", "), fabric,
                     fabric.starts_with("sim:") ? " (simulated)" : "", where, selection.points.size(), left_out);
}

}  // namespace

int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  require_target(options.hosts);
  const LoadedSweep loaded = load_sweep(options, folder);
  const std::filesystem::path path = results_path(options.out, std::filesystem::path(options.sweep).stem().string());
  const std::string fabric = fabric_of(options.hosts);
  const Selection selection = select_points(options, loaded.sweep, fabric, path);
  const std::vector<std::filesystem::path> inputs{find_config("sweeps", options.sweep), options.hosts, options.points};
  check_output("--out", path, FileKind::results, inputs);
  if (options.array > 0) {
    print_format(out, "{}", headline(loaded, fabric, " as a job array", selection, path));
    return run_job_array(options, selection.points, fabric, path, folder, &interrupt, out);
  }
  const Site site(options.hosts, options.launcher, folder, loaded.sweep.benchmarks, options.port, &interrupt);
  ResultsWriter writer(path, "--out", inputs);
  const std::string where = site.target().launcher ? fmt::format(" by {}", site.launcher_name()) : "";
  print_format(out, "{}", headline(loaded, fabric, where, selection, path));
  return run_here(options, loaded, selection, site, folder, writer, interrupt, out);
}

}  // namespace verbscope
