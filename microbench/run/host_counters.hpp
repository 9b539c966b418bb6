// The counters of this machine beside a run: from the options to the record.
#pragma once

#include "counters/collector.hpp"
#include "counters/sources.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/outcome.hpp"
#include "microbench/run/ports.hpp"

namespace verbscope {

// The sources of --counter_sources for `node` on these ports.
Collector make_collector(const NodeRun& node, const Options& options, const Schedule& schedule,
                         const DevicePorts& ports);

// After the run, whose operations came at `rate_mops`: puts the reports into the outcome, and the failure when a
// required source has not counted.
void take_counters(Collector& collector, double rate_mops, Outcome& outcome);

}  // namespace verbscope
