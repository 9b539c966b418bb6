// The workload of a thread that sends: the loop of send_loop.hpp over rings of send_ring.hpp.
#pragma once

#include <memory>

#include "microbench/benchmark.hpp"

namespace verbscope {

QueueNeeds sender_needs(const Operation& operation);

// Builds the rings and registers the payloads. Throws Error.
std::unique_ptr<Workload> make_sender(const ThreadSetup& setup);

}  // namespace verbscope
