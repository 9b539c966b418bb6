// The end of work requests: completion, acknowledgements and responses, and retransmission.
#pragma once

#include <infiniband/verbs.h>

#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/host_memory.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/recvs.hpp"
#include "nic_sim/nic/units.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// Completes the work requests of send queues in order: with success when sent (UC, UD) or confirmed by the peer (RC),
// with an error status when they fail, as flushed behind an error. Also fails QPs.
class SendCompleter {
 public:
  // When a QP fails, `recvs` flushes its RECVs, `units` frees its unit, and `events` tells the program.
  SendCompleter(Fabric& fabric, const PacketMemory& packets, WqeFetcher& fetcher, RecvConsumer& recvs,
                ReceivingUnits& units, CqeWriter& cqes, AsyncEvents& events)
      : fabric_(fabric),
        packets_(packets),
        fetcher_(fetcher),
        recvs_(recvs),
        units_(units),
        cqes_(cqes),
        events_(events) {}
  SendCompleter(const SendCompleter&) = delete;
  SendCompleter& operator=(const SendCompleter&) = delete;

  // UC and UD: the last packet of a signaled work request has left the port. Completes it and ends those before it.
  void sent(SimQp& qp, std::uint64_t low_index);

  // RC: completes the work requests that the peer has confirmed, up to the first that it has not.
  void complete_all_confirmed(SimQp& qp);

  // The peer refused the first unconfirmed work request: completes it with `status` and fails the QP.
  void fail_refused(SimQp& qp, ibv_wc_status status);
  // Completes `wqe` with `status` and the unconfirmed work requests before it as flushed, then fails the QP.
  void fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);
  // Moves the QP to the error state. All work requests and RECVs that are outstanding complete as flushed.
  void fail(SimQp& qp);
  // The same, for a reason that no completion tells: the program gets the event `reason`.
  void fail_untold(SimQp& qp, ibv_event_type reason);
  // Completes all outstanding work requests of the send queue as flushed.
  void flush(SimQp& qp);
  // Drops the requester's work on a QP that is destroyed or reset.
  void forget(SimQp& qp);

 private:
  void complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);

  Fabric& fabric_;
  const PacketMemory& packets_;
  WqeFetcher& fetcher_;
  RecvConsumer& recvs_;
  ReceivingUnits& units_;
  CqeWriter& cqes_;
  AsyncEvents& events_;
};

// Retransmission on RC: goes back to the first missing packet after a NAK, a lost response or a timeout, waits after an
// RNR NAK, and fails the QP when its retries are used up.
class Retransmitter {
 public:
  // `lost_time`: a counter of picoseconds, to which it adds the time between the last progress and a timeout.
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

  // The last packet of a WQE was built: starts the QP's timer if it does not run.
  void start_timer(SimQp& qp);

  // The peer has refused a packet with `nak`; everything before that packet is confirmed.
  void refused(SimQp& qp, const Packet& nak);

  // The RNR wait number `waits` is over. Ignored if a later one has begun.
  void rnr_wait_over(SimQp& qp, std::uint32_t waits);
  // The timer has expired. If there was progress since it was set, it runs on from there; else goes back.
  void retry_due(SimQp& qp);

  // The response to the oldest READ or atomic has a gap: requests it again, once until a packet arrives in order.
  void request_again(SimQp& qp);

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

// Handles what peers send back on RC: ACKs, NAKs, and the responses to READs and atomics.
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

  // A unit has processed an ACK, a NAK or a response. Takes over the packet.
  void take(SimQp& qp, Packet& packet);

  // The WQE that a response needs was read again; then, a unit has processed it.
  void wqe_reread(SimQp& qp, std::uint64_t word);
  void wqe_handled(SimQp& qp, std::uint64_t low_index);

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
