// The requester's work on reliable connections: acknowledgements, retransmission (go back to what is missing), timers,
// and how a QP fails.
#include <algorithm>
#include <array>

#include "nic_sim/nic.hpp"
#include "nic_sim/sequence.hpp"

namespace verbscope::sim {
namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.5.2.8, "Encoding for RNR NAK Timer Field":
// hundredths of a millisecond.
constexpr std::array<int, 32> kRnrTimer{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

// Local ACK Timeout: 4.096 us * 2^code, section 9.7.6.1.3; 0 waits for ever.
Picos ack_timeout(int code) {
  return Picos(4'096'000LL << code);
}

constexpr int kForEver = 7;  // RNR retry count: no limit

}  // namespace

void Requester::handle_ack(Packet& packet) {
  SimQp* qp = nic_.find_qp(packet.target_qp);
  if (qp == nullptr || qp->state != IBV_QPS_RTS || qp->transport != Transport::rc) return;
  // Answers to nothing that is open: those of a connection before a reset.
  if (!sequence_before(packet.sequence, qp->requester.sequence_unsent)) return;
  if (packet.kind != Packet::Kind::ack && !sequence_before(qp->requester.acknowledged, packet.sequence)) return;
  unit_of(*qp).debt += nic_.profile().nic.handle_ack;
  if (packet.kind == Packet::Kind::ack) return acknowledge_up_to(*qp, packet.sequence);
  acknowledge_up_to(*qp, packet.sequence - 1);
  SendQueue& queue = qp->send;
  if (queue.done == queue.posted) return;
  switch (packet.kind) {
    case Packet::Kind::nak_sequence:
      go_back(*qp, packet.sequence);
      return activate(*qp);
    case Packet::Kind::nak_receiver_not_ready:
      if (qp->attributes.rnr_retry != kForEver && qp->requester.rnr_retries_left-- == 0) {
        return fail_at(*qp, queue.at(queue.done), IBV_WC_RNR_RETRY_EXC_ERR);
      }
      go_back(*qp, packet.sequence);
      give_up_share(*qp);
      qp->requester.waiting = true;
      qp->requester.progress_at = nic_.engine().now() + Picos(kRnrTimer[packet.immediate % 32] * 10'000'000LL);
      return nic_.engine().schedule(qp->requester.progress_at, &rnr_timer, qp, in_life(qp->life, 0));
    case Packet::Kind::nak_invalid:
      return fail_at(*qp, queue.at(queue.done), IBV_WC_REM_INV_REQ_ERR);
    default:
      return fail_at(*qp, queue.at(queue.done), IBV_WC_REM_OP_ERR);
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
  if (!in_this_life(qp, argument)) return;
  qp.requester.waiting = false;
  qp.nic->requester().activate(qp);
}

// Completes the work requests whose last packet is `sequence` or before.
void Requester::acknowledge_up_to(SimQp& qp, std::uint32_t sequence) {
  RequesterState& state = qp.requester;
  SendQueue& queue = qp.send;
  if (sequence_before(state.acknowledged, sequence)) {
    state.acknowledged = sequence;
    state.progress_at = nic_.engine().now();
    state.retries_left = qp.attributes.retry_cnt;
    state.rnr_retries_left = qp.attributes.rnr_retry;
  }
  while (!state.reading_for_ack && queue.done < queue.next) {
    SendWqe& wqe = queue.at(queue.done);
    if (sequence_before(state.acknowledged, wqe.sequence + wqe.packets - 1)) return;
    if (wqe.signaled && read_again_for_ack(qp, wqe)) return;
    nic_.wqe_cache().release(wqe);
    ++queue.done;
    if (wqe.signaled) complete_wqe(qp, wqe, IBV_WC_SUCCESS);
  }
}

// A completion needs its WQE once more. False when it is at hand.
bool Requester::read_again_for_ack(SimQp& qp, SendWqe& wqe) {
  if (wqe.staged) return false;
  if (wqe.cached) {
    ++nic_.counts().wqe_cache_hits;
    return false;
  }
  ++nic_.counts().wqe_cache_misses;
  nic_.counts().wqe_cache_reread_lines += wqe.bytes / kCacheLine.value;
  qp.requester.reading_for_ack = true;
  nic_.bus().dma_read(wqe.ring_offset, wqe.bytes, &read_for_ack, &qp, in_life(qp.life, wqe.index));
  return true;
}

void Requester::read_for_ack(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !in_this_life(qp, argument)) return;
  qp.requester.reading_for_ack = false;
  qp.send.at(without_life(argument)).staged = true;
  qp.nic->requester().acknowledge_up_to(qp, qp.requester.acknowledged);
}

// Sends again from the packet `sequence` on.
void Requester::go_back(SimQp& qp, std::uint32_t sequence) {
  SendQueue& queue = qp.send;
  for (std::uint64_t i = queue.done; i < queue.arrived; ++i) {
    const SendWqe& wqe = queue.at(i);
    if (!sequence_before(sequence, wqe.sequence + wqe.packets)) continue;
    queue.next = i;
    qp.requester.packet_of_next = sequence - wqe.sequence;
    return;
  }
}

void Requester::start_timer(SimQp& qp) {
  if (qp.requester.timer_runs || qp.attributes.timeout == 0) return;
  qp.requester.timer_runs = true;
  nic_.engine().schedule(nic_.engine().now() + ack_timeout(qp.attributes.timeout), &retry_timer, &qp,
                         in_life(qp.life, 0));
}

// One timer per QP: it looks whether there was progress within the timeout, and if so runs on from there.
void Requester::retry_timer(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (!in_this_life(qp, argument)) return;
  Requester& self = qp.nic->requester();
  qp.requester.timer_runs = false;
  if (qp.state != IBV_QPS_RTS || qp.send.done >= qp.send.next) return;
  const Picos now = self.nic_.engine().now();
  const Picos due = qp.requester.progress_at + ack_timeout(qp.attributes.timeout);
  if (due <= now) {
    if (qp.requester.retries_left-- == 0) {
      return self.fail_at(qp, qp.send.at(qp.send.done), IBV_WC_RETRY_EXC_ERR);
    }
    qp.requester.progress_at = now;
    self.go_back(qp, qp.send.at(qp.send.done).sequence);
    self.activate(qp);
    return self.start_timer(qp);
  }
  qp.requester.timer_runs = true;
  self.nic_.engine().schedule(due, &retry_timer, &qp, argument);
}

// `wqe` completes with `status`, what is before it as flushed too (it had no other end), and the QP fails.
void Requester::fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  SendQueue& queue = qp.send;
  for (; queue.done <= wqe.index; ++queue.done) {
    SendWqe& ended = queue.at(queue.done);
    nic_.wqe_cache().release(ended);
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
  queue.batches_arrived = queue.batches_posted;
}

void Requester::forget(SimQp& qp) {
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) nic_.wqe_cache().release(qp.send.at(i));
  give_up_share(qp);
  qp.requester.packet_of_next = 0;
  qp.requester.waiting = false;
}

}  // namespace verbscope::sim
