// The half of a NIC that asks: its parts, each of which knows only those that its constructor is given. WQEs are
// fetched, units take QPs with work in turn and send a packet each time, and work requests end when sent (unreliable),
// acknowledged or answered (reliable).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "nic_sim/link/framing.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/qp_state.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/responder.hpp"
#include "nic_sim/nic/unit_lines.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The requester's processing units and who has them: QPs with work stand in one line, and a unit that is free takes the
// first for one WQE or packet, so that no two units work on one QP, and no unit is idle while another QP waits. Which
// QP a unit takes next, and when, is decided here and nowhere else.
class UnitScheduler {
 public:
  // `whole` leads to who does the work of a unit on the QP that it has taken.
  UnitScheduler(Engine& engine, int units, const WholeNic& whole)
      : engine_(engine), whole_(whole), units_(static_cast<std::size_t>(units)), idle_(units) {}
  UnitScheduler(const UnitScheduler&) = delete;
  UnitScheduler& operator=(const UnitScheduler&) = delete;

  // Gives a new QP a unit to begin with, and its share of fetching ahead, one after the other.
  void bind(SimQp& qp);

  // Something has changed for `qp`: it gets in line if it has work that its unit can do now and is not there.
  void activate(SimQp& qp);

  // All that the unit needs to work on the QP that it has taken is there: it works for `time`. Yields the end.
  Picos begin_work(SimQp& qp, Picos time);
  // The unit has done its work on the QP that it had taken, and takes the next.
  void work_done(SimQp& qp);

  // WQEs of `qp` have come that were asked for at `since`, while doorbells wait, for its share may fetch no more ahead:
  // a unit that had nothing to do was held up meanwhile.
  void note_held_up(SimQp& qp, Picos since);
  // So much of the unit's work on `qp` is because a WQE had to be read again.
  void note_reread(SimQp& qp, Picos time) {
    unit_of(qp).time.rereading += time;
    qp.requester.time.rereading += time;
  }

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  // One cache line.
  struct alignas(64) Unit {
    Picos free_at{0};
    Picos serving_since{0};
    Picos held_up_until{0};
    UnitTime time;
  };

  // The unit that has the QP, or had it last.
  Unit& unit_of(const SimQp& qp) { return units_[qp.requester.unit]; }
  void serve();

  Engine& engine_;
  const WholeNic& whole_;
  std::vector<Unit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::requester> line_;  // QPs with work
  std::uint32_t next_unit_ = 0;
};

// Brings WQEs from the send queues into the NIC: takes doorbells and BlueFlame WQEs, reads the WQEs of doorbells, holds
// them in the WQE cache until their last use, and reads again those that were evicted before it.
class WqeFetcher {
 public:
  // `scheduler` is told of QPs whose WQEs have come.
  WqeFetcher(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, const QpTable& qps,
             QpContexts& contexts, UnitScheduler& scheduler, std::uint64_t seed);
  WqeFetcher(const WqeFetcher&) = delete;
  WqeFetcher& operator=(const WqeFetcher&) = delete;

  // The MMIO write that tells of a batch of `qp` reaches the NIC at `when`. `batch`: with_generation, the batch's first
  // WQE.
  void batch_arrives(SimQp& qp, std::uint64_t batch, Picos when);

  // Whether the WQE at `next` is in the NIC; else the QP waits for it. What is missing of those that come next is read
  // again meanwhile.
  bool at_hand(SimQp& qp);
  // Whether a WQE is in the NIC for the response to it. If not it is read again: then `read` of `object` runs, with a
  // QpWord of its number.
  bool at_hand_for_response(SimQp& qp, const SendWqe& wqe, Engine::Action read, void* object);

  // A unit takes the WQE up: it no longer counts as fetched ahead, and others may be.
  void taken_up(const SimQp& qp, SendWqe& wqe);
  // The QP will not take up for a long time what was fetched for it: others may fetch ahead meanwhile.
  void give_up_share(SimQp& qp);
  // The last packet of the WQE was made: that was its last use, unless a response is to be scattered as it says.
  void is_sent(SendWqe& wqe);
  // The WQE has had its last use, wherever it is.
  void release(SendWqe& wqe);
  // The QP is flushed, reset or destroyed: none of its WQEs will be used.
  void forget(SimQp& qp);

