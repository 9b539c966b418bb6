#include "harness/learn/lab.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/points.hpp"
#include "common/files.hpp"
#include "common/hash.hpp"
#include "common/paths.hpp"
#include "harness/doctor/host_facts.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// The programs' defaults (3 s) measure no better: their rates are steady after 100 ms.
constexpr const char* kDuration = "1s";
constexpr const char* kWarmup = "300ms";
constexpr const char* kLongest = "4s";
constexpr double kStartSeconds = 0.7;  // processes, memory and QPs
constexpr double kHardwareSeconds = 1.3 + kStartSeconds, kSimulatedSeconds = 0.1;

std::vector<std::string> all_benchmarks() {
  std::vector<std::string> out;
  for (const char* name : {"verb_latency", "write_rate", "read_rate", "send_rate", "recv_rate", "atomic_rate"})
    out.emplace_back(name);
  return out;
}

Json with_slow_cpu(Json profile, double factor) {
  for (auto& [key, parameter] : profile.at("host").items()) {
    const bool memory = key.starts_with("memory_") || key.starts_with("slow_read") || key.starts_with("register_");
    if (key.ends_with("_ns") && !memory) parameter["value"] = parameter.at("value").get<double>() * factor;
  }
  return profile;
}

Sweep learn_sweep() {
  Sweep sweep;
  sweep.where = "learn";
  return sweep;
}

}  // namespace

Lab::Lab(const std::string& hosts, const LauncherOptions& launcher, LearnPrograms& programs,
         const std::optional<Disturbance>& disturbance, StopSource* stop)
    : programs_(programs),
      disturbance_(disturbance),
      stop_(stop),
      site_(hosts, launcher, programs.folder(), all_benchmarks(), 0, stop),
      sweep_(learn_sweep()),
      provenance_(site_, sweep_) {
  const RunTarget& whole = site_.target();
  if (is_simulated(whole.fabric)) {
    if (!disturbance_) {
      servers_.push_back(whole.fabric);
      return;
    }
    for (int i = 0; i < disturbance_->hosts; ++i) servers_.push_back(fmt::format("host{}", i));
    const std::filesystem::path path = find_config("clusters", whole.fabric.substr(kSimulatedPrefix.size()));
    slow_profile_ =
        temp_.write(path.filename().string(), dump_json(with_slow_cpu(read_json_file(path), disturbance_->slow_cpu)));
    return;
  }
  if (!whole.roles) fail_usage("--hosts {}: learning needs hosts with RDMA devices, or a simulated cluster", hosts);
  for (const Host& host : whole.roles->all()) {
    const bool repeated = std::ranges::find(servers_, host.name) != servers_.end();
    if (!repeated && (host.role != HostRole::client || servers_.empty())) servers_.push_back(host.name);
    const Json& device = device_of(fact_at(site_.host_facts(), host.name.c_str()), host);
    if (fact_at(device, "software") == true)
      software_ = fmt::format("{} of {}", fact_text(fact_at(device, "name")), host.name);
  }
}

ToldFacts Lab::told() const {
  const RunTarget& whole = site_.target();
  if (whole.roles)
    return told_by_host(fact_at(site_.host_facts(), whole.roles->server.name.c_str()), whole.roles->server);
  const std::string name = whole.fabric.substr(kSimulatedPrefix.size());
  return told_by_profile(read_json_file(find_config("clusters", name)), name);
}

double Lab::seconds_per_point() const {
  return site_.target().roles ? kHardwareSeconds : kSimulatedSeconds;
}

RunTarget Lab::target(std::size_t server) const {
  RunTarget out = site_.target();
  if (!out.roles) {
    if (disturbance_ && server + 1 == servers_.size()) out.fabric = std::string(kSimulatedPrefix) + slow_profile_;
    return out;
  }
  std::vector<Host> all = out.roles->all();
  const auto chosen = std::ranges::find(all, servers_[server], &Host::name);
  std::iter_swap(all.begin(), chosen);
  out.roles->server = all.front();
  if (all.size() > 1) out.roles->clients.assign(all.begin() + 1, all.end());
  return out;
}

void Lab::disturb(Record& record, const Point& point, std::size_t server) const {
  if (record.status == RecordStatus::failed) return;
  std::mt19937_64 random(
      text_hash(fmt::format("{} {} {}", disturbance_->seed, dump_json(point_identity(point, "")), server)));
  double slower = std::normal_distribution<double>(0, disturbance_->noise)(random);
  if (std::uniform_real_distribution<double>()(random) < disturbance_->outliers) {
    slower += std::log(disturbance_->outlier_factor) * std::uniform_real_distribution<double>(0.5, 2)(random);
  }
  for (const char* key : {"rate_mops", "bandwidth_gbit_per_s"}) {
    if (const auto value = number_at(record.result, key)) record.result[key] = *value * std::exp(-slower);
  }
  for (const char* key : {"lat_mean_ns", "lat_p50_ns"}) {
    if (const auto value = number_at(record.result, key)) record.result[key] = *value * std::exp(slower);
  }
}

std::optional<Record> Lab::measure(const Point& point, std::size_t server) const {
  Point timed = point;
  if (site_.target().roles) {
    timed.params["duration"] = kDuration;
    timed.params["warmup"] = kWarmup;
    timed.params["longest"] = kLongest;
  }
  const auto started = Provenance::Time::clock::now();
  std::optional<Record> record = PointRunner(programs_.binary(point.benchmark), programs_.spec(point.benchmark),
                                             target(server), RoleLimits{}, stop_)
                                     .run(timed);
  if (!record) return record;
  if (disturbance_) disturb(*record, point, server);
  provenance_.add_to(*record, point, started);
  record->environment["harness"]["server"] = servers_[server];
  return record;
}

std::string server_of(const Record& record) {
  return harness_text(record, "server");
}

}  // namespace verbscope
