// Writes payload that comes with packets to the host's memory, over PCIe, and wakes the threads that poll there.
#pragma once

#include <cstdint>

#include "nic_sim/host/memory_watch.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class PayloadWriter {
 public:
  PayloadWriter(Engine& engine, PcieBus& bus, PacketPool& packets, const HostMemory& memory)
      : engine_(engine), bus_(bus), packets_(packets), memory_(memory) {}
  PayloadWriter(const PayloadWriter&) = delete;
  PayloadWriter& operator=(const PayloadWriter&) = delete;

  // Writes the payload of `packet` to `address`, in the region of its rkey, and gives the packet back when the bytes
  // are there.
  void write(std::uint64_t address, Packet& packet);

  // How many payloads are not there yet.
  std::uint64_t under_way() const { return under_way_; }

  // Whether a thread polls there, so that it must not see bytes before they are written.
  bool polled(std::uint64_t address, std::uint64_t bytes) const { return watch_.polled(address, bytes); }
  // The threads that poll memory.
  MemoryWatch& watch() { return watch_; }

 private:
  static void written(void* writer, std::uint64_t packet);

  Engine& engine_;
  PcieBus& bus_;
  PacketPool& packets_;
  const HostMemory& memory_;
  std::uint64_t under_way_ = 0;
  MemoryWatch watch_;
};

}  // namespace verbscope::sim