 private:
  struct Fetch {
    SimQp* qp;
    std::uint16_t generation;
    std::uint64_t first;  // WQE of the batch
  };
  // A share of fetching ahead. There are as many as units, dealt to QPs in turn.
  struct alignas(64) Share {
    std::uint64_t bytes = 0;    // WQEs of so many bytes were fetched and are not taken up
    Picos asked_at{0};          // for the latest of them
    std::deque<Fetch> fetches;  // doorbells whose WQEs are not asked for yet
  };

  static void batch_arrived(void* fetcher, std::uint64_t word);
  static void context_is_here(void* fetcher, std::uint64_t word);
  static void part_fetched(void* fetcher, std::uint64_t word);
  static void wqes_read_again(void* fetcher, std::uint64_t word);

  // The QP of a QpWord, if it still sends what it sent then; else null.
  SimQp* sending(std::uint64_t word) const {
    SimQp* const qp = qps_.current(word);
    return qp != nullptr && qp->state == IBV_QPS_RTS ? qp : nullptr;
  }

  Share& share_of(const SimQp& qp) { return shares_[qp.requester.fetch_share]; }
  void begin_batch(SimQp& qp, std::uint64_t first);
  void fetch_more(Share& share);
  void fetch(SimQp& qp, std::uint64_t first);
  void batch_is_here(SimQp& qp, std::uint64_t first);
  void read_again_ahead(SimQp& qp);
  std::uint64_t read_again(SimQp& qp, std::uint64_t first, std::uint64_t end);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  QpContexts& contexts_;
  UnitScheduler& scheduler_;
  std::vector<Share> shares_;
  Cache<SendWqe> waiting_;  // from their arrival until they are sent
  Cache<SendWqe> sent_;     // those to which a response must come
};

// Ends the work requests of send queues, in their order: with success when they were sent (UC, UD) or confirmed by the
// peer (RC), with an error when they failed, as flushed behind an error.
class SendCompleter {
 public:
  SendCompleter(Engine& engine, const QpTable& qps, const WholeNic& whole, WqeFetcher& fetcher, CqeWriter& cqes)
      : engine_(engine), qps_(qps), whole_(whole), fetcher_(fetcher), cqes_(cqes) {}
  SendCompleter(const SendCompleter&) = delete;
  SendCompleter& operator=(const SendCompleter&) = delete;

  // `packet`, the last of a signaled work request on UC or UD, leaves the port at `when`.
  void left_port(SimQp& qp, const Packet& packet, Picos when);

  // Ends the work requests that the peer has confirmed, up to the first that it has not. RC.
  void complete_all_confirmed(SimQp& qp);

  // The first work request that the peer has not confirmed was refused: it completes with `status` and the QP fails.
  void fail_refused(SimQp& qp, ibv_wc_status status);
  // `wqe` completes with `status`, those before it that are not confirmed as flushed (they had no other end), and the
  // QP fails.
  void fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);
  // All that is not done completes as flushed.
  void flush(SimQp& qp);

 private:
  static void sent(void* completer, std::uint64_t word);
  void complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);

  Engine& engine_;
  const QpTable& qps_;
  const WholeNic& whole_;
  WqeFetcher& fetcher_;
  CqeWriter& cqes_;
};

// Sends again, on RC, what a peer has missed: goes back after a refusal, a lost response or a timeout, waits when the
// peer has no RECV, and gives up when the tries are used up.
class Retransmitter {
 public:
  // `lost_time`: picoseconds that QPs stood still until a timer told of a loss; it adds to them.
  Retransmitter(Engine& engine, const NicProfile& profile, std::uint64_t& lost_time, const QpTable& qps,
                UnitScheduler& scheduler, WqeFetcher& fetcher, SendCompleter& completer)
      : engine_(engine),
        profile_(profile),
        lost_time_(lost_time),
        qps_(qps),
        scheduler_(scheduler),
        fetcher_(fetcher),
        completer_(completer) {}
  Retransmitter(const Retransmitter&) = delete;
  Retransmitter& operator=(const Retransmitter&) = delete;

