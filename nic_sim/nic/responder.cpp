#include "nic_sim/nic/responder.hpp"

#include <algorithm>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/windows.hpp"

namespace verbscope::sim {

namespace {

RequestCheck check_order(const SimQp& qp, const Packet& packet) {
  const ResponderState& state = qp.responder;
  const TransportFacts& transport = facts(qp.transport);
  if (transport.reliable) {
    if (sequence_before(packet.sequence, state.expected)) {
      return packet.verb == Verb::read ? RequestCheck::repeat : RequestCheck::duplicate;
    }
    if (packet.sequence != state.expected) return RequestCheck::gap;
  } else if (!transport.one_packet && !packet.first && (state.dropping || packet.sequence != state.expected)) {
    return RequestCheck::drop;
  }
  return RequestCheck::take;
}

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.4.1 (responder's checks): a message of no bytes
// names no region.
RequestCheck check_access(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  int access = IBV_ACCESS_REMOTE_WRITE;
  const VerbFacts& verb = facts(packet.verb);
  if (verb.wants_response) {
    const std::uint32_t limit = std::max<std::uint32_t>(qp.settings.max_dest_rd_atomic, 1);
    access = verb.atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
    if (qp.responder.reads >= limit) return RequestCheck::invalid;
  }
  if ((qp.settings.qp_access_flags & static_cast<unsigned>(access)) == 0) return RequestCheck::invalid;
  if (verb.atomic && packet.remote_address % kAtomicBytes != 0) return RequestCheck::invalid;
  if (packet.length == 0) return RequestCheck::take;
  const Region* region = memory.granted(qp, packet.rkey, packet.remote_address, packet.length, access);
  return region != nullptr ? RequestCheck::take : RequestCheck::no_access;
}

}  // namespace

bool takes_recv(const SimQp& qp, const Packet& packet) {
  return !qp.responder.has_recv && (packet.verb == Verb::send ? packet.first : packet.has_immediate());
}

RequestCheck check_request(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  if (!receiving(qp)) return RequestCheck::drop;
  if (const RequestCheck order = check_order(qp, packet); order != RequestCheck::take) return order;
  if (facts(packet.verb).one_sided && packet.first) {
    const RequestCheck access = check_access(qp, packet, memory);
    if (access != RequestCheck::take) return facts(qp.transport).reliable ? access : RequestCheck::drop;
  }
  if (packet.verb == Verb::write && !packet.first &&
      memory.find(packet.rkey, packet.remote_address + packet.offset, packet.payload) == nullptr) {
    return facts(qp.transport).reliable ? RequestCheck::no_access : RequestCheck::drop;  // deregistered meanwhile
  }
  const RecvQueue& queue = qp.recv_queue();
  if (!takes_recv(qp, packet) || queue.used < queue.fetched) return RequestCheck::take;
  return queue.used < queue.posted ? RequestCheck::wait_for_recv : RequestCheck::no_recv;
}

bool RequestExecutor::take(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  const std::uint64_t spans =
      packet.verb == Verb::read && packet.length > 0 ? divide_up(packet.length, qp.path_mtu) : 1;
  state.expected = packet.sequence + static_cast<std::uint32_t>(spans);
  state.nak_sent = false;
  state.dropping = false;
  if (facts(packet.verb).wants_response) {
    ++state.reads;
    state.unacknowledged = 0;  // the response acknowledges earlier requests too
    return packet.verb == Verb::read || atomics_.begin(qp, packet);
  }
  take_payload(qp, packet);
  return true;
}

void RequestExecutor::take_payload(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  if (packet.first) state.offset = 0;
  if (takes_recv(qp, packet)) recvs_.take(qp, packet);
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (packet.verb == Verb::send) {
    status = recvs_.deliver(qp, packet);
  } else if (packet.payload > 0) {
    payload_.write(packet.remote_address + packet.offset, packet,
                   recvs_.payload_issued(packet.last && packet.has_immediate()));
  }
  state.offset += packet.payload;
  if (status != IBV_WC_SUCCESS) {
    fail_message(qp, packet, status);
  } else if (packet.last) {
    finish_message(qp, packet);
  }
}

void RequestExecutor::fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  recvs_.complete(qp, packet, status);
  const bool too_long = status == IBV_WC_LOC_LEN_ERR;
  if (facts(qp.transport).reliable) {
    answers_.acknowledge(qp, too_long ? Packet::Kind::nak_invalid : Packet::Kind::nak_operation, packet.sequence);
  }
  completer_.fail(qp);
}

void RequestExecutor::finish_message(SimQp& qp, const Packet& packet) {
  if (packet.carried == Carried::key && !invalidate(memory_, qp, packet.immediate)) {
    return fail_message(qp, packet, IBV_WC_REM_INV_REQ_ERR);
  }
  if (packet.verb == Verb::write) ++counts_.writes_received;
  if (packet.verb == Verb::send || packet.has_immediate()) {
    recvs_.complete(qp, packet, IBV_WC_SUCCESS);
    ++counts_.messages_received;
  }
  if (!facts(qp.transport).reliable) return;
  ++qp.responder.unacknowledged;
  if (qp.arrivals.requests == 1 ||  // this one
      qp.responder.unacknowledged >= static_cast<std::uint32_t>(profile_.ack_coalescing)) {
    answers_.acknowledge(qp, Packet::Kind::ack, packet.sequence);
  }
}

void RequestExecutor::refuse(SimQp& qp, const Packet& packet, RequestCheck check) {
  ResponderState& state = qp.responder;
  if (check == RequestCheck::duplicate) {
    if (facts(packet.verb).atomic) return atomics_.repeat(qp, packet);
    if (packet.last) answers_.acknowledge(qp, Packet::Kind::ack, state.expected - 1);
  } else if (check == RequestCheck::gap) {
    if (!state.nak_sent) answers_.acknowledge(qp, Packet::Kind::nak_sequence, state.expected);
    state.nak_sent = true;  // one NAK per gap
  } else if (check == RequestCheck::invalid || check == RequestCheck::no_access) {
    const bool invalid = check == RequestCheck::invalid;
    answers_.acknowledge(qp, invalid ? Packet::Kind::nak_invalid : Packet::Kind::nak_access, packet.sequence);
    completer_.fail_untold(qp, invalid ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_ACCESS_ERR);
  } else if (check == RequestCheck::no_recv && facts(qp.transport).reliable) {
    answers_.acknowledge(qp, Packet::Kind::nak_receiver_not_ready, state.expected);
    state.nak_sent = true;  // later packets are out of sequence until the sender goes back
  } else {
    ++(check == RequestCheck::no_recv ? counts_.dropped_no_recv : counts_.dropped_refused);
    state.dropping = true;  // UC: until the next message begins
  }
}

void RequestProcessor::start(SimQp& qp, Packet& packet) {
  if (is_answer(packet)) return take_answer(qp, packet);
  if (contexts_.lookup(qp.responder_context, events_.read_done, events_.responder, as_argument(qp))) begin(qp, packet);
}

void RequestProcessor::take_answer(SimQp& qp, const Packet& answer) {
  PacketWork work{.alone = is_response(answer) ? profile_.handle_response : profile_.handle_ack};
  if (answer.payload > 0)
    work = move_payload(work.alone - profile_.receive_dma, answer.payload);  // it has the first DMA
  engine_.schedule(units_.occupy(qp, work), events_.answer_processed, events_.responder, as_argument(qp));
}

void RequestProcessor::read_done(SimQp& qp) {
  ReceivingUnit& unit = units_.of(qp);
  units_.note_waited(unit);
  begin(qp, unit.front());
}

// Annex A14 of the specification: an XRC request names a queue of the QP's domain, whose PD and CQ serve the request.
RequestCheck RequestProcessor::check_named_queue(SimQp& qp, const Packet& packet) const {
  if (!receiving(qp) || qp.qp_type != IBV_QPT_XRC_RECV) return RequestCheck::drop;
  if (const RequestCheck order = check_order(qp, packet); order != RequestCheck::take) return order;
  SimSrq* const srq = srqs_.find(packet.qkey);
  if (srq == nullptr || srq->xrcd == nullptr || srq->xrcd->domain != qp.domain) return RequestCheck::invalid;
  qp.srq = srq;
  qp.recv_cq = srq->cq;
  qp.pd = owner_of(srq->pd);
  return check_request(qp, packet, memory_);
}

void RequestProcessor::begin(SimQp& qp, Packet& packet) {
  ReceivingUnit& unit = units_.of(qp);
  unit.generation = qp.generation;
  const RequestCheck check = this->check(qp, packet);
  if (check == RequestCheck::wait_for_recv) {
    unit.waits_for_recv = true;
    ++counts_.recv_waits;
    return;
  }
  if ((check == RequestCheck::take || check == RequestCheck::repeat) && !unit.translated) {
    unit.translated = true;
    if (const std::uint64_t missing = missing_translations(qp, packet); missing > 0) {
      return bus_.dma_read(0, missing * kCacheLine.value, events_.read_done, events_.responder, as_argument(qp));
    }
  }
  // Requests of a QP are executed in order. Only its atomics overlap; their slots keep them apart.
  if (check == RequestCheck::take && qp.responder.atomics > 0 && !facts(packet.verb).atomic) {
    unit.waits_for_atomic = true;
    return;
  }
  work(qp, service(qp, packet, check));
}

// Number of translations that are not cached, for the packet's payload or a READ's whole response.
std::uint64_t RequestProcessor::missing_translations(SimQp& qp, const Packet& packet) {
  if (const VerbFacts& verb = facts(packet.verb); verb.one_sided) {
    return memory_.missing_translations(packet.rkey, packet.remote_address + packet.offset,
                                        verb.wants_response ? packet.length : packet.payload);
  }
  const ResponderState& state = qp.responder;
  RecvQueue& queue = qp.recv_queue();
  const RecvWqe& recv = state.has_recv ? state.recv : queue.at(queue.used);
  const ibv_sge* sges = state.has_recv ? state.recv_sges : queue.sges_of(queue.used);
  const std::uint64_t begin = (packet.first ? 0 : state.offset) + grh_room(qp);
  if (begin + packet.payload > recv.length) return 0;  // too long: nothing will be written
  return memory_.missing_translations({sges, recv.sges}, begin, packet.payload);
}

// `alone`, and moving `bytes` of payload (at least 1): a DMA for each chunk, and more for each of its further lines.
PacketWork RequestProcessor::move_payload(Picos alone, std::uint64_t bytes) const {
  const auto time = [this](std::uint64_t chunks, std::uint64_t lines) {
    return profile_.receive_dma * static_cast<std::int64_t>(chunks) +
           profile_.receive_line * static_cast<std::int64_t>(lines - chunks);
  };
  const std::uint64_t chunk = profile_.receive_chunk.value;
  const std::uint64_t chunks = divide_up(bytes, chunk);
  return {.alone = alone,
          .chunks = static_cast<std::uint32_t>(chunks),
          .full_chunk = time(1, divide_up(chunk, kCacheLine.value)),
          .all_chunks = time(chunks, divide_up(bytes, kCacheLine.value))};
}

PacketWork RequestProcessor::service(const SimQp& qp, const Packet& packet, RequestCheck check) const {
  if (check != RequestCheck::take && check != RequestCheck::repeat) return {.alone = profile_.receive_packet};
  if (facts(packet.verb).atomic) {
    return {.alone = profile_.receive_packet + profile_.receive_dma * 2 + profile_.atomic_packet};
  }
  if (packet.verb == Verb::read && packet.length > 0) {  // each further packet of the response takes a time of its own
    return move_payload(profile_.receive_packet + profile_.read_request, std::min(packet.length, qp.path_mtu));
  }
  const InlineReceive place = packet.payload > 0 ? inline_receive(qp, packet) : InlineReceive::in_cqe;
  const bool completes = packet.last && (packet.verb == Verb::send || packet.has_immediate());
  Picos alone = profile_.receive_packet;
  if (completes) alone += profile_.receive_dma;
  if (place == InlineReceive::in_recv) alone += profile_.receive_inline;
  if (place != InlineReceive::nowhere) return {.alone = alone};
  return move_payload(alone, packet.payload);
}

// The unit works on the first packet, as soon as it is free.
void RequestProcessor::work(SimQp& qp, const PacketWork& work) {
  engine_.schedule(units_.occupy(qp, work), events_.service_done, events_.responder, as_argument(qp));
}

bool RequestProcessor::service_done(SimQp& qp) {
  ReceivingUnit& unit = units_.of(qp);
  const bool helped = units_.release_helpers(qp);
  const bool wanted = receiving(qp) && unit.generation == qp.generation;
  return ((!wanted || execute(unit, qp, unit.front())) && units_.request_done(unit)) || helped;
}

// Returns false if the packet stays in front: for more response packets, for a RECV or for a slot.
bool RequestProcessor::execute(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (unit.responses > 0) return respond(unit, qp, packet);
  const RequestCheck check = this->check(qp, packet);
  unit.repeats = check == RequestCheck::repeat;
  switch (check) {
    case RequestCheck::wait_for_recv:  // another QP has taken the shared queue's last RECV meanwhile
      unit.waits_for_recv = true;
      unit.waiting_since = engine_.now();
      return false;
    case RequestCheck::take:
      if (!executor_.take(qp, packet)) return false;
      return packet.verb != Verb::read || respond(unit, qp, packet);
    case RequestCheck::repeat:
      return respond(unit, qp, packet);
    case RequestCheck::drop:
    case RequestCheck::duplicate:
    case RequestCheck::gap:
    case RequestCheck::invalid:
    case RequestCheck::no_access:
    case RequestCheck::no_recv:
      break;
  }
  executor_.refuse(qp, packet, check);
  return true;
}

// Sends the next response packet for the READ in front. Returns false if more follow.
bool RequestProcessor::respond(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (answers_.respond(qp, packet, unit.responses, unit.repeats)) {
    unit.responses = 0;
    return true;
  }
  ++unit.responses;
  const std::uint32_t begin = unit.responses * qp.path_mtu;
  work(qp, move_payload(profile_.next_packet, std::min(packet.length - begin, qp.path_mtu)));
  return false;
}

ReceiveEvents Responder::events_of(void* responder) {
  return {.responder = responder,
          .context_near = &context_near,
          .unit_free = &unit_free,
          .read_done = &read_done,
          .answer_processed = &answer_processed,
          .service_done = &service_done,
          .recvs_fetched = &recvs_fetched,
          .shared_recvs_fetched = &shared_recvs_fetched,
          .atomic_done = &atomic_done};
}

void Responder::receive(Packet& packet) {
  if (units_.receive(packet)) serve();
}

void Responder::context_near(void* object, std::uint64_t packet) {
  Responder& self = *static_cast<Responder*>(object);
  if (self.units_.context_near(as_packet(packet))) self.serve();
}

// Gives idle units the QPs in line; each unit starts with the QP's first packet.
void Responder::serve_line() {
  while (SimQp* qp = units_.serve_next()) processor_.start(*qp, units_.of(*qp).front());
}

void Responder::read_done(void* object, std::uint64_t qp) {
  static_cast<Responder*>(object)->processor_.read_done(as_qp(qp));
}

void Responder::service_done(void* object, std::uint64_t qp) {
  Responder& self = *static_cast<Responder*>(object);
  if (self.processor_.service_done(as_qp(qp))) self.serve();
}

void Responder::unit_free(void* object, std::uint64_t unit) {
  Responder& self = *static_cast<Responder*>(object);
  self.units_.give_back(unit);
  self.serve();
}

// The requester handles the answer. Then the unit is free for other packets.
void Responder::answer_processed(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  SimQp& qp = as_qp(argument);
  const bool helped = self.units_.release_helpers(qp);
  ReceivingUnit& unit = self.units_.of(qp);
  self.requester_.take_answer(qp, self.units_.take_answer(unit));
  if (self.units_.work_done(unit) || helped) self.serve();
}

void Responder::recvs_fetched(void* object, std::uint64_t word) {
  Responder& self = *static_cast<Responder*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET) return;
  qp->recv.fetched += QpWord::count(word);
  self.units_.recvs_fetched(*qp, self.resume_work());
}

void Responder::shared_recvs_fetched(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  self.units_.recvs_fetched(self.fetcher_.shared_recvs_fetched(argument), self.resume_work());
}

void Responder::atomic_done(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  Packet& answer = as_packet(argument);
  if (self.atomics_.done(self.qps_.find_any(answer.source_qp), answer, self.resume_work())) self.serve();
}

}  // namespace verbscope::sim
