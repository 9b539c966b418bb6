#include "harness/paper/row_runner.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/points.hpp"
#include "common/paths.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

double positive_value(const std::string& id, const Json& values, const std::string& key, const char* holder) {
  const Json* const value = value_at(values, key);
  if (value == nullptr || !value->is_number() || !(value->get<double>() > 0)) {
    fail("{}: the {} has no {}", id, holder, key);
  }
  return value->get<double>();
}

RowRun run_of(const PublishedPoint& row, const PublishedRun& run) {
  return {.cluster = row.cluster,
          .benchmark = run.benchmark,
          .params = run.params(),
          .result_key = run.result_key,
          .on_host = row.on_host,
          .profile = row.profile};
}

// The runs repeated for each value of the option; runs with the same value are adjacent.
std::vector<RowRun> runs_along(const CurvePlace& along, const std::vector<RowRun>& runs) {
  std::vector<RowRun> all;
  for (const double value : along.values) {
    for (RowRun run : runs) {
      run.params[along.option] = value == std::floor(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
      all.push_back(std::move(run));
    }
  }
  return all;
}

// The figure from the values of one run or of two.
double figure_of(const PublishedPoint& row, std::span<const double> values) {
  return row.second ? combined(row.combination, values[0], values[1]) : values[0];
}

// Reads the figure from the record of a run. Throws Error with `id` and the reason if the run failed or the record has
// no such figure.
double run_value(const std::string& id, const RowRun& run, const Record& record) {
  if (record.status == RecordStatus::failed) fail("{}: {}", id, record.reason);
  return positive_value(id, record.result, run.result_key, "record");
}

}  // namespace

std::string RowRun::identity() const {
  return cluster + " " + dump_json(profile) + " " + benchmark + " " + dump_json(params);
}

std::string RowRun::text() const {
  std::string text = cluster + " " + benchmark;
  for (const auto& [key, value] : params.items()) {
    text += fmt::format(" {}={}", key, plain_text(value));
  }
  return text;
}

std::string RowRun::fabric() const {
  return on_host ? "host" : "sim:" + cluster;
}

std::vector<RowRun> runs_of(const PublishedPoint& row) {
  std::vector<RowRun> runs;
  if (!row.reproducible() || row.modelled()) return runs;
  runs.push_back(run_of(row, row.run));
  if (row.second) runs.push_back(run_of(row, *row.second));
  return row.along ? runs_along(*row.along, runs) : runs;
}

std::string not_run_reason(const PublishedPoint& row) {
  if (!row.reproducible()) return "needs " + row.needs;
  if (row.on_host) return "";
  const std::vector<std::string> clusters = list_configs("clusters");
  return std::ranges::count(clusters, row.cluster) > 0 ? "" : "no profile " + row.cluster;
}

std::optional<Record> run_row(const RowRun& run, const std::string& fabric, const std::filesystem::path& folder,
                              StopSource* stop) {
  const PointRunner runner(benchmark_binary(folder, run.benchmark), BenchmarkSpec{.name = run.benchmark, .options = {}},
                           RunTarget{.fabric = fabric, .roles = {}}, RoleLimits{}, stop);
  return runner.run(Point{.benchmark = run.benchmark, .params = run.params});
}

double row_value(const PublishedPoint& row, const std::map<std::string, Record>& records) {
  std::vector<double> values;
  for (const RowRun& run : runs_of(row)) values.push_back(run_value(row.id, run, records.at(run.identity())));
  if (!row.along) return figure_of(row, values);
  const std::size_t each = values.size() / row.along->values.size();
  std::vector<double> figures;
  for (std::size_t i = 0; i < values.size(); i += each) {
    figures.push_back(figure_of(row, std::span(values).subspan(i, each)));
  }
  const std::optional<double> position = row.along->find_position(figures);
  if (!position) {
    fail("{}: the curve along {} has no such position: {}", row.id, row.along->option, fmt::join(figures, " "));
  }
  return *position;
}

double model_value(const PublishedPoint& row) {
  const std::filesystem::path path = find_config("clusters", row.cluster);
  const ClusterWire cluster = read_cluster_wire(read_json_file(path), path.string());
  const std::string where = row.id + ": match";
  const Json params = row.run.params();
  JsonFields fields(params, where);
  const Bytes wqe_bytes(fields.require<std::uint64_t>("wqe_bytes"));
  const int wqes = fields.optional<int>("wqes", 1);
  fields.reject_unknown();
  return positive_value(row.id, to_json(predict_wqes(cluster, wqe_bytes, wqes)), row.run.result_key, "prediction");
}

}  // namespace verbscope
