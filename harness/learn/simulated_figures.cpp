#include "harness/learn/simulated_figures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "common/cli.hpp"
#include "harness/learn/point_traits.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/parallel.hpp"
#include "wire/packet.hpp"

namespace verbscope {
namespace {

// A rate is accurate to a few parts in a thousand after this many operations beyond those that fill the queues.
constexpr double kOperations = 1500, kRoundTrips = 200;
constexpr double kShortestUs = 20, kLongestUs = 2000;
// For rates that are not steady at first, or that few completions show: QPs signal every 64th operation.
constexpr double kLongestFactor = 12;
constexpr double kPathUs = 40;  // of the warm-up, for latencies and caches
// Without acknowledgements a sender outruns its receiver until the buffers of the path are full, which takes up to a
// millisecond. The rate after that does not depend on their size, if they hold several times what a link of 200 Gb/s
// carries in half a microsecond, and a burst of packets to one of several machines. Smaller buffers are full after this
// time of the warm-up.
constexpr std::uint64_t kSmallBuffer = 32 << 10, kLargePackets = 8, kBurst = 128;
constexpr double kFillUs = 150;

std::string microseconds(double us) {
  return fmt::format("{:.0f}us", std::ceil(us));
}

// The size of the buffers for a short interval. Nothing: the usual size is right. With acknowledgements a sender waits
// for its receiver, and Ethernet usually drops packets instead of holding them back.
std::optional<std::uint64_t> small_buffer(const Json& profile, const Point& point, std::uint32_t properties) {
  const Json& wire = profile.at("wire");
  const Json* const link = value_at(profile, "wire.link_type.value");
  if (link != nullptr && facts(link_type_from(link->get<std::string>())).ethernet) return std::nullopt;
  if ((properties & kReliable) != 0) return std::nullopt;
  const auto mtu = wire.at("mtu_bytes").at("value").get<std::uint64_t>();
  const auto payload = static_cast<std::uint64_t>(number_at(point.params, "size").value_or(0));
  return std::max({kSmallBuffer, kLargePackets * mtu, kBurst * std::min(payload, mtu)});
}

// The shorter one of `us` and the time that the point has under `key`, in microseconds.
double shorter_us(const Point& point, const char* key, double us) {
  if (!point.params.contains(key)) return us;
  return std::min(us, to_seconds(parse_duration(point.params[key].get<std::string>(), key)) * 1e6);
}

// The point with an interval that measures about enough operations, and is not longer than its own.
Point with_interval(Point point, const std::string& key, double figure, bool reliable) {
  const bool latency = is_latency(key);
  const PointLoad load = load_of(point);
  const double operations = latency ? kRoundTrips : kOperations / load.machines + load.outstanding;
  const double latency_us = key.ends_with("_us") ? figure : figure / 1e3;
  const double us = std::clamp(latency ? operations * 2 * latency_us : operations / figure, kShortestUs, kLongestUs);
  const double warmup = us + kPathUs + (reliable ? 0 : kFillUs);
  point.params["warmup"] = microseconds(shorter_us(point, "warmup", warmup));
  point.params["duration"] = microseconds(shorter_us(point, "duration", us));
  point.params["longest"] = microseconds(kLongestFactor * (us + kPathUs));
  return point;
}

// The figure of a run. If a short interval has too few completions for a steady rate, the adapters' counters give the
// rate: they count each operation. The difference to the usual interval corrects it later.
std::optional<double> figure_of(const Record& record, const std::string& key, SimulatedInterval interval) {
  if (record.status != RecordStatus::failed) return number_at(record.result, key);
  const bool counted = interval == SimulatedInterval::shortened && key == "rate_mops";
  return counted ? number_at(record.result, "adapter_mops") : std::nullopt;
}

}  // namespace

const BenchmarkSpec& LearnPrograms::spec(const std::string& benchmark) {
  const auto found = specs_.find(benchmark);
  return found != specs_.end() ? found->second
                               : specs_.emplace(benchmark, describe_benchmark(binary(benchmark))).first->second;
}

SimulatedFigures::SimulatedFigures(Json profile, std::vector<FitParameter> parameters, LearnPrograms& programs,
                                   std::size_t jobs, StopSource* stop)
    : profile_(std::move(profile)), parameters_(std::move(parameters)), programs_(programs), jobs_(jobs), stop_(stop) {}

void SimulatedFigures::add(const Point& point, const std::string& key, double figure, std::uint32_t properties) {
  programs_.spec(point.benchmark);
  const bool reliable = (properties & kReliable) != 0;
  rows_.push_back({.usual = point,
                   .key = key,
                   .properties = properties,
                   .small_buffer = small_buffer(profile_, point, properties)});
  if (!needs_long_interval(point, figure, kLongestUs))
    rows_.back().shortened = with_interval(point, key, figure, reliable);
}

std::vector<double> SimulatedFigures::rounded(const FitTrial& trial) const {
  std::vector<double> out;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool matters = may_change(parameters_[i], rows_[trial.row].properties);
    out.push_back(rounded_value(parameters_[i], matters ? trial.values[i] : parameters_[i].start));
  }
  return out;
}

Json SimulatedFigures::profile_of(const Row& row, SimulatedInterval interval, const std::vector<double>& values) const {
  Json profile = with_values(profile_, parameters_, values);
  if (row.small_buffer && interval == SimulatedInterval::shortened) {
    Json& size = profile["nic"]["input_buffer_bytes"]["value"];
    size = std::min(size.get<std::uint64_t>(), *row.small_buffer);
  }
  return profile;
}

double SimulatedFigures::log_figure(const Key& trial, const std::string& name) {
  const auto& [number, interval, seed, values] = trial;
  const Row& row = rows_[number];
  Point point = interval == SimulatedInterval::shortened ? *row.shortened : row.usual;
  point.seed = seed;
  const std::string file = temp_.write(name, dump_json(profile_of(row, interval, values)) + "\n");
  const PointRunner runner(programs_.binary(point.benchmark), programs_.spec(point.benchmark),
                           RunTarget{.fabric = "sim:" + file, .roles = {}, .programs = &served_}, RoleLimits{}, stop_);
  const std::optional<Record> record = runner.run(point);
  std::filesystem::remove(file);
  if (!record) throw InterruptedError("interrupted");
  const std::optional<double> value = figure_of(*record, row.key, interval);
  return value && *value > 0 ? std::log(*value) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> SimulatedFigures::log_figures(const std::vector<FitTrial>& trials) {
  std::vector<Key> keys, missing;
  for (const FitTrial& trial : trials) {
    const SimulatedInterval possible = rows_[trial.row].shortened ? trial.interval : SimulatedInterval::usual;
    keys.emplace_back(trial.row, possible, trial.seed, rounded(trial));
    if (known_.emplace(keys.back(), std::numeric_limits<double>::quiet_NaN()).second) missing.push_back(keys.back());
  }
  std::set<std::string> benchmarks;
  for (const Key& key : missing) benchmarks.insert(rows_[std::get<0>(key)].usual.benchmark);
  for (const std::string& benchmark : benchmarks) {
    if (programs_.spec(benchmark).serves) served_.prepare(programs_.binary(benchmark), jobs_);
  }
  std::vector<double> figures(missing.size());
  run_parallel(missing.size(), jobs_,
               [&](std::size_t i) { figures[i] = log_figure(missing[i], fmt::format("{}.json", i)); });
  runs_ += missing.size();
  for (std::size_t i = 0; i < missing.size(); ++i) known_[missing[i]] = figures[i];
  std::vector<double> out;
  for (const Key& key : keys) out.push_back(known_.at(key));
  return out;
}

}  // namespace verbscope
