#include "nic_sim/device/mmio.hpp"

#include <utility>

#include "nic_sim/nic/nic.hpp"
#include "wire/doorbell.hpp"

namespace verbscope::sim {
namespace {

// Drains the lines to the link. Returns the time at which the last one has left.
Picos write_lines(Nic& nic, SimThread* thread, std::uint32_t lines, std::uint32_t line_bytes) {
  Picos departed{0};
  for (std::uint32_t i = 0; i < lines; ++i) {
    departed = nic.bus().mmio_write(line_bytes);
    if (thread != nullptr) thread->wc_buffers().line_departs(departed);
  }
  return departed;
}

void drain(SimQp& qp, SimThread* thread, const MmioWrite& write) {
  Nic& nic = *qp.nic;
  const Picos departed = write_lines(nic, thread, write.lines, write.line_bytes);
  nic.requester().batch_arrives(qp, write.batch, departed + nic.bus().propagation());
}

void drain_later(void* object, std::uint64_t argument) {
  auto* thread = reinterpret_cast<SimThread*>(argument);
  drain(*static_cast<SimQp*>(object), thread, thread->wc_buffers().drain_first());
}

NicFamily nic_family(const SimQp& qp) {
  return qp.nic->profile().wire.family;
}

// True if a register shared by QPs is locked for the write: mlx4 locks it only for BlueFlame.
bool needs_lock(NicFamily family, bool by_blueflame) {
  return family == NicFamily::mlx5 || by_blueflame;
}

// The write that posts the batch, and its CPU time.
std::pair<MmioWrite, Picos> mmio_write_of(const SimQp& qp, std::uint64_t first, bool blueflame, std::uint64_t size) {
  const Profile& profile = qp.nic->profile();
  const std::uint64_t batch = with_generation(qp.generation, first);
  if (!blueflame) {
    return {{batch, 1, static_cast<std::uint32_t>(profile.wire.doorbell_bytes.value)}, profile.host.doorbell};
  }
  const auto lines = static_cast<std::uint32_t>(divide_up(size, kCacheLine.value));
  return {{batch, lines, static_cast<std::uint32_t>(kCacheLine.value)}, profile.host.wc_line * std::int64_t{lines}};
}

}  // namespace

// A single work request is written ahead of the engine: the thread continues at once, and the write drains when the
// engine reaches its time. After a list the thread synchronizes with the engine, because the WQEs are then read while
// the processor's caches hold them.
void write_batch(SimQp& qp, SimThread* thread, std::uint64_t first, std::uint64_t size) {
  const SendWqe& wqe = qp.send.at(first);
  const auto [write, cost] = mmio_write_of(qp, first, wqe.by_blueflame, size);
  if (thread == nullptr) return drain(qp, nullptr, write);
  thread->await_wc_buffers(write.lines);
  const bool locked = qp.doorbell_lock != nullptr && needs_lock(nic_family(qp), wqe.by_blueflame);
  if (locked) qp.doorbell_lock->take(*thread, cost);
  if (wqe.batch.count == 1) {
    thread->wc_buffers().begin(write);
    qp.nic->engine().schedule(thread->clock(), &drain_later, &qp, reinterpret_cast<std::uint64_t>(thread));
  } else {
    thread->sync();
    drain(qp, thread, write);
  }
  thread->spend(cost);
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
