#include "nic_sim/nic/atomic_unit.hpp"

#include <cstring>

namespace verbscope::sim {
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
  self.engine_.schedule(self.engine_.now() + self.profile_.atomic_operation, &operation_done, object, argument);
}

void AtomicUnit::operation_done(void* object, std::uint64_t argument) {
  AtomicUnit& self = *static_cast<AtomicUnit*>(object);
  Packet& answer = as_packet(argument);
  SimQp& qp = self.qps_.once_there(answer.source_qp);
  const bool there = self.answers_.still_there(qp, answer, kAtomicBytes);
  const std::uint64_t before = there ? self.operate(qp, answer) : 0;
  std::memcpy(answer.data, &before, sizeof before);
  self.give_up_slot(answer.remote_address);
  if (of_this_generation(qp, answer.cookie) && --qp.responder.atomics == 0) self.units_.atomics_ended(qp);
  self.answers_.data_read(qp, answer, there);
}

// Does the operation that `answer` is the answer to. Yields what was there before.
std::uint64_t AtomicUnit::operate(SimQp& qp, const Packet& answer) {
  std::uint64_t before = 0;
  memory_.read(answer.remote_address, reinterpret_cast<std::byte*>(&before), sizeof before);
  std::uint64_t after = before + answer.operand;
  if (answer.verb == Verb::compare_swap) after = before == answer.compare ? answer.operand : before;
  Packet& write = packets_.take(sizeof after);
  write.rkey = answer.rkey;
  std::memcpy(write.data, &after, sizeof after);
  payload_.write(answer.remote_address, write);
  ++counts_.atomics_served;
  if (of_this_generation(qp, answer.cookie)) qp.results.keep(answer.sequence, before);
  return before;
}

// The unit that has waited longest for the slot has it now; the packet in front of its line begins.
void AtomicUnit::give_up_slot(std::uint64_t address) {
  const std::uint64_t slot = slots_.slot_of(address);
  const Picos now = engine_.now();
  for (int number = slots_.give_up(slot, now); number != AtomicSlots::kNobody; number = slots_.give_up(slot, now)) {
    ReceivingUnit& unit = units_[number];
    Packet& packet = unit.front();
    SimQp* qp = qps_.find(packet.target_qp);
    const Picos waited = now - unit.slot_wanted_at;
    counts_.atomic_slot_wait_ps += static_cast<std::uint64_t>(waited.count());
    units_.note_held_up(unit, waited);
    const bool wanted = qp != nullptr && receiving(*qp) && unit.generation == qp->generation;
    if (wanted) start(*qp, packet);
    units_.front_is_done(unit);
    if (wanted) return;
  }
}

void AtomicUnit::repeat(SimQp& qp, const Packet& packet) {
  const AtomicResults::Result* result = qp.results.find(packet.sequence);
  if (result == nullptr) return;
  Packet& answer = answers_.make_atomic_response(qp, packet);
  std::memcpy(answer.data, &result->value, sizeof result->value);
  answers_.send(qp, answer);
}

}  // namespace verbscope::sim
