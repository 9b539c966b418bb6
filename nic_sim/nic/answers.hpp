// Packets that a responder sends back: ACKs and NAKs, data of READs, results of atomics; and the atomic unit.
#pragma once

#include <cstdint>
#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/confirmation.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Sends the answers of each QP in the order of its requests: an answer whose data are still being read holds up those
// behind it.
class AnswerSender {
 public:
  // `node`: number of the NIC's node, the source of the answers.
  AnswerSender(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& packets, const Profile& profile,
               NicCounts& counts, const QpTable& qps, SendCompleter& completer, const HostMemory& memory,
               Congestion& congestion, std::uint32_t node, std::uint64_t seed)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(profile),
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

  // Sends an ACK or a NAK (`kind`) with `sequence`.
  void acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence);

  // Sends packet `number` of the response to a READ, after a DMA read of its data. `repeats`: the READ was answered
  // before. Returns true if it is the last packet.
  bool respond(SimQp& qp, const Packet& read, std::uint32_t number, bool repeats);

  // Makes the response to an atomic. The caller stores the result, 8 bytes, in its data.
  Packet& make_atomic_response(const SimQp& qp, const Packet& atomic);

  // Queues an answer. It leaves after those before it, and not while its reads_left is above 0.
  void send(SimQp& qp, Packet& answer);

  // The region that the request named; null if it was deregistered.
  const Region* registered_region(const Packet& answer, std::uint64_t bytes) const {
    return memory_.find(answer.rkey, answer.remote_address, bytes);
  }
  // `answer` holds its data and may leave. If not `registered`, the region was deregistered: the answer becomes a NAK,
  // and the QP fails.
  void data_read(SimQp& qp, Packet& answer, bool registered);

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

// The locks of the atomic unit: the address of an atomic selects a slot, which the atomic holds during its
// read-modify-write over PCIe. Units wait in line for a slot that is taken.
class AtomicSlots {
 public:
  explicit AtomicSlots(const NicProfile& profile)
      : lowest_bit_(profile.atomic_slot_lowest_bit),
        slots_(profile.atomic_slots),
        next_(static_cast<std::size_t>(profile.responder_units), kNoUnit) {}

  std::uint64_t slot_of(std::uint64_t address) const { return address >> lowest_bit_ & (slots_.size() - 1); }

  // Takes the slot. If it is taken, `unit` waits in its line, and the result is false.
  bool take(std::uint64_t number, int unit, Picos now) {
    Slot& slot = slots_[number];
    if (!slot.taken) {
      slot.taken = true;
      slot.held -= now;
      return true;
    }
    (slot.first == kNoUnit ? slot.first : next_[static_cast<std::size_t>(slot.last)]) = unit;
    slot.last = unit;
    next_[static_cast<std::size_t>(unit)] = kNoUnit;
    return false;
  }
  // Gives the slot to the unit that has waited longest and returns that unit; if none waits, frees it: kNoUnit.
  static constexpr int kNoUnit = -1;
  int pass_on(std::uint64_t number, Picos now) {
    Slot& slot = slots_[number];
    const int unit = slot.first;
    if (unit == kNoUnit) {
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
    int first = kNoUnit;  // units that wait, linked through next_
    int last = kNoUnit;
    Picos held{0};  // so far; while it is taken, minus the time at which it was taken
  };

  int lowest_bit_;
  std::vector<Slot> slots_;
  std::vector<int> next_;  // by unit: the next unit in the same line
};

// The responder's atomic unit. It reads, changes and writes 8 bytes over PCIe while it holds the slot of the address.
// An atomic whose slot is taken stays in front of its unit and blocks that unit.
class AtomicUnit {
 public:
  AtomicUnit(Engine& engine, PcieBus& bus, PacketPool& packets, const NicProfile& profile, NicCounts& counts,
             const QpTable& qps, PayloadWriter& payload, ReceivingUnits& units, AnswerSender& answers,
             const ReceiveEvents& events)
      : engine_(engine),
        bus_(bus),
        packets_(packets),
        profile_(profile),
        counts_(counts),
        qps_(qps),
        payload_(payload),
        units_(units),
        answers_(answers),
        events_(events),
        slots_(profile) {}
  AtomicUnit(const AtomicUnit&) = delete;
  AtomicUnit& operator=(const AtomicUnit&) = delete;

  // Starts the atomic if its slot is free. Else the packet waits in front of its unit, and the result is false.
  bool begin(SimQp& qp, const Packet& packet);

  // Answers a repeated atomic with its stored result, if it is still stored. The operation is not repeated.
  void repeat(SimQp& qp, const Packet& packet);

  // The operation of an atomic is done; `answer` answers it. Calls `resume_work` with the QP if its first packet waited
  // for its last atomic. Returns true if a unit that waited for the slot is idle now.
  template <class Resume>
  bool done(SimQp& qp, Packet& answer, Resume&& resume_work) {
    const Region* const region = answers_.registered_region(answer, kAtomicBytes);
    operate(qp, answer, region);
    const bool idle = pass_on_slot(answer.remote_address);
    if (of_this_generation(qp, answer.cookie) && --qp.responder.atomics == 0) units_.atomics_ended(qp, resume_work);
    answers_.data_read(qp, answer, region != nullptr);
    return idle;
  }

  // How long each slot has been held so far.
  std::vector<Picos> times_held() const { return slots_.times_held(engine_.now()); }

 private:
  static void operand_read(void* unit, std::uint64_t answer);
  void start(SimQp& qp, const Packet& packet);
  void operate(SimQp& qp, Packet& answer, const Region* region);
  std::uint64_t change(SimQp& qp, const Packet& answer, const Region& region);
  bool pass_on_slot(std::uint64_t address);

  Engine& engine_;
  PcieBus& bus_;
  PacketPool& packets_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  PayloadWriter& payload_;
  ReceivingUnits& units_;
  AnswerSender& answers_;
  const ReceiveEvents& events_;
  AtomicSlots slots_;
};

}  // namespace verbscope::sim
