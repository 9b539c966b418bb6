// The responder's atomic unit. An atomic holds the slot that its address chooses while 8 bytes are read, changed and
// written; one that finds its slot taken waits in front of its unit's line, with all that is behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/answer_sender.hpp"
#include "nic_sim/nic/atomic_slots.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/payload_writer.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/receiving_units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class AtomicUnit {
 public:
  AtomicUnit(Engine& engine, PcieBus& bus, PacketPool& packets, const NicProfile& profile, NicCounts& counts,
             const QpTable& qps, const HostMemory& memory, PayloadWriter& payload, ReceivingUnits& units,
             AnswerSender& answers)
      : engine_(engine),
        bus_(bus),
        packets_(packets),
        profile_(profile),
        counts_(counts),
        qps_(qps),
        memory_(memory),
        payload_(payload),
        units_(units),
        answers_(answers),
        slots_(profile) {}
  AtomicUnit(const AtomicUnit&) = delete;
  AtomicUnit& operator=(const AtomicUnit&) = delete;

  // Begins the atomic when its slot is free. False: the packet waits for it in front of its unit's line.
  bool begin(SimQp& qp, const Packet& packet);

  // An atomic that was done before gets the result that was kept, if it was. The operation itself is not done twice.
  void repeat(SimQp& qp, const Packet& packet);

  // How long each slot has been held so far.
  std::vector<Picos> times_held() const { return slots_.times_held(engine_.now()); }

 private:
  static void operand_read(void* unit, std::uint64_t answer);
  static void operation_done(void* unit, std::uint64_t answer);
  void start(SimQp& qp, const Packet& packet);
  std::uint64_t operate(SimQp& qp, const Packet& answer);
  void give_up_slot(std::uint64_t address);

  Engine& engine_;
  PcieBus& bus_;
  PacketPool& packets_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  const HostMemory& memory_;
  PayloadWriter& payload_;
  ReceivingUnits& units_;
  AnswerSender& answers_;
  AtomicSlots slots_;
};

}  // namespace verbscope::sim
