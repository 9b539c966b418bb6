// A set of nodes that are simulated together: a logical process, and the state that its nodes share.
#pragma once

#include <cstddef>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

class SimThread;

struct alignas(64) Partition : LogicalProcess {
  // `memory`: for the packets of all partitions.
  Partition(PacketMemory& memory, std::size_t number, std::size_t partitions)
      : LogicalProcess(partitions == 1), packets(memory, number, partitions) {}

  SimThread* running = nullptr;  // the thread that runs now; null if the control path runs outside of threads
  PacketPool packets;
};

}  // namespace verbscope::sim
