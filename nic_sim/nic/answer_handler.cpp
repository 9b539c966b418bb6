#include "nic_sim/nic/answer_handler.hpp"

#include <cstring>

#include "nic_sim/link/sequence.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {
void AnswerHandler::take(SimQp& qp, Packet& packet) {
  // Not open: those of a connection before a reset.
  if (qp.state != IBV_QPS_RTS || !facts(qp.transport).reliable ||
      !sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    return fabric_.done_with(packet);
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
        state.reading_for_answer = !fetcher_.at_hand_for_response(qp, wqe, &wqe_read, this);
        if (state.reading_for_answer) return;
        wqe.staged = true;  // held for the rest of the response and the completion
        handle_response(qp, wqe, packet);
      }
    } else {
      handle_ack(qp, packet);
    }
    if (qp.state != IBV_QPS_RTS) return;  // failed: forget() has taken the answers
    state.answers.pop();
    if (packet.kept) {
      fabric_.taken_in(packet);
    } else {
      fabric_.done_with(packet);
    }
  }
}

// The last packet that an acknowledgement of everything up to `sequence` confirms: nothing that is to be sent again,
// and no READ or atomic without its response. One that is ahead of a response says that the response was lost.
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
  retransmitter_.ask_again(qp);
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
    if (sequence_before(missing, packet.sequence)) retransmitter_.ask_again(qp);
    return;  // else a repetition
  }
  if (const ibv_wc_status status = scatter(qp, wqe, packet); status != IBV_WC_SUCCESS) {
    return completer_.fail_at(qp, wqe, status);
  }
  ++wqe.responses;
  qp.requester.asked_again = false;
  if (wqe.responses == wqe.sequences) ++qp.reads.ended;
  acknowledge_up_to(qp, packet.sequence);
  scheduler_.activate(qp);
}

// Writes what the response brings to where the WQE wants it, or leaves it to the CQE. The bytes are there at once,
// which only a thread that polls could see: for it they come when they are written, in one piece.
ibv_wc_status AnswerHandler::scatter(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool by_cqe = wqe.signaled && qp.inline_place == InlineReceive::in_cqe && wqe.length <= qp.inline_recv;
  const std::byte* from = packet.data;
  const bool granted =
      walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, wqe.responses * std::uint64_t{qp.path_mtu}, packet.payload,
                [this, &qp, &packet, &from, by_cqe](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  if (!memory_.grants(*qp.pd, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE)) return false;
                  if (bytes == packet.payload && !by_cqe && payload_writer_.polled(address, bytes)) {
                    packet.rkey = lkey;
                    payload_writer_.write(address, packet);
                    return true;
                  }
                  memory_.write(address, from, bytes);
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

void AnswerHandler::wqe_read(void* object, std::uint64_t word) {
  AnswerHandler& self = *static_cast<AnswerHandler*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  self.units_.note_reread(*qp, self.profile_.reread_wqe);
  self.engine_.schedule(self.units_.occupy(*qp, self.profile_.reread_wqe), &wqe_handled, object, word);
}

void AnswerHandler::wqe_handled(void* object, std::uint64_t word) {
  AnswerHandler& self = *static_cast<AnswerHandler*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  qp->requester.reading_for_answer = false;
  qp->send.at(qp->send.whole(QpWord::count(word), QpWord::kCountBits)).staged = true;
  self.handle_all(*qp);
}

void AnswerHandler::forget(SimQp& qp) {
  RequesterState& state = qp.requester;
  state.asked_again = state.reading_for_answer = false;
  while (!state.answers.empty()) fabric_.done_with(state.answers.pop());
}

}  // namespace verbscope::sim
