#include "harness/paper/row_runner.hpp"

#include "common/paths.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kRowTimeout{120};

double positive_value(const PublishedPoint& row, const Json& values, const char* holder) {
  const Json& value = values.value(row.result_key, Json());
  if (!value.is_number() || !(value.get<double>() > 0)) fail("{}: the {} has no {}", row.id, holder, row.result_key);
  return value.get<double>();
}

}  // namespace

std::optional<Record> run_row(const PublishedPoint& row, const std::string& fabric, const std::filesystem::path& folder,
                              Interrupt* interrupt) {
  const PointRunner runner(benchmark_binary(folder, row.benchmark), BenchmarkSpec{.name = row.benchmark, .options = {}},
                           RunTarget{.fabric = fabric, .cast = {}}, RoleLimits{.timeout = kRowTimeout}, interrupt);
  return runner.run(Point{.benchmark = row.benchmark, .params = row.run_params()});
}

double row_value(const PublishedPoint& row, const Record& record) {
  if (record.status == RecordStatus::failed) fail("{}: {}", row.id, record.reason);
  return positive_value(row, record.result, "record");
}

double model_value(const PublishedPoint& row) {
  const std::filesystem::path path = find_config("clusters", row.cluster);
  const ClusterWire cluster = read_cluster_wire(read_json_file(path), path.string());
  const std::string where = row.id + ": match";
  const Json params = row.run_params();
  JsonFields fields(params, where);
  const Bytes wqe_bytes(fields.require<std::uint64_t>("wqe_bytes"));
  const int wqes = fields.optional<int>("wqes", 1);
  fields.reject_unknown();
  return positive_value(row, to_json(predict_wqes(cluster, wqe_bytes, wqes)), "prediction");
}

}  // namespace verbscope
