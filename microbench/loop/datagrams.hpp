// The workload of a thread that sends datagrams to many peers, each to one at random, and receives theirs meanwhile.
#pragma once

#include <memory>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

// What a QP needs for both.
QueueNeeds datagram_needs_both_ways(const Operation& op);

// Makes the workload: registers the buffers and posts every RECV. Throws Error.
std::unique_ptr<Workload> make_datagram_exchange(const ThreadSetup& setup);

}  // namespace verbscope
