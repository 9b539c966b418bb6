// Resources that can limit a rate: the common list of `explain`, `trace`, the report and runs on changed profiles.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace verbscope {

enum class Resource {
  mmio,               // MMIO writes on the link to the NIC
  pcie_to_nic,        // the link to the NIC, MMIO included
  pcie_to_host,       // the link to the host
  wire_out,           // sending, on the node's busiest port
  wire_in,            // receiving, on the node's busiest port
  requester_units,    // all processing units of the requester
  requester_unit,     // the busiest requester unit: serves one QP or a few
  responder_units,    // all processing units of the responder
  responder_unit,     // the busiest responder unit
  cpu,                // the busiest thread
  dram,               // memory that the busiest thread waits for
  workers,            // worker threads of an RPC program
  driver_lock,        // the busiest lock of a shared QP, CQ or doorbell register
  shared_line,        // the cache line with the most atomic additions by threads
  atomic_slot,        // the busiest lock of the atomic unit
  dma_reads,          // DMA reads in flight (PCIe tags)
  wqe_fetch,          // WQEs that a requester unit may prefetch
  qp_context_cache,   // reads after QP context misses
  translation_cache,  // reads after address translation misses
  wqe_cache,          // WQE re-reads
  outstanding,        // outstanding operations of the program: latency
  reads_outstanding,  // outstanding READs and atomics of an RC QP
  pauses,             // flow control: the switch pauses senders
  switch_buffer,      // packets dropped because a buffer is full, then sent again with all that follow
  rate_control,       // adapters slow down QPs whose packets were marked
  recv_queue,         // posted RECVs: without one a message is dropped or sent again
  credits,            // credits of RPC sessions: packets wait for answers to earlier ones
  rate_limiter,       // RPC packets wait for the rate that congestion control allows
  timeouts,           // RPC packets without an answer, which are sent again after a time-out
  switch_queue,       // RPC packets in the switch's queue for the node's port
  log_device,         // entries of a replicated log that wait until they are durable
};

struct ResourceFacts {
  Resource resource;
  std::string_view key;    // "mmio", in JSON
  std::string_view words;  // "MMIO bandwidth", in texts
  std::string_view unit;   // of its capacity
  // The resource that stands for all resources with the same capacity: they can only be doubled together.
  Resource capacity;
  // Parameters of a cluster profile ("section.key") that set the capacity. To double it, halve the times and double the
  // sizes and numbers. See docs/simulator.md. Empty if options set it.
  std::vector<std::string_view> halved{}, doubled{};
  // Benchmark options that relieve it, most likely first.
  std::vector<std::string_view> options{};
  // A simulated node's counter of it, a key of `extra` (docs/counters.md); empty if it needs several counters.
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

// True for processing units of an adapter's requester or responder.
inline bool is_unit(Resource resource) {
  return capacity(resource) == Resource::requester_unit || capacity(resource) == Resource::responder_unit;
}

// True if a program option sets its capacity, not the cluster.
inline bool is_option(Resource resource) {
  return facts(resource).halved.empty() && facts(resource).doubled.empty();
}

}  // namespace verbscope
