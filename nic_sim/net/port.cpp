#include "nic_sim/net/port.hpp"

#include <algorithm>
#include <bit>

namespace verbscope::sim {

void OutPort::push(Packet& packet) {
  queues_[packet.priority].push(packet);
  queued_[packet.priority] += packet.wire_bytes;
  all_queued_ += packet.wire_bytes;
  deepest_ = std::max(deepest_, all_queued_);
  waiting_ |= 1u << packet.priority;
  serve();
}

void OutPort::serve() {
  const unsigned ready = waiting_ & ~paused_;
  if (sending_ || ready == 0) return;
  const auto priority = static_cast<std::uint8_t>(std::bit_width(ready) - 1);
  PacketQueue& queue = queues_[priority];
  Packet& packet = queue.pop(packets_);
  if (queue.empty()) waiting_ &= ~(1u << priority);
  sending_ = true;
  sent_ = {.bytes = packet.wire_bytes, .priority = priority, .ingress = packet.ingress};
  const Picos now = engine_.now();
  const Picos end = line_.take(now, time_of(packet.wire_bytes));
  send_begins(packet, now, end);
  engine_.schedule(end, &line_is_free, this);
}

void OutPort::line_is_free(void* object, std::uint64_t) {
  OutPort& port = *static_cast<OutPort*>(object);
  port.sending_ = false;
  port.queued_[port.sent_.priority] -= port.sent_.bytes;
  port.all_queued_ -= port.sent_.bytes;
  port.send_ended(port.sent_);
  port.serve();
}

void OutPort::pause(void* object, std::uint64_t priority) {
  OutPort& port = *static_cast<OutPort*>(object);
  port.paused_ |= 1u << priority;
  ++port.pauses_;
  port.paused_time_ -= port.engine_.now();
}

void OutPort::resume(void* object, std::uint64_t priority) {
  OutPort& port = *static_cast<OutPort*>(object);
  port.paused_ &= ~(1u << priority);
  port.paused_time_ += port.engine_.now();
  port.serve();
}

Picos OutPort::paused() const {
  return paused_time_ + engine_.now() * std::popcount(paused_);
}

}  // namespace verbscope::sim
