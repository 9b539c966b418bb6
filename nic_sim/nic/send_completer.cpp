#include "nic_sim/nic/send_completer.hpp"

#include "nic_sim/link/sequence.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope::sim {
void SendCompleter::left_port(SimQp& qp, const Packet& packet, Picos when) {
  engine_.schedule(when, &sent, this, QpWord::make(qp, without_generation(packet.cookie)));
}

void SendCompleter::sent(void* object, std::uint64_t word) {
  SendCompleter& self = *static_cast<SendCompleter*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  const std::uint64_t index = qp->send.whole(QpWord::count(word), QpWord::kCountBits);
  qp->send.done = index + 1;
  self.complete(*qp, qp->send.at(index), IBV_WC_SUCCESS);
}

void SendCompleter::complete_all_confirmed(SimQp& qp) {
  SendQueue& queue = qp.send;
  while (queue.done < queue.next) {
    SendWqe& wqe = queue.at(queue.done);
    if (!wqe.answered() || sequence_before(qp.requester.acknowledged, wqe.sequence + wqe.sequences - 1)) return;
    fetcher_.release(wqe);
    ++queue.done;
    if (wqe.signaled) complete(qp, wqe, IBV_WC_SUCCESS);
  }
}

void SendCompleter::fail_refused(SimQp& qp, ibv_wc_status status) {
  complete_all_confirmed(qp);
  fail_at(qp, qp.send.at(qp.send.done), status);
}

void SendCompleter::fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  SendQueue& queue = qp.send;
  if (facts(qp.transport).reliable) complete_all_confirmed(qp);
  for (; queue.done <= wqe.index; ++queue.done) {
    SendWqe& ended = queue.at(queue.done);
    fetcher_.release(ended);
    if (&ended == &wqe) {
      complete(qp, ended, status);
    } else if (ended.signaled) {
      complete(qp, ended, IBV_WC_WR_FLUSH_ERR);
    }
  }
  whole_.fail_qp(qp);
}

void SendCompleter::flush(SimQp& qp) {
  SendQueue& queue = qp.send;
  for (; queue.done < queue.posted; ++queue.done) {
    // Unreliable and unsignaled: it was done when it was sent.
    const bool sent = !facts(qp.transport).reliable && queue.done < queue.next;
    if (!sent || queue.at(queue.done).signaled) complete(qp, queue.at(queue.done), IBV_WC_WR_FLUSH_ERR);
  }
  queue.next = queue.arrived = queue.rung = queue.posted;
}

void SendCompleter::complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  cqes_.complete(qp.send_completions(), Completion{.visible = {},
                                                   .wr_id = wqe.wr_id,
                                                   .qp = &qp,
                                                   .index = wqe.index,
                                                   .status = status,
                                                   .opcode = completion_opcode(wqe.verb),
                                                   .bytes = wqe.length,
                                                   .immediate = 0,
                                                   .source_qp = 0,
                                                   .source_lid = 0,
                                                   .flags = 0,
                                                   .of_send = true});
}

}  // namespace verbscope::sim
