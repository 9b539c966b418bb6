#include "nic_sim/nic/answer_handler.hpp"

#include <cstring>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/nic/nic.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {
namespace {

bool is_response(const Packet& packet) {
  return packet.kind == Packet::Kind::read_response || packet.kind == Packet::Kind::atomic_response;
}

AnswerHandler& answers_of(const SimQp& qp) {
  return qp.nic->requester().answers;
}

}  // namespace

// Acknowledgements take effect at once and cost the unit a time; responses when the unit has had its time for them, and
// so do acknowledgements behind responses of the same QP.
void AnswerHandler::receive(Packet& packet) {
  SimQp* qp = qps_.find(packet.target_qp);
  // Not open: those of a connection before a reset.
  if (qp == nullptr || qp->state != IBV_QPS_RTS || !facts(qp->transport).reliable ||
      !sequence_before(packet.sequence, qp->requester.sequence_unsent)) {
    return fabric_.done_with(packet);
  }
  RequesterState& state = qp->requester;
  const bool response = is_response(packet);
  const Picos handled = scheduler_.occupy(*qp, response ? profile_.handle_response : profile_.handle_ack);
  if (!response && state.answers.empty()) {
    handle_ack(*qp, packet);
    return fabric_.done_with(packet);
  }
  state.answers.push(packet);
  engine_.schedule(handled, &answer_handled, qp, with_generation(qp->generation, 0));
}

void AnswerHandler::answer_handled(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (!of_this_generation(qp, argument) || qp.requester.answers.empty()) return;
  ++qp.requester.answers_ready;
  answers_of(qp).handle_ready(qp);
}

void AnswerHandler::handle_ready(SimQp& qp) {
  RequesterState& state = qp.requester;
  while (state.answers_ready > 0 && !state.answers.empty() && qp.state == IBV_QPS_RTS) {
    Packet& packet = state.answers.front();
    if (is_response(packet)) {
      if (qp.reads.count() > 0) {
        SendWqe& wqe = qp.send.at(qp.reads.oldest());
        if (state.reading_for_ack || waits_for_wqe(qp, wqe)) return;
        wqe.staged = true;  // held for the rest of the response and the completion
        handle_response(qp, wqe, packet);
      }
    } else {
      handle_ack(qp, packet);
    }
    if (qp.state != IBV_QPS_RTS) return;  // failed: forget() has taken the answers
    state.answers.pop();
    --state.answers_ready;
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
  const bool by_cqe = wqe.signaled && wqe.length <= qp.inline_recv;
  const std::byte* from = packet.data;
  const bool granted =
      walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, wqe.responses * std::uint64_t{qp.path_mtu}, packet.payload,
                [this, &qp, &packet, &from, by_cqe](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  if (!regions_.grants(*qp.pd, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE)) return false;
                  if (bytes == packet.payload && !by_cqe && payload_writer_.polled(address, bytes)) {
                    packet.rkey = lkey;
                    payload_writer_.write(address, packet);
                    return true;
                  }
                  std::memcpy(reinterpret_cast<std::byte*>(address), from, bytes);
                  if (!by_cqe) bus_.dma_write(address, bytes);
                  from += bytes;
                  return true;
                });
  if (!granted) return IBV_WC_LOC_PROT_ERR;
  if (by_cqe && packet.payload > 0) ++counts_.inline_receives;
  return IBV_WC_SUCCESS;
}

// Completes the work requests whose last packet is `sequence` or before, in order, up to one whose WQE must be read
// again first.
void AnswerHandler::acknowledge_up_to(SimQp& qp, std::uint32_t sequence) {
  RequesterState& state = qp.requester;
  if (sequence_before(state.acknowledged, sequence)) {
    state.acknowledged = sequence;
    state.progress_at = engine_.now();
    state.retries_left = qp.settings.retry_cnt;
    state.rnr_retries_left = qp.settings.rnr_retry;
  }
  while (!state.reading_for_ack) {
    const SendWqe* wqe = SendCompleter::confirmed(qp);
    if (wqe == nullptr || (wqe->signaled && waits_for_wqe(qp, *wqe))) return;
    completer_.complete_confirmed(qp);
  }
}

// A completion needs its WQE once more. True: it is being read.
bool AnswerHandler::waits_for_wqe(SimQp& qp, const SendWqe& wqe) {
  qp.requester.reading_for_ack = !fetcher_.at_hand_to_complete(qp, wqe, &wqe_read);
  return qp.requester.reading_for_ack;
}

void AnswerHandler::wqe_read(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;
  qp.requester.reading_for_ack = false;
  qp.send.at(without_generation(argument)).staged = true;
  AnswerHandler& self = answers_of(qp);
  self.acknowledge_up_to(qp, qp.requester.acknowledged);
  if (!qp.requester.reading_for_ack) self.handle_ready(qp);
}

void AnswerHandler::forget(SimQp& qp) {
  RequesterState& state = qp.requester;
  state.asked_again = false;
  while (!state.answers.empty()) fabric_.done_with(state.answers.pop());
  state.answers_ready = 0;
}

}  // namespace verbscope::sim
