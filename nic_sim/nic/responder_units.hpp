// The responder's processing units: each QP belongs to one, and request packets wait in line for theirs, in the order
// of their arrival. A unit is with the packet in front until it is done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/link/fabric.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class RequestProcessor;

// One cache line.
struct alignas(64) ResponderUnit {
  PacketQueue line;
  bool busy = false;
  bool waits_for_recv = false;
  bool waits_for_atomic = false;  // the packet in front waits for an earlier atomic of its QP
  bool translated = false;        // the addresses of the packet in front have been looked up
  std::uint16_t generation = 0;   // its QP had this when the packet in front was taken up: a reset ends what it began
  bool repeats = false;           // the READ in front was answered before
  std::uint32_t responses = 0;    // packets made of the response to the READ in front
  Picos slot_wanted_at{0};        // when the atomic in front found its slot taken
  Picos waiting_since{0};         // when the packet in front began to wait, or came to the front
  UnitTime time;
};

class ResponderUnits {
 public:
  // `processor` does a unit's work on the packet in front.
  ResponderUnits(Engine& engine, PcieBus& bus, Fabric& fabric, NicCounts& counts, const QpTable& qps, int units,
                 RequestProcessor& processor)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        counts_(counts),
        qps_(qps),
        processor_(processor),
        units_(static_cast<std::size_t>(units)) {}
  ResponderUnits(const ResponderUnits&) = delete;
  ResponderUnits& operator=(const ResponderUnits&) = delete;

  // Binds a new QP to a unit, one after the other.
  void bind(SimQp& qp);

  ResponderUnit& of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.responder.unit)]; }
  ResponderUnit& operator[](int number) { return units_[static_cast<std::size_t>(number)]; }

  // A request packet has arrived.
  void receive(Packet& packet);

  // The time from `waiting_since` to now is the unit's time of waiting.
  void note_waited(ResponderUnit& unit);

  // The unit is done with the packet in front, and takes the next as soon as its posted writes have credits.
  void front_is_done(ResponderUnit& unit);

  // RECVs have come for a QP, for those of a shared receive queue; the last atomic of a QP has ended: who waits for
  // that goes on.
  void recvs_came(SimQp& qp);
  void recvs_came(const SimSrq& srq);
  void atomics_ended(SimQp& qp);

  // The QP is flushed, reset or destroyed. A unit that waits for a RECV or an atomic of this QP goes on: the packet in
  // front finds the QP gone. (One that waits for a slot finds that when it has the slot.)
  void forget(const SimQp& qp);

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  static void unit_free(void* units, std::uint64_t unit);
  void take_next(ResponderUnit& unit);
  void resume(ResponderUnit& unit);
  void free_later(ResponderUnit& unit, Picos when);
  SimQp* qp_in_front(const ResponderUnit& unit) const { return qps_.find(unit.line.front().target_qp); }

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  NicCounts& counts_;
  const QpTable& qps_;
  RequestProcessor& processor_;
  std::vector<ResponderUnit> units_;
  int next_unit_ = 0;
};

}  // namespace verbscope::sim
