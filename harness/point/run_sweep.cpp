#include "harness/point/run_sweep.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <map>

#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/point/job_array.hpp"
#include "harness/point/site.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// Prints the outcome of a run of `points` points. Returns the exit code.
int report_outcome(const PointsOutcome& outcome, std::size_t points, const ResultsWriter& writer, std::FILE* out) {
  const std::string results = writer.path().string();
  if (outcome.interrupted) {
    print_text(out, "\n");
    print_error(fmt::format("interrupted: finished points are in {}; --resume runs the rest", results));
    return kExitInterrupted;
  }
  print_format(out, "records: {}\n", results);
  if (outcome.ended < points) {
    print_error(fmt::format("stopped at the first failure: {} points did not run", points - outcome.ended));
  }
  if (outcome.failed > 0) {
    print_error(fmt::format("{} of {} points failed; the first: {}", outcome.failed, outcome.ended, outcome.reason));
  }
  if (writer.moved()) {
    print_error(
        fmt::format("{} was deleted or renamed during the run: the first records are in the old file", results));
  }
  return outcome.failed > 0 || writer.moved() ? 1 : 0;
}

// Runs the selected points one by one or in parallel, started from this process.
int run_here(const RunOptions& options, const Sweep& sweep, const Selection& selection, const Site& site,
             const std::filesystem::path& folder, ResultsWriter& writer, Interrupt& interrupt, std::FILE* out) {
  const RunTarget& target = site.target();
  std::map<std::string, PointRunner> runners;
  for (const auto& [name, spec] : sweep.specs) {
    runners.emplace(name, PointRunner(benchmark_binary(folder, name), spec, target, options.limits, &interrupt));
  }
  const std::size_t jobs = job_count(options.jobs);
  if (target.roles && jobs > 1)
    fail_usage("--jobs: points on hosts run one at a time, because they would disturb each other");
  const Provenance provenance(site, sweep);
  Progress progress(TimeLeft(selection.points), out, isatty(fileno(out)) == 1);
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

std::string headline(const Sweep& sweep, const std::string& fabric, const std::string& where,
                     const Selection& selection, const std::filesystem::path& path) {
  const std::string left_out =
      selection.finished ? fmt::format(", {} more are already in {}", selection.finished, path.string()) : "";
  return fmt::format("{} on {}{}{}: {} points{}\n", fmt::join(sweep.benchmarks, ", "), fabric,
                     is_simulated(fabric) ? " (simulated)" : "", where, selection.points.size(), left_out);
}

// Splits "sim:cib,sim:cx3" into two places, which run one after the other. Any other text is one place.
std::vector<std::string> places_to_run(const std::string& hosts) {
  std::vector<std::string> places;
  std::size_t begin = 0;
  for (std::size_t comma = 0; hosts.starts_with("sim:") && (comma = hosts.find(",sim:", begin)) != hosts.npos;) {
    places.push_back(hosts.substr(begin, comma - begin));
    begin = comma + 1;
  }
  places.push_back(hosts.substr(begin));
  return places;
}

std::vector<std::string> places_to_run(const Sweep& sweep) {
  std::vector<std::string> places = fabrics_without_hosts(sweep);
  if (!places.empty()) return places;
  fail_usage("--hosts: {} names no simulated cluster in \"fabrics\": give --hosts, such as --hosts sim:cib",
             sweep.where);
}

// Runs the sweep at one place. Returns what run_sweep returns.
int run_at(const std::string& hosts, const RunOptions& options, const Sweep& sweep, const std::filesystem::path& folder,
           Interrupt& interrupt, std::FILE* out) {
  const std::filesystem::path path = results_path(options.out, std::filesystem::path(options.sweep).stem().string());
  const std::string fabric = fabric_of(hosts);
  const std::filesystem::path file = sweep_file(options.sweep).value_or("");
  const std::vector<std::filesystem::path> inputs{file, hosts, options.points};
  check_output("--out", path, FileKind::results, inputs);
  const Selection selection = select_points(options, sweep, fabric, path);
  if (options.array > 0) {
    print_format(out, "{}", headline(sweep, fabric, " as a job array", selection, path));
    return run_job_array(options, hosts, selection.points, fabric, path, folder, &interrupt, out);
  }
  const Site site(hosts, options.launcher, folder, sweep.benchmarks, options.port, &interrupt);
  ResultsWriter writer(path, "--out", inputs);
  const std::string where = site.target().launcher ? fmt::format(" by {}", site.launcher_name()) : "";
  print_format(out, "{}", headline(sweep, fabric, where, selection, path));
  return run_here(options, sweep, selection, site, folder, writer, interrupt, out);
}

}  // namespace

int run_sweep(const RunOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  const Sweep sweep = load_sweep(options, folder);
  const std::vector<std::string> places = options.hosts.empty() ? places_to_run(sweep) : places_to_run(options.hosts);
  for (const std::string& place : places) require_target(place);
  int code = 0;
  for (const std::string& place : places) {
    const int own = run_at(place, options, sweep, folder, interrupt, out);
    if (code == 0) code = own;
    if (own == kExitInterrupted || (own != 0 && options.fail_fast)) return own;
  }
  return code;
}

}  // namespace verbscope
