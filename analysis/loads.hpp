// The share of each resource that a point used: from the utilisations that a simulator measured, else from the rate and
// the counted events against what the model says that the resource allows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

enum class Resource {
  mmio,             // MMIO writes on the link to the NIC
  pcie_to_nic,      // the link to the NIC, MMIO included
  pcie_to_host,     // the link to the host
  wire_out,         // the busiest port of the node, sending
  wire_in,          // receiving
  requester_units,  // all processing units of the requester
  requester_unit,   // the busiest of them: that of one QP, or of a few
  responder_units,
  responder_unit,
  cpu,          // the busiest thread
  atomic_slot,  // the busiest lock of the atomic unit
  dma_reads,    // DMA reads in flight: tags
  qp_contexts,  // reads of QP contexts that missed
  outstanding,  // operations that the program has outstanding: latency
};

// "mmio", ...; the second as a person says it: "MMIO bandwidth", ...
std::string_view to_string(Resource resource);
std::string_view words_for(Resource resource);

struct Load {
  Resource resource;
  std::string node;        // "server", "client3"
  double utilisation = 0;  // 1: never idle
  double waited = 0;       // units: the part of it that went by waiting for QP contexts, addresses or RECVs
};

// The load of the resource on one side; null when the resource is not among them.
const Load* find_load(const std::vector<Load>& loads, Resource resource);

// A resource that is held while something else is waited for is full because of that as often as by itself.
bool held_only(Resource resource);

struct Loads {
  bool measured = false;  // busy times of a simulator; else inferred from the rate, the model and what was counted
  std::vector<Load> server;
  std::vector<Load> peers;  // for each resource the load of the busiest client
  // Only from busy times: how evenly the load lies.
  double requester_units_used = 0, responder_units_used = 0;  // share of the units that did anything
  double atomic_slot_mean = 0;                                // load of a mean slot
  double cpu_threads = 0;
};

// The loads that are known of a record that is ok. `prediction` is the record's, null when it has none.
Loads resource_loads(const Record& record, const Prediction* prediction);

// The prediction of a record; none when it has none. Throws Error with the point's name when it is broken.
std::optional<Prediction> prediction_of(const Record& record);

}  // namespace verbscope
