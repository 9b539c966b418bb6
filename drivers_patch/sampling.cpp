#include "drivers_patch/sampling.hpp"

#include <x86intrin.h>

#include "drivers_patch/shapes.hpp"

namespace verbscope::driver {
namespace {

// Completions of sends that anybody has polled of the QP.
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
