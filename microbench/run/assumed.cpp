#include "microbench/run/assumed.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace verbscope {

namespace {

// At work: counted for at least this share of the operations.
constexpr double kAtWork = 0.01;

struct Mechanism {
  const char* name;
  const char* counter;  // of CounterReport::extra
  const char* section;  // of the profile
  std::vector<const char*> parameters;
};

const std::array kMechanisms = {
    Mechanism{
        "QP contexts",
        "qp_context_misses",
        "nic",
        {"qp_context_bytes", "qp_responder_context_bytes", "qp_context_cache_bytes", "qp_responder_context_cache_bytes",
         "near_qp_contexts", "far_qp_context_ns", "qp_context_miss_ns", "qp_context_reads"}},
    Mechanism{"WQE cache",
              "wqe_cache_misses",
              "nic",
              {"wqe_cache_bytes", "sent_wqe_cache_bytes", "sent_wqe_replacement", "reread_wqe_ns"}},
    Mechanism{"address translations", "translation_misses", "nic", {"translation_cache_bytes"}},
    Mechanism{"atomics",
              "atomics_served",
              "nic",
              {"atomic_packet_ns", "atomic_operation_ns", "atomic_slots", "atomic_slot_lowest_bit"}},
};

}  // namespace

Json assumed_parameters(const Json& profile, const std::vector<CounterReport>& counters, double operations) {
  Json found = Json::object();
  for (const Mechanism& each : kMechanisms) {
    double most = 0;
    for (const CounterReport& report : counters) most = std::max(most, report.extra.value(each.counter, 0.0));
    if (most <= kAtWork * operations) continue;
    Json assumed = Json::array();
    for (const char* parameter : each.parameters) {
      if (profile.at(each.section).at(parameter).at("source") == "assumed") assumed.push_back(parameter);
    }
    if (!assumed.empty()) found[each.name] = {{"assumed", assumed}, {"of", each.parameters.size()}};
  }
  return found;
}

}  // namespace verbscope