  // The last packet of a WQE is made: the timer runs from now on, unless it does already.
  void start_timer(SimQp& qp);

  // The peer has refused the packet that a NAK names, and everything before it is confirmed.
  void refused(SimQp& qp, const Packet& nak);

  // The response to the oldest READ or atomic has a gap: it is asked for again. Once until something comes in order
  // again: further packets behind the gap say nothing new.
  void ask_again(SimQp& qp);

 private:
  static void rnr_timer(void* retransmitter, std::uint64_t wait);
  static void retry_timer(void* retransmitter, std::uint64_t word);
  void go_back(SimQp& qp, std::uint32_t sequence);
  void wait_for_receiver(SimQp& qp, const Packet& nak);

  Engine& engine_;
  const NicProfile& profile_;
  std::uint64_t& lost_time_;
  const QpTable& qps_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  SendCompleter& completer_;
};

// Makes request packets from WQEs, gathers their payload, and sends the packets of a QP in order.
class PacketBuilder {
 public:
  // `node`: of the NIC, the packets' source.
  PacketBuilder(PcieBus& bus, Fabric& fabric, PacketPool& packets, LinkType link, NicCounts& counts, const QpTable& qps,
                const HostMemory& memory, Congestion& congestion, UnitScheduler& scheduler, SendCompleter& completer,
                std::uint32_t node)
      : bus_(bus),
        fabric_(fabric),
        packets_(packets),
        framing_(link),
        counts_(counts),
        qps_(qps),
        memory_(memory),
        congestion_(congestion),
        scheduler_(scheduler),
        completer_(completer),
        node_(node) {}
  PacketBuilder(const PacketBuilder&) = delete;
  PacketBuilder& operator=(const PacketBuilder&) = delete;

  // Builds the packet of `wqe` that is next, and sends it when its payload is there. The QP may fail: its state says.
  void send_next(SimQp& qp, const SendWqe& wqe);

 private:
  struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  static void payload_read(void* builder, std::uint64_t packet);
  static void rate_allows(void* builder, std::uint64_t qp);
  bool gather(SimQp& qp, Packet& packet) const;
  Packet& make(const SimQp& qp, const SendWqe& wqe);
  void count(SimQp& qp, const SendWqe& wqe, Packet& packet);
  bool read_payload(SimQp& qp, const SendWqe& wqe, Packet& packet);
  void send_ready(SimQp& qp);

  PcieBus& bus_;
  Fabric& fabric_;
  PacketPool& packets_;
  Framing framing_;
  NicCounts& counts_;
  const QpTable& qps_;
  const HostMemory& memory_;
  Congestion& congestion_;
  UnitScheduler& scheduler_;
  SendCompleter& completer_;
  std::uint32_t node_;
  std::vector<Piece> pieces_;  // the payload of the packet that is being built
};

// The work of a requester's unit on the QP that it has taken: it has the addresses of the payload looked up, takes the
// time that the WQE or its next packet costs, and sends one packet.
class WqeProcessor {
 public:
  WqeProcessor(Engine& engine, PcieBus& bus, const NicProfile& profile, HostMemory& memory, UnitScheduler& scheduler,
               WqeFetcher& fetcher, PacketBuilder& packets, SendCompleter& completer, Retransmitter& retransmitter)
      : engine_(engine),
        bus_(bus),
        profile_(profile),
        memory_(memory),
        scheduler_(scheduler),
        fetcher_(fetcher),
        packets_(packets),
        completer_(completer),
        retransmitter_(retransmitter) {}
  WqeProcessor(const WqeProcessor&) = delete;
  WqeProcessor& operator=(const WqeProcessor&) = delete;

  // Begins work on the QP. The scheduler hears of its end by work_done.
  void take_up(SimQp& qp);

