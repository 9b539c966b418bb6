// The results of a sequencer's threads as JSON: those of each node, and at the server the checked result of all.
#pragma once

#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"
#include "systems/sequencer/ends.hpp"

namespace verbscope {

// The results of one node. A client whose audit is not the server's adds the bits of its own, while they fit a message.
Json sequencer_node_json(const std::vector<const Workload*>& threads, const SequencerOptions& options);

// At the server: latency of all clients together, batches, the account of the values, the bottleneck. Sets
// outcome.failure when a value was received twice or out of order, or is missing where nothing can get lost.
//
// The account is exact while the bits of all clients are here, as they are in a simulation and in runs of up to
// kPackedValues values: then no value was received twice, and the number of missing values is known. For longer runs
// each process still detects values that it received twice, and if no value is missing the fingerprints of received and
// handed-out values must be equal.
void check_sequence(Outcome& outcome, const SequencerOptions& options);
inline constexpr std::uint64_t kPackedValues = 3u << 20;  // a quarter of a byte each, of a message of 1 MB

// Lines for the console.
std::string sequencer_text(const Json& result);

// The model of a request and its response, with the batches of `result` (one by one if it has none).
Prediction predict_sequencer(const ClusterWire& cluster, const Operation& operation, int ports,
                             const SequencerOptions& options, const Json& result);

}  // namespace verbscope
