// The closed-form model's answer for a point that has run.
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// Puts the prediction for hardware with these facts into the outcome of a run whose result is there and whose server
// reports `own`; or the reason, when the model refuses the operation.
void predict_point(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, const NodeReport& own,
                   Outcome& outcome);

// Puts the prediction for the adapter that `node` ran on into the outcome; or the reason, when it cannot be modelled.
void predict_for_device(const Benchmark& benchmark, const Plan& plan, const NodeRun& node, const NodeReport& own,
                        Outcome& outcome);

}  // namespace verbscope
