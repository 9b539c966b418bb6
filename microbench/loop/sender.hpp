// The workload of a thread that sends, writes or reads: the loop of send_loop.hpp over rings of send_ring.hpp.
#pragma once

#include <cstdint>
#include <memory>

#include "microbench/bench/benchmark.hpp"

namespace verbscope {

QueueNeeds sender_needs(const Operation& operation);
// Of QPs that send and receive.
QueueNeeds both_needs(const Operation& operation);

struct SenderOptions {
  Addresses addresses = Addresses::sequential;  // order of the places in the peer's region that WRITEs and READs go to
  bool random_turns = false;                    // the thread takes its QPs at random instead of in turn
  bool receives = false;                        // SENDs come back on the same QPs, which the thread receives
  std::uint64_t alignment = 0;                  // bytes from one place to the next; 0: they lie side by side
};

// The walk of a QP with this seed over a peer's `remote`, in the order that `options` say. Throws Error when the region
// has no place.
RemoteWalk remote_walk(const RemoteRegion& remote, std::uint32_t payload, const SenderOptions& options,
                       std::uint64_t seed);

// Makes the workload: builds the rings of SENDs, WRITEs or READs, and registers the payloads. Throws Error.
std::unique_ptr<Workload> make_sender(const ThreadSetup& setup, const SenderOptions& options = {});

}  // namespace verbscope
