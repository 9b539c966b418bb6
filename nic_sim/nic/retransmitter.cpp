#include "nic_sim/nic/retransmitter.hpp"

#include <array>

#include "nic_sim/link/sequence.hpp"

namespace verbscope::sim {
namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.5.2.8, "Encoding for RNR NAK Timer Field":
// hundredths of a millisecond.
constexpr std::array<int, 32> kRnrTimer{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr int kForEver = 7;  // RNR retry count: no limit

}  // namespace

void Retransmitter::refused(SimQp& qp, const Packet& nak) {
  switch (nak.kind) {
    case Packet::Kind::nak_sequence:
      go_back(qp, nak.sequence);
      return scheduler_.activate(qp);
    case Packet::Kind::nak_receiver_not_ready:
      return wait_for_receiver(qp, nak);
    case Packet::Kind::nak_invalid:
      return completer_.fail_refused(qp, IBV_WC_REM_INV_REQ_ERR);
    case Packet::Kind::nak_access:
      return completer_.fail_refused(qp, IBV_WC_REM_ACCESS_ERR);
    case Packet::Kind::nak_operation:
      return completer_.fail_refused(qp, IBV_WC_REM_OP_ERR);
    case Packet::Kind::request:
    case Packet::Kind::ack:
    case Packet::Kind::read_response:
    case Packet::Kind::atomic_response:
    case Packet::Kind::congestion_notification:
      return;  // these refuse nothing
  }
}

void Retransmitter::wait_for_receiver(SimQp& qp, const Packet& nak) {
  if (qp.settings.rnr_retry != kForEver && qp.requester.rnr_retries_left-- == 0) {
    return completer_.fail_refused(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  go_back(qp, nak.sequence);
  fetcher_.give_up_share(qp);
  qp.requester.waits_for_rnr = true;
  qp.requester.progress_at = engine_.now() + Picos(kRnrTimer[nak.immediate % 32] * 10'000'000LL);
  engine_.schedule(qp.requester.progress_at, &rnr_timer, this, QpWord::make(qp, ++qp.requester.rnr_waits));
}

void Retransmitter::rnr_timer(void* object, std::uint64_t word) {
  Retransmitter& self = *static_cast<Retransmitter*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || QpWord::count(word) != qp->requester.rnr_waits) return;
  qp->requester.waits_for_rnr = false;
  self.scheduler_.activate(*qp);
}

// Sends again from the packet `sequence` on; a READ or an atomic is asked for as a whole.
void Retransmitter::go_back(SimQp& qp, std::uint32_t sequence) {
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

void Retransmitter::ask_again(SimQp& qp) {
  if (qp.requester.asked_again) return;
  qp.requester.asked_again = true;
  const SendWqe& wqe = qp.send.at(qp.reads.oldest());
  go_back(qp, wqe.sequence);
  scheduler_.activate(qp);
}

void Retransmitter::start_timer(SimQp& qp) {
  if (qp.requester.timer_runs || qp.settings.timeout == 0) return;  // 0 waits for ever
  qp.requester.timer_runs = true;
  engine_.schedule(engine_.now() + profile_.ack_wait(qp.settings.timeout), &retry_timer, this, QpWord::make(qp));
}

// One timer per QP: it looks whether there was progress within the timeout, and if so runs on from there.
void Retransmitter::retry_timer(void* object, std::uint64_t word) {
  Retransmitter& self = *static_cast<Retransmitter*>(object);
  SimQp* const current = self.qps_.current(word);
  if (current == nullptr) return;
  SimQp& qp = *current;
  qp.requester.timer_runs = false;
  if (qp.state != IBV_QPS_RTS || qp.send.done >= qp.send.next) return;
  const Picos now = self.engine_.now();
  const Picos due = qp.requester.progress_at + self.profile_.ack_wait(qp.settings.timeout);
  if (due <= now) {
    if (qp.requester.retries_left-- == 0) {
      return self.completer_.fail_at(qp, qp.send.at(qp.send.done), IBV_WC_RETRY_EXC_ERR);
    }
    self.lost_time_ += static_cast<std::uint64_t>((now - qp.requester.progress_at).count());
    qp.requester.progress_at = now;
    qp.requester.asked_again = false;
    self.go_back(qp, qp.send.at(qp.send.done).sequence);
    self.scheduler_.activate(qp);
    return self.start_timer(qp);
  }
  qp.requester.timer_runs = true;
  self.engine_.schedule(due, &retry_timer, object, word);
}

}  // namespace verbscope::sim
