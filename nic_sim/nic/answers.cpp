#include "nic_sim/nic/answers.hpp"

#include <algorithm>
#include <cstring>

#include "wire/packet.hpp"

namespace verbscope::sim {

Packet& AnswerSender::make(const SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload,
                           Bytes extensions) {
  Packet& packet = packets_.take(payload);
  packet.kind = kind;
  packet.transport = qp.transport;
  packet.completes = false;
  packet.counted = false;
  packet.port = qp.port;
  packet.source_node = node_;
  packet.target_node = qp.peer_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = qp.peer_qp;
  packet.sequence = sequence;
  packet.immediate = qp.settings.min_rnr_timer;
  packet.reads_left = 0;
  packet.cookie = with_generation(qp.generation, 0);
  packet.wire_bytes = framing_.bytes(payload, extensions, qp.global);
  packet.priority = qp.priority;
  return packet;
}

void AnswerSender::send(SimQp& qp, Packet& answer) {
  qp.responder.answers.push(answer);
  send_ready(qp);
}

void AnswerSender::send_ready(SimQp& qp) {
  PacketQueue& answers = qp.responder.answers;
  while (!answers.empty() && answers.front().reads_left == 0 && !qp.responder.waits_for_rate) {
    Packet& packet = answers.front();
    const bool wanted = qp.state != IBV_QPS_RESET && of_this_generation(qp, packet.cookie);
    if (wanted && packet.payload > 0 && !congestion_.may_send(qp, packet, &rate_allows, this)) {
      qp.responder.waits_for_rate = true;
      return;
    }
    answers.pop(packets_.memory());
    if (!wanted) {
      packets_.give_back(packet);
      continue;
    }
    if (packet.counted) --qp.responder.reads;
    fabric_.send(packet);
  }
}

void AnswerSender::rate_allows(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(argument);
  qp.responder.waits_for_rate = false;
  static_cast<AnswerSender*>(object)->send_ready(qp);
}

void AnswerSender::acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence) {
  Packet& packet = make(qp, kind, sequence, 0, kAeth);
  if (kind == Packet::Kind::ack) {
    qp.responder.unacknowledged = 0;
    ++counts_.acks_sent;
  } else if (kind == Packet::Kind::nak_receiver_not_ready) {
    ++counts_.rnr_naks_sent;
  } else {
    ++counts_.naks_sent;
  }
  send(qp, packet);
}

bool AnswerSender::respond(SimQp& qp, const Packet& read, std::uint32_t number, bool repeats) {
  const std::uint32_t offset = number * qp.path_mtu;
  const std::uint32_t payload = std::min(read.length - offset, qp.path_mtu);
  const bool first = offset == 0, last = offset + payload == read.length;
  Packet& answer =
      make(qp, Packet::Kind::read_response, read.sequence + number, payload, first || last ? kAeth : Bytes(0));
  answer.first = first;
  answer.last = last;
  answer.remote_address = read.remote_address + offset;
  answer.rkey = read.rkey;
  answer.counted = answer.last && !repeats;
  answer.reads_left = payload > 0 ? 1 : 0;
  if (payload > 0)
    bus_.dma_read(answer.remote_address, payload, &response_read, this, as_argument(answer), Ordered::yes);
  send(qp, answer);
  if (last) ++counts_.reads_served;
  return last;
}

// The answer's bytes are those in memory when the DMA read completes.
void AnswerSender::response_read(void* object, std::uint64_t argument) {
  AnswerSender& self = *static_cast<AnswerSender*>(object);
  Packet& answer = as_packet(argument);
  if (const Region* const region = self.registered_region(answer, answer.payload)) {
    HostMemory::read(*region, answer.remote_address, answer.data(), answer.payload);
  } else {
    answer.kind = Packet::Kind::nak_access;
  }
  if (self.profile_.read_response == Picos(0)) return response_ready(object, argument);
  self.engine_.schedule(self.engine_.now() + self.random_.exponential(self.profile_.read_response), &response_ready,
                        object, argument);
}

void AnswerSender::response_ready(void* object, std::uint64_t argument) {
  AnswerSender& self = *static_cast<AnswerSender*>(object);
  Packet& answer = as_packet(argument);
  self.data_read(self.qps_.find_any(answer.source_qp), answer, answer.kind != Packet::Kind::nak_access);
}

