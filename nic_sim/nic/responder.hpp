// The half of a NIC that answers: its parts, each of which knows only those that its constructor is given. Request
// packets wait in line for the unit of their QP. A SEND takes a RECV; payload and CQE are written; READs and atomics
// are answered, all else is acknowledged on reliable transports, in order.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic_sim/link/framing.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/qp_state.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/unit_lines.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The responder's judgement of a request before it does anything: its place in the order, its rights, the RECV that it
// needs.

// A verdict says what is to be done with a request packet.
enum class Verdict {
  take,
  repeat,         // a READ that was answered before
  drop,           // without a word
  duplicate,      // acknowledged again; an atomic gets the result that was kept
  gap,            // a packet before it is missing
  invalid,        // the QP does not allow it
  no_access,      // the region does not allow it
  no_recv,        // none is posted
  wait_for_recv,  // one is posted and not fetched yet
};

// Whether the packet begins to use a RECV. One whose message broke off (UC) serves the next.
bool takes_recv(const SimQp& qp, const Packet& packet);

// Yields what the transport, the region and the receive queue say to a packet of `qp`.
Verdict judge(const SimQp& qp, const Packet& packet, const HostMemory& memory);

// The units that take in what arrives: requests, and the answers to what this side asked for. Packets wait at their QP,
// in the order of their arrival, and QPs with packets stand in one line. A unit that is free takes the first QP and is
// with its packet in front until it is done with it; then the QP stands at the end. So no two units work on one QP, and
// no unit is idle while another QP waits.

// One cache line.
struct alignas(64) ReceivingUnit {
  SimQp* qp = nullptr;  // whose packet in front it has, if any
  Picos free_at{0};     // what it works on takes its time one after the other
  bool waits_for_recv = false;
  bool waits_for_atomic = false;  // the packet in front waits for an earlier atomic of its QP
  bool translated = false;        // the addresses of the packet in front have been looked up
  std::uint16_t generation = 0;   // its QP had this when the packet in front was taken up: a reset ends what it began
  bool repeats = false;           // the READ in front was answered before
  std::uint32_t responses = 0;    // packets made of the response to the READ in front
  Picos slot_wanted_at{0};        // when the atomic in front found its slot taken
  Picos waiting_since{0};         // when the packet in front began to wait, or came to the front
  UnitTime time;

  Packet& front() const { return qp->arrivals.line.front(); }
};

class ReceivingUnits {
 public:
  // `whole` leads to who does a unit's work on the packet in front.
  ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, NicCounts& counts, const QpTable& qps,
                 Congestion& congestion, int units, QpContexts& contexts, const WholeNic& whole);
  ReceivingUnits(const ReceivingUnits&) = delete;
  ReceivingUnits& operator=(const ReceivingUnits&) = delete;

  // The unit that has the QP, or had it last.
  ReceivingUnit& of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.arrivals.unit)]; }
  ReceivingUnit& operator[](int number) { return units_[static_cast<std::size_t>(number)]; }

  // The unit of `qp` works for `time` on something of it, as soon as it is free; yields the end.
  Picos occupy(SimQp& qp, Picos time) {
    ReceivingUnit& unit = of(qp);
    unit.free_at = std::max(unit.free_at, engine_.now()) + time;
    unit.time.busy += time;
    qp.arrivals.time.busy += time;
    return unit.free_at;
  }
  // So much of that is because a WQE had to be read again.
  void note_reread(SimQp& qp, Picos time) {
    of(qp).time.rereading += time;
    qp.arrivals.time.rereading += time;
  }

  // A packet has arrived.
  void receive(Packet& packet);

  // The time from `waiting_since` to now is the unit's time of waiting.
  void note_waited(ReceivingUnit& unit);
  // The unit was held up for `time` by atomics before the packet in front.
  void note_held_up(ReceivingUnit& unit, Picos time) {
    unit.time.held_up += time;
    unit.qp->arrivals.time.held_up += time;
  }

  // The unit has taken in the answer in front: it leaves the line.
  Packet& answer_is_taken(ReceivingUnit& unit);
  // The unit is done with the request in front, and takes the next as soon as its posted writes have credits.
  void front_is_done(ReceivingUnit& unit);

  // RECVs have come for a QP, for those of a shared receive queue; the last atomic of a QP has ended: who waits for
  // that goes on.
  void recvs_came(SimQp& qp);
  void recvs_came(const SimSrq& srq);
  void atomics_ended(SimQp& qp);

  // The QP is flushed, reset or destroyed. A unit that waits for a RECV or an atomic of this QP goes on: the packet in
  // front finds the QP gone. (One that waits for a slot finds that when it has the slot.)
  void forget(SimQp& qp);

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  static void unit_free(void* units, std::uint64_t unit);
  static void take_in_later(void* units, std::uint64_t packet);
  // `qp`: that the packet names; null: there is none.
  void take_in(SimQp* qp, Packet& packet);
  std::uint32_t number_of(const ReceivingUnit& unit) const { return static_cast<std::uint32_t>(&unit - units_.data()); }
  void get_in_line(SimQp& qp);
  void let_go(ReceivingUnit& unit);
  void serve();
  bool refuse_front(SimQp& qp);
  void resume(ReceivingUnit& unit);
  void free_later(ReceivingUnit& unit, Picos when);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  NicCounts& counts_;
  const QpTable& qps_;
  Congestion& congestion_;
  QpContexts& contexts_;
  const WholeNic& whole_;
  std::vector<ReceivingUnit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::arrivals> line_;
};

