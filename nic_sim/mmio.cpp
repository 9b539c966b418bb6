#include "nic_sim/mmio.hpp"

#include "nic_sim/nic.hpp"
#include "pcie_model/wire/event.hpp"

namespace verbscope::sim {
namespace {

// The lines leave now, each as the link takes it. Yields when the last has.
Picos write_lines(Nic& nic, SimThread* thread, std::uint32_t lines, std::uint32_t line_bytes) {
  Picos departed{0};
  for (std::uint32_t i = 0; i < lines; ++i) {
    departed = nic.bus().mmio_write(line_bytes);
    if (thread != nullptr) thread->wc_buffers().line_departs(departed);
  }
  return departed;
}

void announce(SimQp& qp, SimThread* thread, const Announcement& write) {
  Nic& nic = *qp.nic;
  const Picos departed = write_lines(nic, thread, write.lines, write.line_bytes);
  nic.requester().announce(qp, write.batch, departed + nic.bus().propagation());
}

void leaves(void* object, std::uint64_t argument) {
  auto* thread = reinterpret_cast<SimThread*>(argument);
  announce(as_qp(object), thread, thread->wc_buffers().leave());
}

// The thread writes at its time, to which the world comes before it, and goes on.
void write_in_step(SimQp& qp, SimThread* thread, const Announcement& write) {
  if (thread != nullptr) {
    thread->await_wc_buffers(write.lines);
    thread->sync();
  }
  announce(qp, thread, write);
}

// The thread goes on at once; the world comes to its time later.
void write_ahead(SimQp& qp, SimThread& thread, const Announcement& write) {
  thread.await_wc_buffers(write.lines);
  thread.wc_buffers().begin(write);
  qp.nic->engine().schedule(thread.clock(), &leaves, &qp, reinterpret_cast<std::uint64_t>(&thread));
}

// A lone work request is announced ahead. After a list the thread waits: the WQEs are read while they are in the
// processor's caches.
void write(SimQp& qp, SimThread* thread, const Announcement& write, bool list, Picos cost) {
  if (thread == nullptr || list) {
    write_in_step(qp, thread, write);
  } else {
    write_ahead(qp, *thread, write);
  }
  if (thread != nullptr) thread->spend(cost);
}

}  // namespace

void ring_doorbell(SimQp& qp, SimThread* thread, std::uint64_t number) {
  const Profile& profile = qp.nic->profile();
  const auto bytes = static_cast<std::uint32_t>(profile.wire.doorbell_bytes.value);
  write(qp, thread, {in_life(qp.life, number), 1, bytes}, qp.send.batch(number).count > 1, profile.host.doorbell);
}

void write_by_blueflame(SimQp& qp, SimThread* thread, std::uint64_t number, std::uint64_t size) {
  const auto lines = static_cast<std::uint32_t>(divide_up(size, kCacheLine.value));
  write(qp, thread, {in_life(qp.life, number), lines, static_cast<std::uint32_t>(kCacheLine.value)}, false,
        qp.nic->profile().host.wc_line * static_cast<std::int64_t>(lines));
}

Picos ring_arm_doorbell(Nic& nic, SimThread* thread) {
  if (thread != nullptr) {
    thread->await_wc_buffers(1);
    thread->sync();
  }
  const Picos departed = write_lines(nic, thread, 1, static_cast<std::uint32_t>(kArmDoorbell.value));
  if (thread != nullptr) thread->spend(nic.profile().host.doorbell);
  return departed;
}

}  // namespace verbscope::sim
