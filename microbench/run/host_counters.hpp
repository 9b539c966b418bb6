// What counts on this machine beside a role: from options to the record.
#pragma once

#include "counters/collector.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/outcome.hpp"
#include "microbench/run/ports.hpp"

namespace verbscope {

// The sources of --counter_sources for `role` on these ports.
Collector make_collector(const Role& role, const Options& options, const Schedule& schedule, const DevicePorts& ports);

// After the run: puts the reports into the outcome, and the failure when a required source has not counted.
void take_counters(Collector& collector, Outcome& outcome);

}  // namespace verbscope