Packet& AnswerSender::make_atomic_response(const SimQp& qp, const Packet& atomic) {
  // AtomicAckETH is the 8 bytes of the result.
  return make(qp, Packet::Kind::atomic_response, atomic.sequence, kAtomicBytes, kAeth);
}

void AnswerSender::data_read(SimQp& qp, Packet& answer, bool registered) {
  const bool fails = !registered && of_this_generation(qp, answer.cookie) && receiving(qp);
  if (!registered) answer.kind = Packet::Kind::nak_access;
  answer.reads_left = 0;
  send_ready(qp);
  if (fails) completer_.fail_untold(qp, IBV_EVENT_QP_ACCESS_ERR);
}

bool AtomicUnit::begin(SimQp& qp, const Packet& packet) {
  if (!slots_.take(slots_.slot_of(packet.remote_address), static_cast<int>(qp.arrivals.unit), engine_.now())) {
    ++counts_.atomic_slot_waits;
    units_.of(qp).slot_wanted_at = engine_.now();
    return false;
  }
  start(qp, packet);
  return true;
}

void AtomicUnit::start(SimQp& qp, const Packet& packet) {
  Packet& answer = answers_.make_atomic_response(qp, packet);
  answer.verb = packet.verb;
  answer.remote_address = packet.remote_address;
  answer.rkey = packet.rkey;
  answer.operand = packet.operand;
  answer.compare = packet.compare;
  answer.counted = true;
  answer.reads_left = 1;
  ++qp.responder.atomics;
  answers_.send(qp, answer);
  bus_.dma_read(packet.remote_address, kAtomicBytes, &operand_read, this, as_argument(answer), Ordered::yes);
}

void AtomicUnit::operand_read(void* object, std::uint64_t argument) {
  AtomicUnit& self = *static_cast<AtomicUnit*>(object);
  self.engine_.schedule(self.engine_.now() + self.profile_.atomic_operation, self.events_.atomic_done,
                        self.events_.responder, argument);
}

// Stores the previous value in the answer. `region`: null if it was deregistered.
void AtomicUnit::operate(SimQp& qp, Packet& answer, const Region* region) {
  const std::uint64_t before = region != nullptr ? change(qp, answer, *region) : 0;
  std::memcpy(answer.data(), &before, sizeof before);
}

// Performs the operation that `answer` answers. Returns the previous value.
std::uint64_t AtomicUnit::change(SimQp& qp, const Packet& answer, const Region& region) {
  std::uint64_t before = 0;
  HostMemory::read(region, answer.remote_address, reinterpret_cast<std::byte*>(&before), sizeof before);
  std::uint64_t after = before + answer.operand;
  if (answer.verb == Verb::compare_swap) after = before == answer.compare ? answer.operand : before;
  Packet& write = packets_.take(sizeof after);
  write.rkey = answer.rkey;
  std::memcpy(write.data(), &after, sizeof after);
  payload_.write(answer.remote_address, write);
  ++counts_.atomics_served;
  if (of_this_generation(qp, answer.cookie)) qp.results.add(answer.sequence, before);
  return before;
}

// Gives the slot to the unit that has waited longest for it, whose atomic starts.
bool AtomicUnit::pass_on_slot(std::uint64_t address) {
  const std::uint64_t slot = slots_.slot_of(address);
  const Picos now = engine_.now();
  bool idle = false;
  for (int number = slots_.pass_on(slot, now); number != AtomicSlots::kNoUnit; number = slots_.pass_on(slot, now)) {
    ReceivingUnit& unit = units_[number];
    Packet& packet = unit.front();
    SimQp* qp = qps_.find(packet.target_qp);
    const Picos waited = now - unit.slot_wanted_at;
    counts_.atomic_slot_wait_ps += static_cast<std::uint64_t>(waited.count());
    units_.note_held_up(unit, waited);
    const bool wanted = qp != nullptr && receiving(*qp) && unit.generation == qp->generation;
    if (wanted) start(*qp, packet);
    idle |= units_.request_done(unit);
    if (wanted) break;
  }
  return idle;
}

void AtomicUnit::repeat(SimQp& qp, const Packet& packet) {
  const AtomicResults::Result* result = qp.results.find(packet.sequence);
  if (result == nullptr) return;
  Packet& answer = answers_.make_atomic_response(qp, packet);
  std::memcpy(answer.data(), &result->value, sizeof result->value);
  answers_.send(qp, answer);
}

}  // namespace verbscope::sim