// Fetches RECVs ahead of use, from the queues of QPs and from shared ones.
class RecvFetcher {
 public:
  // `group`: as many RECVs as one DMA read fetches. `units` are told of RECVs that have come.
  RecvFetcher(PcieBus& bus, const QpTable& qps, std::uint64_t group, ReceivingUnits& units)
      : bus_(bus), qps_(qps), group_(group), units_(units) {}
  RecvFetcher(const RecvFetcher&) = delete;
  RecvFetcher& operator=(const RecvFetcher&) = delete;

  // RECVs were posted, or used: asks for more if there are fewer than two groups ahead.
  void fetch(SimQp& qp);
  void fetch(SimSrq& srq);

 private:
  static void recvs_fetched(void* fetcher, std::uint64_t word);
  static void shared_recvs_fetched(void* fetcher, std::uint64_t srq_and_count);
  void fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift);

  PcieBus& bus_;
  const QpTable& qps_;
  std::uint64_t group_;
  ReceivingUnits& units_;
};

// Uses RECVs: a message takes one, its bytes fill it, and it completes; those of a QP that has failed complete as
// flushed.

// Where the adapter leaves the packet's payload for the driver to copy; nowhere: it goes to the RECV's buffer.
inline InlineReceive inline_receive(const SimQp& qp, const Packet& packet) {
  const bool fits = packet.verb == Verb::send && packet.first && packet.last && packet.payload <= qp.inline_recv;
  return fits ? qp.inline_place : InlineReceive::nowhere;
}

class RecvConsumer {
 public:
  RecvConsumer(PcieBus& bus, PacketPool& packets, LinkType link, NicCounts& counts, const HostMemory& memory,
               PayloadWriter& payload, CqeWriter& cqes, RecvFetcher& fetcher)
      : ethernet_(facts(link).ethernet),
        bus_(bus),
        packets_(packets),
        counts_(counts),
        memory_(memory),
        payload_(payload),
        cqes_(cqes),
        fetcher_(fetcher) {}
  RecvConsumer(const RecvConsumer&) = delete;
  RecvConsumer& operator=(const RecvConsumer&) = delete;

  // The next RECV is the present message's from now on. It must be fetched.
  void take(SimQp& qp, const Packet& packet);

  // Puts the payload of a SEND, and in front of it the GRH that a datagram has, into the RECV in use.
  ibv_wc_status deliver(SimQp& qp, const Packet& packet);

  // The message that `packet` is of has ended, and with it its RECV.
  void complete(SimQp& qp, const Packet& packet, ibv_wc_status status);

  // The RECV in use and all RECVs of the QP's own queue complete as flushed.
  void flush(SimQp& qp);

 private:
  ibv_wc_status scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data, InlineReceive place);
  void write(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey);
  void complete_flushed(SimQp& qp, std::uint64_t wr_id, std::uint64_t index);

  bool ethernet_;
  PcieBus& bus_;
  PacketPool& packets_;
  NicCounts& counts_;
  const HostMemory& memory_;
  PayloadWriter& payload_;
  CqeWriter& cqes_;
  RecvFetcher& fetcher_;
};

// Sends what the responder answers: acknowledgements, the data of READs, the results of atomics. All of a QP leave in
// the order of the requests, so one whose data are still being read holds up those behind it.
class AnswerSender {
 public:
  // `node`: of the NIC, the answers' source.
  AnswerSender(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& packets, const Profile& profile,
               NicCounts& counts, const QpTable& qps, const WholeNic& whole, const HostMemory& memory,
               Congestion& congestion, std::uint32_t node, std::uint64_t seed)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(profile.wire.link_type),
        profile_(profile.nic),
        counts_(counts),
        qps_(qps),
        whole_(whole),
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
  const WholeNic& whole_;
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

// Does what a request asks for, or says why not: payload into memory or a RECV, atomics, completions, acknowledgements.
class RequestExecutor {
 public:
  RequestExecutor(const NicProfile& profile, NicCounts& counts, const WholeNic& whole, PayloadWriter& payload,
                  RecvConsumer& recvs, AnswerSender& answers, AtomicUnit& atomics)
      : profile_(profile),
        counts_(counts),
        whole_(whole),
        payload_(payload),
        recvs_(recvs),
        answers_(answers),
        atomics_(atomics) {}
  RequestExecutor(const RequestExecutor&) = delete;
  RequestExecutor& operator=(const RequestExecutor&) = delete;

