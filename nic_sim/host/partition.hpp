// Nodes of a cluster that are simulated together: what their simulation shares.
#pragma once

#include <cstddef>
#include <exception>

#include "common/units.hpp"
#include "nic_sim/host/thread.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

struct alignas(64) Partition {
  Partition(Bytes mtu, std::size_t number, std::size_t partitions) : packets(mtu, number, partitions) {
    threads.all = partitions == 1;
  }

  Engine engine;
  ThreadSlot threads;
  PacketPool packets;
  std::exception_ptr error;  // what one of its threads threw
};

}  // namespace verbscope::sim
