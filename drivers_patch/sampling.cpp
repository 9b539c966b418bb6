#include "drivers_patch/sampling.hpp"

#include <x86intrin.h>

#include "drivers_patch/shapes.hpp"

namespace verbscope::driver {
namespace {

// Completions of sends of the QP that any thread has polled.
std::uint64_t polled(const QpRecord& qp) {
  std::uint64_t completions = 0;
  for (const QpCounts* counts = qp.counts.load(std::memory_order_acquire); counts != nullptr; counts = counts->next) {
    completions += __atomic_load_n(&counts->send_completions, __ATOMIC_RELAXED);
  }
  return completions;
}

}  // namespace

bool sample_post(QpCounts& counts, bool signaled, std::uint64_t uncounted) {
  QpRecord& qp = *counts.qp;
  if (!counts.posts) {
    counts.posts = true;
    if (qp.posters.fetch_add(1) > 0) qp.no_samples = true;
  }
  counts.until_sample = kSampleEvery;
  counts.sample_due = false;
  if (!counts.takes_times || qp.no_samples.load(std::memory_order_relaxed)) return false;
  counts.sample_due = !signaled;
  if (!signaled || qp.sample_target.load(std::memory_order_relaxed) != 0) return false;
  const std::uint64_t target = signaled_requests(counts) + uncounted;
  if (target <= polled(qp)) return false;
  qp.sample_ticks = __rdtsc();
  qp.sample_target.store(target, std::memory_order_release);
  return true;
}

void note_atomic(QpCounts& counts, std::uint64_t remote_address) {
  AtomicAddresses& atomics = counts.atomics;
  const std::uint64_t low = remote_address & AtomicAddresses::kLowBits;
  add(atomics.noted);
  AtomicAddresses::Frequent* place = nullptr;
  for (AtomicAddresses::Frequent& each : atomics.frequent) {
    if (each.count > 0 && each.low == low) return add(each.count);
    if (each.count == 0) place = &each;
  }
  if (place != nullptr) {
    put(place->low, low);
    return add(place->count);
  }
  // Misra and Gries, "Finding repeated elements", Science of Computer Programming 2(2), 1982.
  for (AtomicAddresses::Frequent& each : atomics.frequent) add(each.count, ~std::uint64_t{0});
}

void sample_reads(QpCounts& counts, std::uint64_t uncounted, std::uint64_t uncounted_signaled) {
  const std::uint64_t signaled = signaled_requests(counts) + uncounted_signaled, done = polled(*counts.qp);
  if (signaled <= done) return;
  const std::uint64_t under_way = (signaled - done) * (all_requests(counts) + uncounted) / signaled;
  if (under_way > counts.reads_outstanding) put(counts.reads_outstanding, under_way);
}

void sample_requests(QpCounts& counts, const ibv_send_wr& first) {
  const ibv_send_wr* wr = &first;
  for (int left = kAtomicsOfList; left > 0 && wr != nullptr; --left, wr = wr->next) {
    if (is_atomic(wr->opcode)) note_atomic(counts, wr->wr.atomic.remote_addr);
  }
  if (is_atomic(first.opcode) || first.opcode == IBV_WR_RDMA_READ) sample_reads(counts, 0, 0);
}

void forget_sample(QpCounts& counts) {
  counts.qp->sample_target.store(0, std::memory_order_relaxed);
}

void sample_completed(QpCounts& counts) {
  QpRecord& qp = *counts.qp;
  const std::uint64_t target = qp.sample_target.load(std::memory_order_acquire);
  if (target == 0 || counts.send_completions < target) return;
  if (!qp.no_samples.load(std::memory_order_relaxed)) {
    add(counts.samples);
    add_class(counts.by_time, __rdtsc() - qp.sample_ticks);
  }
  qp.sample_target.store(0, std::memory_order_release);
}

void note_poller(QpCounts& counts) {
  QpRecord& qp = *counts.qp;
  if (qp.pollers.fetch_add(1) > 0) qp.no_samples = true;
}

}  // namespace verbscope::driver