  // The packet is as expected: it takes effect; but the response to a READ is the unit's work, packet by packet. False:
  // an atomic that waits for its slot in front of its unit's line.
  bool take(SimQp& qp, Packet& packet);

  // `verdict`, which is neither take nor repeat, is said to the packet.
  void refuse(SimQp& qp, const Packet& packet, Verdict verdict);

 private:
  void take_payload(SimQp& qp, Packet& packet);
  void finish_message(SimQp& qp, const Packet& packet);
  void fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status);

  const NicProfile& profile_;
  NicCounts& counts_;
  const WholeNic& whole_;
  PayloadWriter& payload_;
  RecvConsumer& recvs_;
  AnswerSender& answers_;
  AtomicUnit& atomics_;
};

// The work of a responder's unit on the request packet in front of its line: it has the QP's state and the addresses
// looked up, takes the time that the packet costs, and has it take effect, or be refused.
class RequestProcessor {
 public:
  RequestProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, QpContexts& contexts,
                   HostMemory& memory, const WholeNic& whole, ReceivingUnits& units, RequestExecutor& executor,
                   AnswerSender& answers)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        counts_(counts),
        contexts_(contexts),
        memory_(memory),
        whole_(whole),
        units_(units),
        executor_(executor),
        answers_(answers) {}
  RequestProcessor(const RequestProcessor&) = delete;
  RequestProcessor& operator=(const RequestProcessor&) = delete;

  // A unit has taken the QP, with `packet` in front.
  void take_up(SimQp& qp, Packet& packet);
  // The state of the QP is there, or the RECV or the earlier atomic that the packet in front waited for: it is judged
  // and costs its time, unless it must wait for something else.
  void begin(SimQp& qp, Packet& packet);

 private:
  static void read_done(void* processor, std::uint64_t qp);
  void take_answer(SimQp& qp, const Packet& answer);
  static void answer_taken(void* processor, std::uint64_t qp);
  static void time_is_over(void* processor, std::uint64_t qp);
  std::uint64_t missing_translations(SimQp& qp, const Packet& packet);
  Picos further_lines(std::uint64_t payload) const;
  Picos service_time(const SimQp& qp, const Packet& packet, Verdict verdict) const;
  void work(SimQp& qp, Picos time);
  bool execute(ReceivingUnit& unit, SimQp& qp, Packet& packet);
  bool respond(ReceivingUnit& unit, SimQp& qp, Packet& packet);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  QpContexts& contexts_;
  HostMemory& memory_;
  const WholeNic& whole_;
  ReceivingUnits& units_;
  RequestExecutor& executor_;
  AnswerSender& answers_;
};

struct Responder {
  // `node`: of the NIC.
  Responder(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            const QpTable& qps, const WholeNic& whole, QpContexts& contexts, HostMemory& memory, Congestion& congestion,
            PayloadWriter& payload, CqeWriter& cqes, std::uint32_t node, std::uint64_t seed)
      : units(engine, bus, fabric, counts, qps, congestion, profile.nic.responder_units, contexts, whole),
        fetcher(bus, qps, static_cast<std::uint64_t>(profile.wire.recv_prefetch), units),
        recvs(bus, pool, profile.wire.link_type, counts, memory, payload, cqes, fetcher),
        answers(engine, bus, fabric, pool, profile, counts, qps, whole, memory, congestion, node, seed),
        atomics(engine, bus, pool, profile.nic, counts, qps, memory, payload, units, answers),
        executor(profile.nic, counts, whole, payload, recvs, answers, atomics),
        processor(engine, bus, profile.nic, counts, contexts, memory, whole, units, executor, answers) {}

  // Completes all RECVs of the QP's own queue, and the one in use, as flushed.
  void flush(SimQp& qp) {
    recvs.flush(qp);
    units.forget(qp);
  }

  ReceivingUnits units;
  RecvFetcher fetcher;
  RecvConsumer recvs;
  AnswerSender answers;
  AtomicUnit atomics;
  RequestExecutor executor;
  RequestProcessor processor;
};

}  // namespace verbscope::sim
