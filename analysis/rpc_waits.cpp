// What the requests of the RPC programs wait for.
#include <algorithm>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"

namespace verbscope {
namespace {

// Share of the time from which on a wait is what limits the requests.
constexpr double kMostOfTheTime = 0.5;

}  // namespace

bool is_rpc(const Record& record) {
  return record.benchmark == "rpc_rate" || record.benchmark == "rpc_large" || record.benchmark == "rpc_incast" ||
         record.benchmark == "ordered_kv";
}

bool recvs_bound_credits(const Record& record) {
  const Json given = record.environment.value("options_set", Json::array());
  const auto result = [&record](const char* key) { return number_at(record.result, key).value_or(0); };
  const double credits = number_at(record.config, "credits").value_or(0);
  return std::ranges::count(given, Json("rx_depth")) > 0 && 2 * credits * result("sessions") > result("recvs");
}

// GETs add no entries to the log.
double waited_for_log(const Record& record) {
  if (record.benchmark != "raft_kv") return 0;
  const auto result = [&record](const char* key) { return number_at(record.result, key).value_or(0); };
  const double puts = result("put_mops"), gets = result("rate_mops") - puts;
  const double time = puts * result("lat_mean_ns") + gets * result("get_mean_ns");
  return puts > 0 && time > 0 ? std::min(1.0, puts * result("log_wait_mean_ns") / time) : 0;
}

std::optional<Load> leader_load(const Record& record) {
  const std::optional<double> busy = number_at(record.result, "leader_busy_share");
  if (record.benchmark != "raft_kv" || !busy) return std::nullopt;
  return Load{.resource = Resource::cpu, .node = "server", .utilisation = *busy};
}

// During a time-out packets have no credits, and so have those in the rate limiter: the cause goes first.
Resource waited_for(const Record& record) {
  const auto result = [&record](const char* key) { return number_at(record.result, key).value_or(0); };
  if (waited_for_log(record) >= kMostOfTheTime) return Resource::log_device;
  if (!is_rpc(record)) return Resource::outstanding;
  if (result("timed_out_share") >= kMostOfTheTime) return Resource::timeouts;
  if (result("limiter_busy_share") >= kMostOfTheTime) return Resource::rate_limiter;
  if (result("credits_waited_share") < kMostOfTheTime) return Resource::outstanding;
  return recvs_bound_credits(record) ? Resource::recv_queue : Resource::credits;
}

// A simulator counts the busiest thread of all. If it may be a worker, the mean of the others stands for them.
void add_workers(const Record& record, std::vector<Load>& server) {
  const auto result = [&record](const char* key) { return number_at(record.result, key); };
  const double workers = number_at(record.config, "workers").value_or(0);
  const std::optional<double> busy = result("workers_busy_share");
  if (!busy || workers < 1) return;
  const double others = number_at(record.config, "threads").value_or(0) - workers;
  // If all machines serve, each as many requests as it has answered.
  const double served = result("served_mops").value_or(result("rate_mops").value_or(0));
  double ns = 0;
  for (const Json& each : record.result.value("cpu_ns_per_request", Json::object())) ns += each.get<double>();
  for (Load& load : server) {
    if (load.resource != Resource::cpu || *busy < load.utilisation - kMostOfTheTime / 10 || others < 1) continue;
    load = {.resource = load.resource, .node = load.node, .utilisation = std::min(1.0, ns * served * 1e-3 / others)};
  }
  server.push_back({.resource = Resource::workers, .node = "server", .utilisation = *busy});
}

bool waits_in_switch(const Record& record) {
  const CounterReport* report = counters_of(record, "server");
  const std::optional<Prediction> prediction = is_rpc(record) ? prediction_of(record) : std::nullopt;
  const double round_trip_ns = number_at(record.result, "rtt_p50_ns").value_or(0);
  if (report == nullptr || !prediction || round_trip_ns <= 0) return false;
  const double queue = number_at(report->extra, "deepest_queue_bytes").value_or(0);
  return queue / prediction->wire.port_rate.value * 1e9 >= kMostOfTheTime * round_trip_ns;
}

}  // namespace verbscope