 private:
  static void translations_read(void* processor, std::uint64_t qp);
  static void time_is_over(void* processor, std::uint64_t qp);
  void begin(SimQp& qp);
  void send_packet(SimQp& qp);
  void wqe_sent(SimQp& qp, SendWqe& wqe);

  Engine& engine_;
  PcieBus& bus_;
  const NicProfile& profile_;
  HostMemory& memory_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  PacketBuilder& packets_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

// The requester's work on what comes back on RC: acknowledgements, responses to READs and atomics, and the completions
// that follow from them.
class AnswerHandler {
 public:
  AnswerHandler(Engine& engine, PcieBus& bus, Fabric& fabric, const NicProfile& profile, NicCounts& counts,
                const QpTable& qps, const HostMemory& memory, PayloadWriter& payload_writer, ReceivingUnits& units,
                UnitScheduler& scheduler, WqeFetcher& fetcher, SendCompleter& completer, Retransmitter& retransmitter)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        profile_(profile),
        counts_(counts),
        qps_(qps),
        memory_(memory),
        payload_writer_(payload_writer),
        units_(units),
        scheduler_(scheduler),
        fetcher_(fetcher),
        completer_(completer),
        retransmitter_(retransmitter) {}
  AnswerHandler(const AnswerHandler&) = delete;
  AnswerHandler& operator=(const AnswerHandler&) = delete;

  // A unit has taken in an acknowledgement of either kind or a response; gives the packet back when it is done with it.
  void take(SimQp& qp, Packet& packet);

  // The QP is flushed, reset or destroyed: answers that wait are dropped.
  void forget(SimQp& qp);

 private:
  static void wqe_read(void* handler, std::uint64_t word);
  static void wqe_handled(void* handler, std::uint64_t word);
  void handle_all(SimQp& qp);
  void handle_ack(SimQp& qp, const Packet& packet);
  void handle_response(SimQp& qp, SendWqe& wqe, Packet& packet);
  ibv_wc_status scatter(SimQp& qp, const SendWqe& wqe, Packet& packet);
  std::uint32_t confirmed_by(SimQp& qp, std::uint32_t sequence);
  void acknowledge_up_to(SimQp& qp, std::uint32_t sequence);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const QpTable& qps_;
  const HostMemory& memory_;
  PayloadWriter& payload_writer_;
  ReceivingUnits& units_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

struct Requester {
  // `units`: they take in the answers. `node`: of the NIC. `seed`: of the WQE cache.
  Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile, NicCounts& counts,
            EthernetCounts& ethernet, const QpTable& qps, const WholeNic& whole, QpContexts& contexts,
            HostMemory& memory, Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes,
            ReceivingUnits& units, std::uint32_t node, std::uint64_t seed)
      : scheduler(engine, profile.nic.requester_units, whole),
        fetcher(engine, bus, profile.nic, counts, qps, contexts, scheduler, seed),
        completer(engine, qps, whole, fetcher, cqes),
        retransmitter(engine, profile.nic, ethernet.ack_timeout_ps, qps, scheduler, fetcher, completer),
        packets(bus, fabric, pool, profile.wire.link_type, counts, qps, memory, congestion, scheduler, completer, node),
        processor(engine, bus, profile.nic, memory, scheduler, fetcher, packets, completer, retransmitter),
        answers(engine, bus, fabric, profile.nic, counts, qps, memory, payload_writer, units, scheduler, fetcher,
                completer, retransmitter) {}

  // Completes everything from `done` on as flushed.
  void flush(SimQp& qp) {
    forget(qp);
    completer.flush(qp);
  }
  // Forgets the QP before it is destroyed or reset.
  void forget(SimQp& qp) {
    fetcher.forget(qp);
    qp.requester.packet_of_next = 0;
    qp.requester.waiting = qp.requester.waits_for_rnr = false;
    qp.reads.ended = qp.reads.begun;
    answers.forget(qp);
  }

  UnitScheduler scheduler;
  WqeFetcher fetcher;
  SendCompleter completer;
  Retransmitter retransmitter;
  PacketBuilder packets;
  WqeProcessor processor;
  AnswerHandler answers;
};

}  // namespace verbscope::sim
