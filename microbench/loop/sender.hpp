// The workload of a thread that sends, writes or reads: the loop of send_loop.hpp over rings of send_ring.hpp.
#pragma once

#include <memory>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

QueueNeeds sender_needs(const Operation& operation);

struct SenderOptions {
  Addresses addresses = Addresses::sequential;  // of WRITE and READ in the region of the peer
  bool random_turns = false;                    // its QPs at random instead of in turn
};

// Builds the rings and registers the payloads: SENDs, WRITEs or READs. Throws Error.
std::unique_ptr<Workload> make_sender(const ThreadSetup& setup, const SenderOptions& options = {});

}  // namespace verbscope
