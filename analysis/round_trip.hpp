// Latency of an operation on an idle machine, from post to completion, and the number of outstanding operations.
// Together they give the load of latency.
#pragma once

#include <limits>
#include <string>

#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// Maximum of outstanding READs and atomics per QP: --outs, or the limit of Mellanox adapters.
double most_reads(const Record& record);

struct RoundTrip {
  // Load of latency on an idle machine: rate x unloaded round trip / outstanding operations.
  double load = 0;
  // Shares of that trip in which requester and responder units work; 0 if the steps are unknown.
  double requester_share = 0, responder_share = 0;
  // Upper limit of the latency load: a few times the sum of `load` and `burst`. Infinite if unknown.
  double most_latency = std::numeric_limits<double>::infinity();
  bool reads_are_full = false;  // the QP's limit for READs and atomics binds, not the program's options
  double operations = 0;        // outstanding per posting machine; 0 if no option sets it
  bool returns = false;         // READs or atomics: WQEs wait for a response
  double burst = 0;             // share of a QP's outstanding operations that it posts at once
  // Share of the operations that wait for locks held by others. They wait longer when more operations are outstanding.
  double locked = 0;
  // Outstanding operations are counted per thread over all of its QPs (a ring). More QPs do not add any.
  bool ring = false;
};

// Uses the steps in a simulator's record (`steps_ps`), or else the latency of a READ on the adapters of Kalia et al.,
// ATC 2016. `prediction`: the record's, null if it has none.
RoundTrip round_trip(const Record& record, const Prediction* prediction);

// The option that sets the number of outstanding operations.
std::string outstanding_option(const Record& record);

// True if the benchmark always keeps one operation outstanding.
bool keeps_one_under_way(const Record& record);

// Number of threads of all clients in the record.
double threads_of_clients(const Record& record);

}  // namespace verbscope
