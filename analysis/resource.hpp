// The resources that can limit a rate: one list for `explain`, `trace`, the report and runs on changed profiles.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace verbscope {

enum class Resource {
  mmio,               // MMIO writes on the link to the NIC
  pcie_to_nic,        // the link to the NIC, MMIO included
  pcie_to_host,       // the link to the host
  wire_out,           // the busiest port of the node, sending
  wire_in,            // receiving
  requester_units,    // all processing units of the requester
  requester_unit,     // the busiest of them: that of one QP, or of a few
  responder_units,    // all processing units of the responder
  responder_unit,     // the busiest of them
  cpu,                // the busiest thread
  driver_lock,        // the busiest lock of a QP, a CQ or a doorbell register that threads share
  shared_line,        // the cache line to which threads add most
  atomic_slot,        // the busiest lock of the atomic unit
  dma_reads,          // DMA reads in flight: tags
  wqe_fetch,          // WQEs that a unit of the requester may fetch ahead
  qp_context_cache,   // reads of QP contexts that missed
  translation_cache,  // likewise for address translations
  wqe_cache,          // WQEs are read again
  outstanding,        // operations that the program has outstanding: latency
  reads_outstanding,  // READs and atomics that an RC QP may have outstanding
  pauses,             // the switch pauses senders: flow control
  switch_buffer,      // packets are dropped for want of buffer, and all behind them are sent again
  rate_control,       // adapters slow QPs whose packets were marked
  recv_queue,         // RECVs that are posted: without one a message is dropped or sent again
};

struct ResourceFacts {
  Resource resource;
  std::string_view key;    // "mmio", in JSON
  std::string_view words;  // "MMIO bandwidth", as a person says it
  std::string_view unit;   // of its capacity
  // Stands for all resources that have one capacity: who doubles it doubles it for all of these.
  Resource capacity;
  // The parameters of a cluster profile ("section.key") that make the capacity: times that are halved, and sizes and
  // numbers that are doubled, for twice of it. docs/simulator.md says what each is. None: options make it.
  std::vector<std::string_view> halved{}, doubled{};
  // The options of benchmarks that relieve it, the most likely first.
  std::vector<std::string_view> options{};
  // What a simulated node counts of it, a key of `extra` (docs/counters.md); empty where several counts make it.
  std::string_view counter{};
};

const ResourceFacts& facts(Resource resource);
std::span<const ResourceFacts> all_resources();

inline std::string_view to_string(Resource resource) {
  return facts(resource).key;
}
inline std::string_view words_for(Resource resource) {
  return facts(resource).words;
}
inline Resource capacity(Resource resource) {
  return facts(resource).capacity;
}

// A processing unit of an adapter, of the requester or of the responder.
inline bool is_unit(Resource resource) {
  return capacity(resource) == Resource::requester_unit || capacity(resource) == Resource::responder_unit;
}

// An option of the program makes its capacity, not the cluster.
inline bool is_option(Resource resource) {
  return facts(resource).halved.empty() && facts(resource).doubled.empty();
}

}  // namespace verbscope
