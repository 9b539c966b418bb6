#include "microbench/run/host_counters.hpp"

namespace verbscope {

Collector make_collector(const NodeRun& node, const Options& options, const Schedule& schedule,
                         const DevicePorts& ports) {
  const bool device = options.fabric == "verbs";
  const CounterPlace place{.node = node.name(),
                           .device = device ? ports.device : "",
                           .ports = ports.ports,
                           // Not known when operations end it.
                           .window = schedule.iters ? Picos(0) : schedule.duration,
                           // The peer waits for so long.
                           .patience = schedule.timeout * 4 / 5};
  return {node.name(), make_sources(parse_counters(options.counter_sources, "--counter_sources", device), place),
          counters_needed(options.counter_sources, options.require_counters, node.name())};
}

void take_counters(Collector& collector, double rate_mops, Outcome& outcome) {
  Collector::Collected collected = collector.collect(rate_mops * 1e6);
  outcome.counters = std::move(collected.reports);
  if (outcome.failure.empty()) outcome.failure = collected.failure;
}

}  // namespace verbscope
