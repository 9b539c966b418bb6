// What a responder sends back: acknowledgements, the data of READs, the results of atomics.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/link/framing.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/confirmation.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/receive_events.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Sends what the responder answers: acknowledgements, the data of READs, the results of atomics. All of a QP leave in
// the order of the requests, so one whose data are still being read holds up those behind it.
class AnswerSender {
 public:
  // `node`: of the NIC, the answers' source.
  AnswerSender(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& packets, const Profile& profile,
               NicCounts& counts, const QpTable& qps, SendCompleter& completer, const HostMemory& memory,
               Congestion& congestion, std::uint32_t node, std::uint64_t seed)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(profile.wire.link_type),
        profile_(profile.nic),
        counts_(counts),
        qps_(qps),
        completer_(completer),
        memory_(memory),
        congestion_(congestion),
        node_(node),
        random_(seed) {}
  AnswerSender(const AnswerSender&) = delete;
  AnswerSender& operator=(const AnswerSender&) = delete;

  // An acknowledgement of either kind of everything up to `sequence`.
  void acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence);

  // Packet `number` of the response to a READ; its data are read first. `repeats`: the READ was answered before. Yields
  // whether it is the last.
  bool respond(SimQp& qp, const Packet& read, std::uint32_t number, bool repeats);

  // The response to an atomic; the caller puts the 8 bytes of the result into its data.
  Packet& make_atomic_response(const SimQp& qp, const Packet& atomic);

  // Puts an answer behind those of the QP that have not left. It waits there while its reads_left is not 0.
  void send(SimQp& qp, Packet& answer);

  // Whether the region that the request of `answer` named has not been deregistered meanwhile.
  bool still_there(const SimQp& qp, const Packet& answer, std::uint64_t bytes) const {
    return memory_.grants(*qp.pd, answer.rkey, answer.remote_address, bytes, 0);
  }
  // The data of `answer` are in it, and it may leave. Not `there`: their region has gone; the answer refuses, and the
  // QP fails.
  void data_read(SimQp& qp, Packet& answer, bool there);

 private:
  static void response_read(void* sender, std::uint64_t answer);
  static void response_ready(void* sender, std::uint64_t answer);
  static void rate_allows(void* sender, std::uint64_t qp);
  Packet& make(const SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload, Bytes extensions);
  void send_ready(SimQp& qp);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  PacketPool& packets_;
  Framing framing_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  SendCompleter& completer_;
  const HostMemory& memory_;
  Congestion& congestion_;
  std::uint32_t node_;
  Random random_;
};

// The locks of the atomic unit. An atomic holds the slot that its address chooses while its read-modify-write crosses
// PCIe; who finds it taken waits in line for it.
class AtomicSlots {
 public:
  explicit AtomicSlots(const NicProfile& profile)
      : lowest_bit_(profile.atomic_slot_lowest_bit),
        slots_(profile.atomic_slots),
        next_(static_cast<std::size_t>(profile.responder_units), kNobody) {}

  std::uint64_t slot_of(std::uint64_t address) const { return address >> lowest_bit_ & (slots_.size() - 1); }

  // Takes the slot; or, when it is taken, has responder unit `unit` wait for it: false.
  bool take(std::uint64_t number, int unit, Picos now) {
    Slot& slot = slots_[number];
    if (!slot.taken) {
      slot.taken = true;
      slot.held -= now;
      return true;
    }
    (slot.first == kNobody ? slot.first : next_[static_cast<std::size_t>(slot.last)]) = unit;
    slot.last = unit;
    next_[static_cast<std::size_t>(unit)] = kNobody;
    return false;
  }
  // Frees the slot, or gives it to the unit that has waited longest: its number, else kNobody.
  static constexpr int kNobody = -1;
  int give_up(std::uint64_t number, Picos now) {
    Slot& slot = slots_[number];
    const int unit = slot.first;
    if (unit == kNobody) {
      slot.taken = false;
      slot.held += now;
    } else {
      slot.first = next_[static_cast<std::size_t>(unit)];
    }
    return unit;
  }

  // How long each slot has been held so far.
  std::vector<Picos> times_held(Picos now) const {
    std::vector<Picos> times;
    for (const Slot& slot : slots_) times.push_back(slot.taken ? slot.held + now : slot.held);
    return times;
  }

 private:
  struct Slot {
    bool taken = false;
    int first = kNobody;  // units that wait, linked through next_
    int last = kNobody;
    Picos held{0};  // so far; while it is taken less the present
  };

  int lowest_bit_;
  std::vector<Slot> slots_;
  std::vector<int> next_;  // the next unit in the line, by unit: each waits for one slot at most
};

// The responder's atomic unit. An atomic holds the slot that its address chooses while 8 bytes are read, changed and
// written; one that finds its slot taken waits in front of its unit's line, with all that is behind it.
class AtomicUnit {
 public:
  AtomicUnit(Engine& engine, PcieBus& bus, PacketPool& packets, const NicProfile& profile, NicCounts& counts,
             const QpTable& qps, const HostMemory& memory, PayloadWriter& payload, ReceivingUnits& units,
             AnswerSender& answers, const ReceiveEvents& events)
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
        events_(events),
        slots_(profile) {}
  AtomicUnit(const AtomicUnit&) = delete;
  AtomicUnit& operator=(const AtomicUnit&) = delete;

  // Begins the atomic when its slot is free. False: the packet waits for it in front of its unit's line.
  bool begin(SimQp& qp, const Packet& packet);

  // An atomic that was done before gets the result that was kept, if it was. The operation itself is not done twice.
  void repeat(SimQp& qp, const Packet& packet);

  // The operation that `answer` is the answer to is done at memory. `go_on` is called with the QP where a request
  // waited for its last atomic. Whether a unit is idle now that waited for the slot.
  template <class GoOn>
  bool done(SimQp& qp, Packet& answer, GoOn&& go_on) {
    const bool there = answers_.still_there(qp, answer, kAtomicBytes);
    operate(qp, answer, there);
    const bool idle = give_up_slot(answer.remote_address);
    if (of_this_generation(qp, answer.cookie) && --qp.responder.atomics == 0) units_.atomics_ended(qp, go_on);
    answers_.data_read(qp, answer, there);
    return idle;
  }

  // How long each slot has been held so far.
  std::vector<Picos> times_held() const { return slots_.times_held(engine_.now()); }

 private:
  static void operand_read(void* unit, std::uint64_t answer);
  void start(SimQp& qp, const Packet& packet);
  void operate(SimQp& qp, Packet& answer, bool there);
  std::uint64_t change(SimQp& qp, const Packet& answer);
  bool give_up_slot(std::uint64_t address);

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
  const ReceiveEvents& events_;
  AtomicSlots slots_;
};

}  // namespace verbscope::sim
