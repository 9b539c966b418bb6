// Sends again, on RC, what a peer has missed: goes back after a refusal, a lost response or a timeout, waits when the
// peer has no RECV, and gives up when the tries are used up.
#pragma once

#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/send_completer.hpp"
#include "nic_sim/nic/unit_scheduler.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

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

}  // namespace verbscope::sim
