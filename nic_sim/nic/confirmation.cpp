#include "nic_sim/nic/confirmation.hpp"

#include <array>

#include "nic_sim/link/packet.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {

void SendCompleter::sent(SimQp& qp, std::uint64_t low_index) {
  const std::uint64_t index = qp.send.whole(low_index, QpWord::kCountBits);
  qp.send.done = index + 1;
  complete(qp, qp.send.at(index), IBV_WC_SUCCESS);
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
  fail(qp);
}

void SendCompleter::fail(SimQp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  flush(qp);
  recvs_.flush(qp);
  units_.forget(qp);
  // Section 10.2.9: from now on the QP takes nothing from its shared queue. An XRC target has none of its own.
  if (qp.srq != nullptr && !facts(qp.transport).names_queue) events_.raise(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void SendCompleter::fail_untold(SimQp& qp, ibv_event_type reason) {
  if (qp.state == IBV_QPS_ERR || qp.state == IBV_QPS_RESET) return;
  events_.raise(qp, reason);
  fail(qp);
}

void SendCompleter::flush(SimQp& qp) {
  forget(qp);
  SendQueue& queue = qp.send;
  for (; queue.done < queue.posted; ++queue.done) {
    // An unsignaled work request on UC or UD was done when it was sent.
    const bool sent = !facts(qp.transport).reliable && queue.done < queue.next;
    if (!sent || queue.at(queue.done).signaled) complete(qp, queue.at(queue.done), IBV_WC_WR_FLUSH_ERR);
  }
  queue.next = queue.arrived = queue.rung = queue.posted;
}

void SendCompleter::forget(SimQp& qp) {
  RequesterState& state = qp.requester;
  fetcher_.forget(qp);
  state.packet_of_next = 0;
  state.waiting = state.waits_for_rnr = state.requested_again = state.reading_for_answer = false;
  qp.reads.ended = qp.reads.begun;
  while (!state.answers.empty()) fabric_.release(state.answers.pop(packets_));
}

namespace {

ibv_wc_opcode opcode_of(const SendWqe& wqe) {
  if (wqe.key_work == KeyWork::none) return completion_opcode(wqe.verb);
  const bool binds = wqe.key_work == KeyWork::bind || wqe.key_work == KeyWork::bound;
  return binds ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV;
}

}  // namespace

void SendCompleter::complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  cqes_.complete(qp.send_completions(), Completion{.visible = {},
                                                   .wr_id = wqe.wr_id,
                                                   .qp = &qp,
                                                   .index = wqe.index,
                                                   .status = status,
                                                   .opcode = opcode_of(wqe),
                                                   .bytes = wqe.length,
                                                   .immediate = 0,
                                                   .source_qp = 0,
                                                   .source_lid = 0,
                                                   .flags = 0,
                                                   .of_send = true});
}

namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.5.2.8, "Encoding for RNR NAK Timer Field":
// hundredths of a millisecond.
constexpr std::array<int, 32> kRnrTimer{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

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
  if (qp.settings.rnr_retry != kRnrRetryForever && qp.requester.rnr_retries_left-- == 0) {
    return completer_.fail_refused(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  go_back(qp, nak.sequence);
  fetcher_.return_share(qp);
  qp.requester.waits_for_rnr = true;
  qp.requester.progress_at = engine_.now() + Picos(kRnrTimer[nak.immediate % 32] * 10'000'000LL);
  engine_.schedule(qp.requester.progress_at, events_.rnr_wait_over, events_.requester,
                   QpWord::make(qp, ++qp.requester.rnr_waits));
}

void Retransmitter::rnr_wait_over(SimQp& qp, std::uint32_t waits) {
  if (waits != qp.requester.rnr_waits) return;
  qp.requester.waits_for_rnr = false;
  scheduler_.activate(qp);
}

// Sends again from the packet `sequence` on; a READ or an atomic is requested as a whole.
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

void Retransmitter::request_again(SimQp& qp) {
  if (qp.requester.requested_again) return;
  qp.requester.requested_again = true;
  const SendWqe& wqe = qp.send.at(qp.reads.oldest());
  go_back(qp, wqe.sequence);
  scheduler_.activate(qp);
}

void Retransmitter::start_timer(SimQp& qp) {
  if (qp.requester.timer_runs || qp.settings.timeout == 0) return;  // 0: no timeout
  run_timer(qp, engine_.now() + profile_.ack_wait(qp.settings.timeout));
}

void Retransmitter::run_timer(SimQp& qp, Picos until) {
  qp.requester.timer_runs = true;
  engine_.schedule(until, events_.retry_due, events_.requester, QpWord::make(qp));
}

void Retransmitter::retry_due(SimQp& qp) {
  qp.requester.timer_runs = false;
  if (qp.state != IBV_QPS_RTS || qp.send.done >= qp.send.next) return;
  const Picos now = engine_.now();
  const Picos due = qp.requester.progress_at + profile_.ack_wait(qp.settings.timeout);
  if (due > now) return run_timer(qp, due);
  if (qp.requester.retries_left-- == 0) {
    return completer_.fail_at(qp, qp.send.at(qp.send.done), IBV_WC_RETRY_EXC_ERR);
  }
  lost_time_ += static_cast<std::uint64_t>((now - qp.requester.progress_at).count());
  qp.requester.progress_at = now;
  qp.requester.requested_again = false;
  go_back(qp, qp.send.at(qp.send.done).sequence);
  scheduler_.activate(qp);
  start_timer(qp);
}

void AnswerHandler::take(SimQp& qp, Packet& packet) {
  // A packet with a later sequence number belongs to a connection before a reset.
  if (qp.state != IBV_QPS_RTS || !facts(qp.transport).reliable ||
      !sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    return fabric_.release(packet);
  }
  qp.requester.answers.push(packet);
  if (!qp.requester.reading_for_answer) handle_all(qp);
}

void AnswerHandler::handle_all(SimQp& qp) {
  RequesterState& state = qp.requester;
  while (!state.answers.empty() && qp.state == IBV_QPS_RTS) {
    Packet& packet = state.answers.front();
    if (is_response(packet)) {
      if (qp.reads.count() > 0) {
        SendWqe& wqe = qp.send.at(qp.reads.oldest());
        state.reading_for_answer = !fetcher_.ready_for_response(qp, wqe);
        if (state.reading_for_answer) return;
        wqe.staged = true;  // until the response is complete
        handle_response(qp, wqe, packet);
      }
    } else {
      handle_ack(qp, packet);
    }
    if (qp.state != IBV_QPS_RTS) return;  // failed: forget() has dropped the answers
    state.answers.pop(packets_);
    fabric_.release(packet);
  }
}

// The last packet that an ACK up to `sequence` confirms. It confirms no packet that is to be sent again, and no READ or
// atomic without its response: an ACK beyond such a one means that the response was lost.
std::uint32_t AnswerHandler::confirmed_by(SimQp& qp, std::uint32_t sequence) {
  SendQueue& queue = qp.send;
  const RequesterState& state = qp.requester;
  if (queue.next < queue.posted) {
    const std::uint32_t to_send = queue.at(queue.next).sequence + state.packet_of_next;
    if (!sequence_before(sequence, to_send)) sequence = to_send - 1;
  }
  if (qp.reads.count() == 0) return sequence;
  const SendWqe& wqe = queue.at(qp.reads.oldest());
  const std::uint32_t missing = wqe.sequence + wqe.responses;
  if (sequence_before(sequence, missing)) return sequence;
  retransmitter_.request_again(qp);
  return missing - 1;
}

void AnswerHandler::handle_ack(SimQp& qp, const Packet& packet) {
  if (packet.kind == Packet::Kind::ack) return acknowledge_up_to(qp, confirmed_by(qp, packet.sequence));
  if (!sequence_before(qp.requester.acknowledged, packet.sequence)) return;
  const std::uint32_t confirmed = confirmed_by(qp, packet.sequence - 1);
  acknowledge_up_to(qp, confirmed);
  if (qp.send.done == qp.send.posted || confirmed != packet.sequence - 1) return;
  retransmitter_.refused(qp, packet);
}

void AnswerHandler::handle_response(SimQp& qp, SendWqe& wqe, Packet& packet) {
  const std::uint32_t missing = wqe.sequence + wqe.responses;
  if (packet.sequence != missing) {
    if (sequence_before(missing, packet.sequence)) retransmitter_.request_again(qp);
    return;  // earlier: a repetition
  }
  if (const ibv_wc_status status = scatter(qp, wqe, packet); status != IBV_WC_SUCCESS) {
    return completer_.fail_at(qp, wqe, status);
  }
  ++wqe.responses;
  qp.requester.requested_again = false;
  if (wqe.responses == wqe.sequences) ++qp.reads.ended;
  acknowledge_up_to(qp, packet.sequence);
  scheduler_.activate(qp);
}

// Writes the response's bytes to the buffers of the WQE, or leaves them to the CQE. The bytes are in memory at once,
// which only a thread that polls there could notice: for such a thread they appear when the DMA write ends.
ibv_wc_status AnswerHandler::scatter(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool by_cqe = wqe.signaled && qp.inline_place == InlineReceive::in_cqe && wqe.length <= qp.inline_recv;
  const std::byte* from = packet.data();
  const bool granted =
      walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, wqe.responses * std::uint64_t{qp.path_mtu}, packet.payload,
                [this, &qp, &packet, &from, by_cqe](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  const Region* region = memory_.granted(qp, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE);
                  if (region == nullptr) return false;
                  if (bytes == packet.payload && !by_cqe && payload_writer_.is_polled(region->at(address), bytes)) {
                    packet.rkey = lkey;
                    payload_writer_.write(address, packet);
                    return true;
                  }
                  HostMemory::write(*region, address, from, bytes);
                  if (!by_cqe) bus_.dma_write(address, bytes);
                  from += bytes;
                  return true;
                });
  if (!granted) return IBV_WC_LOC_PROT_ERR;
  if (by_cqe && packet.payload > 0) ++counts_.inline_receives;
  return IBV_WC_SUCCESS;
}

// Completes the work requests whose last packet is `sequence` or before, in order.
void AnswerHandler::acknowledge_up_to(SimQp& qp, std::uint32_t sequence) {
  RequesterState& state = qp.requester;
  if (sequence_before(state.acknowledged, sequence)) {
    state.acknowledged = sequence;
    state.progress_at = engine_.now();
    state.retries_left = qp.settings.retry_cnt;
    state.rnr_retries_left = qp.settings.rnr_retry;
  }
  completer_.complete_all_confirmed(qp);
}

void AnswerHandler::wqe_reread(SimQp& qp, std::uint64_t word) {
  units_.note_reread(qp, profile_.reread_wqe);
  engine_.schedule(units_.occupy(qp, profile_.reread_wqe), events_.wqe_handled_for_answer, events_.requester, word);
}

void AnswerHandler::wqe_handled(SimQp& qp, std::uint64_t low_index) {
  qp.requester.reading_for_answer = false;
  qp.send.at(qp.send.whole(low_index, QpWord::kCountBits)).staged = true;
  handle_all(qp);
}

}  // namespace verbscope::sim
