// The requester's work on what comes back on reliable connections: acknowledgements, responses to READs and atomics,
// and the completions that follow from them.
#include <algorithm>
#include <cstring>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {

// Acknowledgements take effect at once and cost the unit a time; responses when the unit has had its time for them, and
// so do acknowledgements behind responses of the same QP.
void Requester::receive(Packet& packet) {
  SimQp* qp = nic_.find_qp(packet.target_qp);
  // Not open: those of a connection before a reset.
  if (qp == nullptr || qp->state != IBV_QPS_RTS || qp->transport != Transport::rc ||
      !sequence_before(packet.sequence, qp->requester.sequence_unsent)) {
    return nic_.fabric().done_with(packet);
  }
  RequesterState& state = qp->requester;
  const NicProfile& profile = nic_.profile().nic;
  const bool response = packet.kind == Packet::Kind::read_response || packet.kind == Packet::Kind::atomic_response;
  const Picos handled = occupy(unit_of(*qp), response ? profile.handle_response : profile.handle_ack);
  if (!response && state.answers.empty()) {
    handle_ack(*qp, packet);
    return nic_.fabric().done_with(packet);
  }
  state.answers.push(packet);
  nic_.engine().schedule(handled, &answer_handled, qp, with_generation(qp->generation, 0));
}

void Requester::answer_handled(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (!of_this_generation(qp, argument) || qp.requester.answers.empty()) return;
  ++qp.requester.answers_ready;
  qp.nic->requester().handle_answers(qp);
}

void Requester::handle_answers(SimQp& qp) {
  RequesterState& state = qp.requester;
  while (state.answers_ready > 0 && !state.answers.empty() && qp.state == IBV_QPS_RTS) {
    Packet& packet = state.answers.front();
    if (packet.kind == Packet::Kind::read_response || packet.kind == Packet::Kind::atomic_response) {
      if (qp.reads.count() > 0) {
        SendWqe& wqe = qp.send.at(qp.reads.oldest());
        if (state.reading_for_ack || read_again_for_ack(qp, wqe)) return;
        wqe.staged = true;  // held for the rest of the response and the completion
        handle_response(qp, wqe, packet);
      }
    } else {
      handle_ack(qp, packet);
    }
    if (qp.state != IBV_QPS_RTS) return;  // failed: forget() has taken the answers
    state.answers.pop();
    --state.answers_ready;
    nic_.fabric().done_with(packet);
  }
}

// What an acknowledgement of everything up to `sequence` confirms: nothing that is to be sent again, and no READ or
// atomic without its response. One that is ahead of a response says that the response was lost.
std::uint32_t Requester::confirmed_by(SimQp& qp, std::uint32_t sequence) {
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
  ask_again(qp);
  return missing - 1;
}

// Once until something comes in order again: further packets behind the gap say nothing new.
void Requester::ask_again(SimQp& qp) {
  if (qp.requester.asked_again) return;
  qp.requester.asked_again = true;
  const SendWqe& wqe = qp.send.at(qp.reads.oldest());
  go_back(qp, wqe.sequence);
  activate(qp);
}

void Requester::handle_ack(SimQp& qp, const Packet& packet) {
  if (packet.kind == Packet::Kind::ack) return acknowledge_up_to(qp, confirmed_by(qp, packet.sequence));
  if (sequence_before(qp.requester.acknowledged, packet.sequence)) handle_nak(qp, packet);
}

void Requester::handle_response(SimQp& qp, SendWqe& wqe, const Packet& packet) {
  const std::uint32_t missing = wqe.sequence + wqe.responses;
  if (packet.sequence != missing) {
    if (sequence_before(missing, packet.sequence)) ask_again(qp);
    return;  // else a repetition
  }
  if (const ibv_wc_status status = scatter(qp, wqe, packet); status != IBV_WC_SUCCESS) {
    return fail_at(qp, wqe, status);
  }
  ++wqe.responses;
  qp.requester.asked_again = false;
  if (wqe.responses == wqe.sequences) ++qp.reads.ended;
  acknowledge_up_to(qp, packet.sequence);
  activate(qp);
}

// Writes what the response brings to where the WQE wants it, or leaves it to the CQE.
ibv_wc_status Requester::scatter(SimQp& qp, const SendWqe& wqe, const Packet& packet) {
  const bool by_cqe = wqe.signaled && wqe.length <= qp.inline_recv;
  const ibv_sge* sge = qp.send.sges_of(wqe.index);
  std::uint64_t begin = wqe.responses * std::uint64_t{qp.path_mtu};
  std::uint32_t copied = 0;
  while (copied < packet.payload) {
    if (begin >= sge->length) {
      begin -= (sge++)->length;
      continue;
    }
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(packet.payload - copied, sge->length - begin));
    const std::uint64_t address = sge->addr + begin;
    if (nic_.find_mr(*qp.pd, sge->lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE) == nullptr) return IBV_WC_LOC_PROT_ERR;
    std::memcpy(reinterpret_cast<std::byte*>(address), packet.data + copied, bytes);
    if (!by_cqe) nic_.bus().dma_write(address, bytes);
    copied += bytes;
    begin = 0;
    ++sge;
  }
  if (by_cqe && copied > 0) ++nic_.counts().inline_receives;
  return IBV_WC_SUCCESS;
}

// Completes the work requests whose last packet is `sequence` or before.
void Requester::acknowledge_up_to(SimQp& qp, std::uint32_t sequence) {
  RequesterState& state = qp.requester;
  if (sequence_before(state.acknowledged, sequence)) {
    state.acknowledged = sequence;
    state.progress_at = nic_.engine().now();
    state.retries_left = qp.settings.retry_cnt;
    state.rnr_retries_left = qp.settings.rnr_retry;
  }
  complete_confirmed(qp, false);
}

// In order; a QP that is failing waits for no WQE that is read again.
void Requester::complete_confirmed(SimQp& qp, bool failing) {
  const RequesterState& state = qp.requester;
  SendQueue& queue = qp.send;
  while ((failing || !state.reading_for_ack) && queue.done < queue.next) {
    SendWqe& wqe = queue.at(queue.done);
    if (!wqe.answered() || sequence_before(state.acknowledged, wqe.sequence + wqe.sequences - 1)) return;
    if (!failing && wqe.signaled && read_again_for_ack(qp, wqe)) return;
    release(wqe);
    ++queue.done;
    if (wqe.signaled) complete_wqe(qp, wqe, IBV_WC_SUCCESS);
  }
}

// A completion needs its WQE once more. False when it is at hand.
bool Requester::read_again_for_ack(SimQp& qp, SendWqe& wqe) {
  if (wqe.staged) return false;
  if (wqe.place.cached()) {
    ++nic_.counts().wqe_cache_hits;
    return false;
  }
  ++nic_.counts().wqe_cache_misses;
  nic_.counts().wqe_cache_reread_lines += wqe.bytes / kCacheLine.value;
  qp.requester.reading_for_ack = true;
  nic_.bus().dma_read(wqe.ring_offset, wqe.bytes, &read_for_ack, &qp, with_generation(qp.generation, wqe.index));
  return true;
}

void Requester::read_for_ack(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;
  qp.requester.reading_for_ack = false;
  qp.send.at(without_generation(argument)).staged = true;
  qp.nic->requester().acknowledge_up_to(qp, qp.requester.acknowledged);
  if (!qp.requester.reading_for_ack) qp.nic->requester().handle_answers(qp);
}

}  // namespace verbscope::sim
