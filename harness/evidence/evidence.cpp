#include "harness/evidence/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <random>

#include "common/files.hpp"
#include "common/json.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/parallel.hpp"

namespace verbscope {
namespace {

// Sets the errors of rows that count by shape: scales our figures by the ratio of the medians.
void add_shape_errors(std::vector<EvidenceOutcome*>& group) {
  std::vector<double> ours, theirs;
  for (const EvidenceOutcome* each : group) {
    ours.push_back(*each->ours);
    theirs.push_back(each->row->point.value);
  }
  const double scale = median(theirs) / median(ours);
  for (EvidenceOutcome* each : group) {
    if (group.size() < kMinShapeRows) {
      each->uncounted = "too few rows of its source for a shape";
    } else {
      each->error_percent = each->row->point.deviation_of(*each->ours * scale);
    }
  }
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

ErrorFigures error_figures(const std::vector<double>& errors_percent) {
  ErrorFigures figures{.rows = errors_percent.size()};
  if (errors_percent.empty()) return figures;
  std::vector<double> sizes;
  for (const double error : errors_percent) sizes.push_back(std::abs(error));
  figures.worst_at = static_cast<std::size_t>(std::ranges::max_element(sizes) - sizes.begin());
  figures.worst = sizes[figures.worst_at];
  figures.median = median(sizes);
  std::ranges::sort(sizes);
  figures.percentile_90 = sizes[(sizes.size() * 9 + 9) / 10 - 1];
  return figures;
}

std::string shape_group(const EvidenceRow& row) {
  return fmt::format("{} {} {}", row.point.where, row.point.cluster, row.point.run.benchmark);
}

std::vector<EvidenceRow> all_evidence() {
  std::vector<EvidenceRow> rows;
  for (PublishedPoint& point : load_published()) rows.push_back({.point = std::move(point), .not_run = ""});
  const MeasuredForms forms;
  for (const std::filesystem::path& file : forms.files()) {
    std::ranges::move(forms.rows(read_text_file(file), file.filename().string()), std::back_inserter(rows));
  }
  return rows;
}

std::vector<EvidenceRow> evidence_of_file(const std::filesystem::path& file) {
  std::vector<EvidenceRow> rows = MeasuredForms().rows(read_text_file(file), file.string());
  if (rows.empty()) fail("{}: no rows after the line of columns", file.string());
  return rows;
}

std::string Programs::missing_reason(const RowRun& run) {
  const std::vector<std::string> known = benchmark_names();
  if (std::ranges::count(known, run.benchmark) == 0) return "no benchmark " + run.benchmark;
  if (!std::filesystem::exists(benchmark_binary(folder_, run.benchmark))) return "no program " + run.benchmark;
  auto spec = specs_.find(run.benchmark);
  if (spec == specs_.end()) {
    spec = specs_.emplace(run.benchmark, describe_benchmark(benchmark_binary(folder_, run.benchmark))).first;
  }
  for (const auto& [key, value] : run.params.items()) {
    if (spec->second.find(key) == nullptr) return fmt::format("{} has no option {}", run.benchmark, key);
  }
  return "";
}

void set_not_run_reasons(std::vector<EvidenceRow>& rows, Programs& programs) {
  for (EvidenceRow& row : rows) {
    if (row.not_run.empty()) row.not_run = not_run_reason(row.point);
    if (row.not_run.empty() && row.point.on_host) row.not_run = "its machine is not simulated";
    for (const RowRun& run : runs_of(row.point)) {
      if (row.not_run.empty()) row.not_run = programs.missing_reason(run);
    }
  }
}

std::vector<std::size_t> shuffled(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  std::mt19937_64 random(seed);
  count = std::min(count, size);
  for (std::size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random() % (size - i)]);
  all.resize(count);
  return all;
}

std::vector<std::size_t> draw_numbers(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> drawn = shuffled(size, count, seed);
  std::ranges::sort(drawn);
  return drawn;
}

std::map<std::string, RowRun> distinct_runs(const std::vector<EvidenceRow>& rows) {
  std::map<std::string, RowRun> distinct;
  for (const EvidenceRow& row : rows) {
    if (!row.not_run.empty()) continue;
    for (const RowRun& run : runs_of(row.point)) distinct.emplace(run.identity(), run);
  }
  return distinct;
}

namespace {

// Profiles with other values of parameters, in files of their own.
class ProfileVariants {
 public:
  // `fabric` ("sim:NAME" or "sim:PROFILE.json") with these values. Throws Error if there is no such parameter.
  std::string fabric(const std::string& fabric, const Json& values) {
    if (values.empty()) return fabric;
    const std::lock_guard lock(mutex_);
    std::string& variant = variants_[fabric + " " + dump_json(values)];
    if (!variant.empty()) return variant;
    const std::filesystem::path base = find_config("clusters", fabric.substr(kSimulatedPrefix.size()));
    Json profile = read_json_file(base);
    for (const auto& [name, value] : values.items()) {
      std::string path = "/" + name + "/value";
      std::ranges::replace(path, '.', '/');
      const Json::json_pointer pointer(path);
      if (!profile.contains(pointer)) fail("{}: no parameter {}", base.string(), name);
      profile[pointer] = value;
    }
    const std::string name = fmt::format("{}.json", variants_.size());
    return variant = std::string(kSimulatedPrefix) + folder_.write(name, dump_json(profile) + "\n");
  }

 private:
  TempFolder folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> variants_;
};

}  // namespace

std::map<std::string, Record> run_evidence(const std::vector<EvidenceRow>& rows, const EvidenceRuns& runs) {
  const std::map<std::string, RowRun> distinct = distinct_runs(rows);
  std::vector<std::pair<std::string, RowRun>> tasks(distinct.begin(), distinct.end());
  std::map<std::string, Record> records;
  std::mutex mutex;
  ProfileVariants variants;
  run_parallel(tasks.size(), runs.jobs, [&](std::size_t i) {
    const auto& [identity, run] = tasks[i];
    const auto record = run_row(run, variants.fabric(runs.fabric(run.cluster), run.profile), runs.folder, runs.stop);
    if (!record) throw InterruptedError("interrupted");
    const std::lock_guard lock(mutex);
    records.emplace(identity, *record);
    if (runs.finished) runs.finished(run, *record);
  });
  return records;
}

std::vector<EvidenceOutcome> evidence_outcomes(const std::vector<EvidenceRow>& rows,
                                               const std::map<std::string, Record>& records) {
  std::vector<EvidenceOutcome> out;
  for (const EvidenceRow& row : rows) {
    EvidenceOutcome& each = out.emplace_back();
    each.row = &row;
    if (!row.not_run.empty()) continue;
    try {
      each.ours = row.point.modelled() ? model_value(row.point) : row_value(row.point, records);
    } catch (const Error& error) {
      each.failure = error.what();
    }
  }
  std::map<std::string, std::vector<EvidenceOutcome*>> shapes;
  for (EvidenceOutcome& each : out) {
    if (!each.ours) continue;
    if (each.row->by_shape) {
      shapes[shape_group(*each.row)].push_back(&each);
    } else {
      each.error_percent = each.row->point.deviation_of(*each.ours);
    }
  }
  for (auto& [name, group] : shapes) add_shape_errors(group);
  return out;
}

}  // namespace verbscope
