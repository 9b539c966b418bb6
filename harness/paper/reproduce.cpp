#include "harness/paper/reproduce.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/paper/row_runner.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// The rows of a paper. Throws an error that lists the papers if there are none.
std::vector<PublishedPoint> rows_of(const std::string& paper) {
  std::vector<PublishedPoint> rows = load_published();
  std::set<std::string> papers;
  for (const PublishedPoint& row : rows) papers.insert(row.paper);
  if (!papers.contains(paper))
    fail_usage("no published figures of \"{}\"; known papers: {}", paper, fmt::join(papers, ", "));
  std::erase_if(rows, [&paper](const PublishedPoint& row) { return row.paper != paper; });
  return rows;
}

// A sweep in configs/sweeps/PAPER, and the index of each of its points in the list of tasks.
struct Curves {
  std::string name;
  Sweep sweep;
  std::vector<std::pair<CurvePoint, std::size_t>> points;
};

class Reproduction {
 public:
  Reproduction(const ReproduceOptions& options, const std::filesystem::path& folder)
      : options_(options), folder_(folder), rows_(rows_of(options.paper)) {
    for (const PublishedPoint& row : rows_) add_row(row);
    if (options.rows_only) return;
    const std::string kind = "sweeps/" + options.paper;
    for (const std::string& name : list_configs(kind)) add_curves(name, find_config(kind, name));
  }

  int run(std::FILE* out) {
    ResultsWriter writer(results_path(options_.out, options_.paper));
    // Rows that measure this machine run one at a time, with nothing else beside them.
    const bool alone = std::ranges::any_of(rows_, &PublishedPoint::on_host);
    const std::size_t jobs = alone ? 1 : job_count(options_.jobs);
    print_format(out, "{}: {} points, {} at a time\n", options_.paper, tasks_.size(), jobs);
    Progress progress(TimeLeft(tasks_.size()), out, isatty(fileno(out)) == 1);
    run_parallel(tasks_.size(), jobs, [&](std::size_t i) {
      const auto start = std::chrono::steady_clock::now();
      std::optional<Record> record = interrupt_.pending() ? std::nullopt : tasks_[i].run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      const std::lock_guard lock(mutex_);
      if (!record) return;
      progress.finished(i, tasks_[i].name, outcome_text(*record), took / static_cast<double>(jobs));
      tasks_[i].record = std::move(record);
      while (written_ < tasks_.size() && tasks_[written_].record) writer.append(*tasks_[written_++].record);
    });
    if (interrupt_.pending()) {
      print_format(out, "interrupted: the first {} records are in {}\n", written_, writer.path().string());
      return kExitInterrupted;
    }
    const bool good = print(out);
    print_format(out, "records: {}\n", writer.path().string());
    return good && !writer.moved() ? 0 : 1;
  }

 private:
  struct Task {
    std::string name;
    std::function<std::optional<Record>()> run;
    std::optional<Record> record{};
  };

  // Adds the runs of the row that no earlier row has.
  void add_row(const PublishedPoint& row) {
    if (!not_run_reason(row).empty()) return;
    for (const RowRun& run : runs_of(row)) {
      if (!row_tasks_.emplace(run.identity(), tasks_.size()).second) continue;
      tasks_.push_back({row.id, [this, run] { return run_row(run, run.fabric(), folder_, &interrupt_); }});
    }
  }

  void add_curves(const std::string& name, const std::filesystem::path& path) {
    Curves curves{.name = name, .sweep = parse_sweep(read_text_file(path), path.string()), .points = {}};
    if (curves.sweep.benchmarks.size() != 1) fail("{}: a sweep of curves must have one benchmark", path.string());
    const std::filesystem::path binary = benchmark_binary(folder_, curves.sweep.benchmarks.front());
    const BenchmarkSpec spec = describe_benchmark(binary);
    check_sweep(curves.sweep, spec);
    for (const std::string& cluster : list_configs("clusters")) {
      const std::string fabric = "sim:" + cluster;
      if (!fabric_allowed(curves.sweep.fabrics, fabric)) continue;
      const auto runner = std::make_shared<PointRunner>(binary, spec, RunTarget{.fabric = fabric, .roles = {}},
                                                        RoleLimits{}, &interrupt_);
      for (const Point& point : expand_sweep(curves.sweep, fabric)) {
        curves.points.emplace_back(CurvePoint{.fabric = fabric, .point = point, .record = {}}, tasks_.size());
        const std::string label = fmt::format("{} {} {}", name, cluster, dump_json(point.params));
        tasks_.push_back({label, [runner, point, properties = sweep_properties(curves.sweep, point)] {
                            std::optional<Record> record = runner->run(point);
                            if (record) record->environment["harness"] = properties;
                            return record;
                          }});
      }
    }
    curves_.push_back(std::move(curves));
  }

  ReproducedRow reproduced(const PublishedPoint& row) const {
    ReproducedRow out{.row = &row, .value = {}, .failure = "", .missing = not_run_reason(row)};
    if (!out.missing.empty()) return out;
    try {
      std::map<std::string, Record> records;
      for (const RowRun& run : runs_of(row)) {
        records.emplace(run.identity(), *tasks_[row_tasks_.at(run.identity())].record);
      }
      out.value = row.modelled() ? model_value(row) : row_value(row, records);
    } catch (const Error& error) {
      out.failure = error.what();
    }
    return out;
  }

  // Prints curves first, so that the result for the rows is at the end. Returns true if all rows are within their
  // limits and no point failed.
  bool print(std::FILE* out) {
    for (Curves& curves : curves_) {
      std::vector<CurvePoint> points;
      for (auto& [point, task] : curves.points) {
        point.record = *tasks_[task].record;
        points.push_back(point);
      }
      print_format(out, "\n{} ({}): {}\n{}", curves.name, curves.sweep.benchmarks.front(), curves.sweep.description,
                   curve_table(curves.sweep, points, terminal_width(out)));
    }
    std::vector<ReproducedRow> all;
    for (const PublishedPoint& row : rows_) all.push_back(reproduced(row));
    print_format(out, "\n{}", reproduction_text(all, terminal_width(out)));
    const auto failed = [](const Task& task) { return task.record->status == RecordStatus::failed; };
    return std::ranges::all_of(all, within_limits) && std::ranges::none_of(tasks_, failed);
  }

  ReproduceOptions options_;
  std::filesystem::path folder_;
  std::vector<PublishedPoint> rows_;
  std::vector<Curves> curves_;
  std::vector<Task> tasks_;
  std::map<std::string, std::size_t> row_tasks_;  // by RowRun::identity
  Interrupt interrupt_;
  std::mutex mutex_;
  std::size_t written_ = 0;
};

}  // namespace

int reproduce_paper(const ReproduceOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  return Reproduction(options, folder).run(out);
}

}  // namespace verbscope
