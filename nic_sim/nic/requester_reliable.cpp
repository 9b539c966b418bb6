// The requester's work on reliable connections when something goes wrong: refusals, retransmission (go back to what is
// missing), timers, and how a QP fails.
#include <algorithm>
#include <array>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {
namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.5.2.8, "Encoding for RNR NAK Timer Field":
// hundredths of a millisecond.
constexpr std::array<int, 32> kRnrTimer{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

// Local ACK Timeout: 4.096 us * 2^code, section 9.7.6.1.3; 0 waits for ever.
Picos ack_wait(int code) {
  return Picos(4'096'000LL << code);
}

constexpr int kForEver = 7;  // RNR retry count: no limit

}  // namespace

void Requester::handle_nak(SimQp& qp, const Packet& packet) {
  const std::uint32_t confirmed = confirmed_by(qp, packet.sequence - 1);
  acknowledge_up_to(qp, confirmed);
  SendQueue& queue = qp.send;
  if (queue.done == queue.posted || confirmed != packet.sequence - 1) return;
  switch (packet.kind) {
    case Packet::Kind::nak_sequence:
      go_back(qp, packet.sequence);
      return activate(qp);
    case Packet::Kind::nak_receiver_not_ready:
      if (qp.settings.rnr_retry != kForEver && qp.requester.rnr_retries_left-- == 0) {
        return fail_refused(qp, IBV_WC_RNR_RETRY_EXC_ERR);
      }
      go_back(qp, packet.sequence);
      give_up_share(qp);
      qp.requester.waits_for_rnr = true;
      qp.requester.progress_at = nic_.engine().now() + Picos(kRnrTimer[packet.immediate % 32] * 10'000'000LL);
      return nic_.engine().schedule(qp.requester.progress_at, &rnr_timer, &qp,
                                    with_generation(qp.generation, ++qp.requester.rnr_waits));
    case Packet::Kind::nak_invalid:
      return fail_refused(qp, IBV_WC_REM_INV_REQ_ERR);
    case Packet::Kind::nak_access:
      return fail_refused(qp, IBV_WC_REM_ACCESS_ERR);
    default:
      return fail_refused(qp, IBV_WC_REM_OP_ERR);
  }
}

// The QP will not take up what was fetched for it for a long time: others may fetch ahead meanwhile.
void Requester::give_up_share(SimQp& qp) {
  Unit& unit = unit_of(qp);
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) {
    SendWqe& wqe = qp.send.at(i);
    if (wqe.ahead) unit.fetched_ahead -= wqe.bytes;
    wqe.ahead = false;
  }
  fetch_more(unit);
}

void Requester::rnr_timer(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (!of_this_generation(qp, argument) || without_generation(argument) != qp.requester.rnr_waits) return;
  qp.requester.waits_for_rnr = false;
  qp.nic->requester().activate(qp);
}

// Sends again from the packet `sequence` on; a READ or an atomic is asked for as a whole.
void Requester::go_back(SimQp& qp, std::uint32_t sequence) {
  SendQueue& queue = qp.send;
  for (std::uint64_t i = queue.done; i < queue.arrived; ++i) {
    const SendWqe& wqe = queue.at(i);
    if (!sequence_before(sequence, wqe.sequence + wqe.sequences)) continue;
    queue.next = i;
    qp.requester.packet_of_next = wqe.packets == wqe.sequences ? sequence - wqe.sequence : 0;
    qp.reads.forget_from(i);
    return;
  }
}

void Requester::start_timer(SimQp& qp) {
  if (qp.requester.timer_runs || qp.settings.timeout == 0) return;
  qp.requester.timer_runs = true;
  nic_.engine().schedule(nic_.engine().now() + ack_wait(qp.settings.timeout), &retry_timer, &qp,
                         with_generation(qp.generation, 0));
}

// One timer per QP: it looks whether there was progress within the timeout, and if so runs on from there.
void Requester::retry_timer(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (!of_this_generation(qp, argument)) return;
  Requester& self = qp.nic->requester();
  qp.requester.timer_runs = false;
  if (qp.state != IBV_QPS_RTS || qp.send.done >= qp.send.next) return;
  const Picos now = self.nic_.engine().now();
  const Picos due = qp.requester.progress_at + ack_wait(qp.settings.timeout);
  if (due <= now) {
    if (qp.requester.retries_left-- == 0) {
      return self.fail_at(qp, qp.send.at(qp.send.done), IBV_WC_RETRY_EXC_ERR);
    }
    qp.requester.progress_at = now;
    qp.requester.asked_again = false;
    self.go_back(qp, qp.send.at(qp.send.done).sequence);
    self.activate(qp);
    return self.start_timer(qp);
  }
  qp.requester.timer_runs = true;
  self.nic_.engine().schedule(due, &retry_timer, &qp, argument);
}

// The first request that is not confirmed was refused.
void Requester::fail_refused(SimQp& qp, ibv_wc_status status) {
  complete_confirmed(qp, true);
  fail_at(qp, qp.send.at(qp.send.done), status);
}

// `wqe` completes with `status`, what is before it and not confirmed as flushed too (it had no other end), and the QP
// fails.
void Requester::fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  SendQueue& queue = qp.send;
  if (qp.transport == Transport::rc) complete_confirmed(qp, true);
  for (; queue.done <= wqe.index; ++queue.done) {
    SendWqe& ended = queue.at(queue.done);
    release(ended);
    if (&ended == &wqe) {
      complete_wqe(qp, ended, status);
    } else if (ended.signaled) {
      complete_wqe(qp, ended, IBV_WC_WR_FLUSH_ERR);
    }
  }
  nic_.fail_qp(qp);
}

void Requester::flush(SimQp& qp) {
  SendQueue& queue = qp.send;
  forget(qp);
  for (; queue.done < queue.posted; ++queue.done) {
    // Unreliable and unsignaled: it was done when it was sent.
    const bool sent = qp.transport != Transport::rc && queue.done < queue.next;
    if (!sent || queue.at(queue.done).signaled) complete_wqe(qp, queue.at(queue.done), IBV_WC_WR_FLUSH_ERR);
  }
  queue.next = queue.arrived = queue.posted;
}

void Requester::forget(SimQp& qp) {
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) release(qp.send.at(i));
  give_up_share(qp);
  RequesterState& state = qp.requester;
  state.packet_of_next = 0;
  state.waiting = state.waits_for_rnr = false;
  qp.reads.ended = qp.reads.begun;
  state.asked_again = false;
  while (!state.answers.empty()) nic_.fabric().done_with(state.answers.pop());
  state.answers_ready = 0;
}

}  // namespace verbscope::sim
