#include "microbench/run/outcome.hpp"

#include <algorithm>
#include <utility>

namespace verbscope {

void fill_record(Record& record, const Outcome& outcome, const OptionTable& table, Json environment) {
  record.status = outcome.failure.empty() ? RecordStatus::ok : RecordStatus::failed;
  record.reason = outcome.failure;
  record.config = table.values();
  record.config.update(outcome.config);
  record.result = outcome.result;
  record.counters = outcome.counters;
  record.prediction = outcome.prediction;
  if (!outcome.no_prediction.empty()) record.result["no_prediction"] = outcome.no_prediction;
  record.environment = std::move(environment);
  record.environment["options_set"] = table.changed();
  record.environment.update(outcome.environment);
}

namespace {

// Threads that a client has: no more than it has QPs. The first client has the most.
std::uint32_t client_threads(const Topology& t) {
  if (t.client_qps || t.qps_per_pair > 0) return t.client_threads;
  const bool dealt = facts(t.transport).connected;
  const std::uint32_t qps = dealt ? (t.server_qps() + t.clients - 1) / t.clients : t.server_qps();
  return std::min(t.client_threads, qps);
}

}  // namespace

Json plan_json(const Plan& plan) {
  return Json{{"size", plan.operation.payload},
              {"inline_size", plan.operation.inline_limit},
              {"inlined", plan.operation.inlined},
              {"cq_mod", plan.operation.signal_every},
              {"rx_depth", plan.operation.rx_depth},
              {"qp", plan.topology.qps_per_thread},
              {"clients", plan.topology.clients},
              {"client_threads", client_threads(plan.topology)},
              {"ports", plan.topology.ports},
              {"duration_s", plan.schedule.iters ? Json() : Json(to_seconds(plan.schedule.duration))},
              {"warmup_s", to_seconds(plan.schedule.warmup)},
              {"longest_s", to_seconds(plan.schedule.longest)},
              {"timeout_s", to_seconds(plan.schedule.timeout)}};
}

Histogram take_client_histograms(Json& result, const std::string& key) {
  Histogram all;
  for (Json& client : result.at("clients")) {
    Json& theirs = client.at("result");
    const std::string where = "result of " + client.value("node", "");
    all.merge(Histogram::unpack(JsonFields(theirs, where).at(key), where + ": " + key));
    theirs.erase(key);
  }
  return all;
}

}  // namespace verbscope
