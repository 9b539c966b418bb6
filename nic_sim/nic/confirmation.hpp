// How work requests end: those that were sent, those that the peer has confirmed or answered, those that are sent
// again.
#pragma once

#include <infiniband/verbs.h>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/send_events.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Ends the work requests of send queues, in their order: with success when they were sent (UC, UD) or confirmed by the
// peer (RC), with an error when they failed, as flushed behind an error.
class SendCompleter {
 public:
  // `recvs` and `units` are told of QPs that fail.
  SendCompleter(Fabric& fabric, const PacketMemory& packets, WqeFetcher& fetcher, RecvConsumer& recvs,
                ReceivingUnits& units, CqeWriter& cqes)
      : fabric_(fabric), packets_(packets), fetcher_(fetcher), recvs_(recvs), units_(units), cqes_(cqes) {}
  SendCompleter(const SendCompleter&) = delete;
  SendCompleter& operator=(const SendCompleter&) = delete;

  // The last packet of a signaled work request has left its port: that ends it, and those before it. UC, UD.
  void sent(SimQp& qp, std::uint64_t low_index);

  // Ends the work requests that the peer has confirmed, up to the first that it has not. RC.
  void complete_all_confirmed(SimQp& qp);

  // The first work request that the peer has not confirmed was refused: it completes with `status` and the QP fails.
  void fail_refused(SimQp& qp, ibv_wc_status status);
  // `wqe` completes with `status`, those before it that are not confirmed as flushed (they had no other end), and the
  // QP fails.
  void fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);
  // Puts the QP into the error state: everything outstanding on both sides completes as flushed.
  void fail(SimQp& qp);
  // All work requests that are not done complete as flushed.
  void flush(SimQp& qp);
  // The requester forgets the QP before it is destroyed or reset.
  void forget(SimQp& qp);

 private:
  void complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);

  Fabric& fabric_;
  const PacketMemory& packets_;
  WqeFetcher& fetcher_;
  RecvConsumer& recvs_;
  ReceivingUnits& units_;
  CqeWriter& cqes_;
};

// Sends again, on RC, what a peer has missed: goes back after a refusal, a lost response or a timeout, waits when the
// peer has no RECV, and gives up when the tries are used up.
class Retransmitter {
 public:
  // `lost_time`: picoseconds that QPs stood still until a timer told of a loss; it adds to them.
  Retransmitter(Engine& engine, const NicProfile& profile, std::uint64_t& lost_time, const SendEvents& events,
                UnitScheduler& scheduler, WqeFetcher& fetcher, SendCompleter& completer)
      : engine_(engine),
        profile_(profile),
        lost_time_(lost_time),
        events_(events),
        scheduler_(scheduler),
        fetcher_(fetcher),
        completer_(completer) {}
  Retransmitter(const Retransmitter&) = delete;
  Retransmitter& operator=(const Retransmitter&) = delete;

  // The last packet of a WQE is made: the timer runs from now on, unless it does already.
  void start_timer(SimQp& qp);

  // The peer has refused the packet that a NAK names, and everything before it is confirmed.
  void refused(SimQp& qp, const Packet& nak);

  // The time that the peer wanted to be left alone is over, if it has not asked for another since.
  void receiver_wait_over(SimQp& qp, std::uint32_t waits);
  // The timer has run out. It looks whether there was progress since it was set, and if so runs on from there.
  void retry_due(SimQp& qp);

  // The response to the oldest READ or atomic has a gap: it is asked for again. Once until something comes in order
  // again: further packets behind the gap say nothing new.
  void ask_again(SimQp& qp);

 private:
  void run_timer(SimQp& qp, Picos until);
  void go_back(SimQp& qp, std::uint32_t sequence);
  void wait_for_receiver(SimQp& qp, const Packet& nak);

  Engine& engine_;
  const NicProfile& profile_;
  std::uint64_t& lost_time_;
  const SendEvents& events_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  SendCompleter& completer_;
};

// The requester's work on what comes back on RC: acknowledgements, responses to READs and atomics, and the completions
// that follow from them.
class AnswerHandler {
 public:
  AnswerHandler(Engine& engine, PcieBus& bus, Fabric& fabric, const PacketMemory& packets, const NicProfile& profile,
                NicCounts& counts, const SendEvents& events, const HostMemory& memory, PayloadWriter& payload_writer,
                ReceivingUnits& units, UnitScheduler& scheduler, WqeFetcher& fetcher, SendCompleter& completer,
                Retransmitter& retransmitter)
      : engine_(engine),
        bus_(bus),
        fabric_(fabric),
        packets_(packets),
        profile_(profile),
        counts_(counts),
        events_(events),
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

  // The WQE that a response waits for was read again; and a unit has handled it.
  void wqe_is_back(SimQp& qp, std::uint64_t word);
  void wqe_is_handled(SimQp& qp, std::uint64_t low_index);

 private:
  void handle_all(SimQp& qp);
  void handle_ack(SimQp& qp, const Packet& packet);
  void handle_response(SimQp& qp, SendWqe& wqe, Packet& packet);
  ibv_wc_status scatter(SimQp& qp, const SendWqe& wqe, Packet& packet);
  std::uint32_t confirmed_by(SimQp& qp, std::uint32_t sequence);
  void acknowledge_up_to(SimQp& qp, std::uint32_t sequence);

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  const PacketMemory& packets_;
  const NicProfile& profile_;
  NicCounts& counts_;
  const SendEvents& events_;
  const HostMemory& memory_;
  PayloadWriter& payload_writer_;
  ReceivingUnits& units_;
  UnitScheduler& scheduler_;
  WqeFetcher& fetcher_;
  SendCompleter& completer_;
  Retransmitter& retransmitter_;
};

}  // namespace verbscope::sim
