// Whether the rate of a point can be: it is what the adapters counted, and no more than the wire and the model allow.
#pragma once

#include <optional>
#include <string>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// After the run, with result, counters and prediction in place. `counted`: the counter of the adapters that counts the
// operations; what it makes of the rate comes into the result as `adapter_mops`. Sets the failure, when it is empty,
// where that is another rate: by more than 1 %, or of --iters, where operations are `of_payloads`, 15 %. Where threads
// end their windows otherwise, the adapters must at least have counted the operations.
void check_against_counters(const std::optional<OperationCount>& counted, const Schedule& schedule, bool of_payloads,
                            Outcome& outcome);

// The same on a host, at the server, by the packets of up to `mtu` bytes that the kernel counts at its ports: of
// operations that go one way over UD or UC, which nothing answers, where nothing else passed. Elsewhere there is
// nothing to hold the rate against.
void check_against_ports(const Plan& plan, const Traffic& traffic, std::uint32_t mtu, Outcome& outcome);

// Sets the failure, when it is empty, where the rate, which is the result's key `bounded`, is above what the model of a
// simulated machine, whose links are what its profile says, allows.
void check_against_bounds(const std::string& bounded, Outcome& outcome);

}  // namespace verbscope
