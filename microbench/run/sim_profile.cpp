#include "microbench/run/sim_profile.hpp"

#include <algorithm>
#include <array>

#include "common/hash.hpp"
#include "common/paths.hpp"

namespace verbscope {

namespace {

// A mechanism took part if it was counted for more than this share of the operations.
constexpr double kTookPart = 0.01;

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

std::filesystem::path file_of(const std::string& fabric) {
  return find_config("clusters", fabric.substr(kSimulatedPrefix.size()));
}

}  // namespace

SimProfile::SimProfile(const std::string& fabric)
    : parameters(read_json_file(file_of(fabric))),
      profile(read_profile(parameters, file_of(fabric).string())),
      checksum(fmt::format("{:016x}", text_hash(dump_json(parameters)))) {}

Json SimProfile::assumed(const std::vector<CounterReport>& counters, double operations) const {
  Json found = Json::object();
  for (const Mechanism& each : kMechanisms) {
    double largest = 0;
    for (const CounterReport& report : counters) largest = std::max(largest, report.extra.value(each.counter, 0.0));
    if (largest <= kTookPart * operations) continue;
    Json assumed = Json::array();
    for (const char* parameter : each.parameters) {
      if (parameters.at(each.section).at(parameter).at("source") == "assumed") assumed.push_back(parameter);
    }
    if (!assumed.empty()) found[each.name] = {{"assumed", assumed}, {"of", each.parameters.size()}};
  }
  return found;
}

}  // namespace verbscope
