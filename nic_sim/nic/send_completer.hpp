// Ends the work requests of send queues, in their order: with success when they were sent (UC, UD) or confirmed by the
// peer (RC), with an error when they failed, as flushed behind an error.
#pragma once

#include <infiniband/verbs.h>

#include "nic_sim/nic/completion.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/nic/wqe_fetcher.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

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

}  // namespace verbscope::sim
