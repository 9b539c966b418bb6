#include "drivers_patch/request_counts.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <span>

namespace verbscope::driver {
namespace {

constexpr std::size_t kProbes = 4;
constexpr std::uint64_t kMaxLength = 0xffffffff;  // largest length in a shape

std::uint64_t total_length(std::span<const ibv_sge> elements) {
  std::uint64_t length = 0;
  for (const ibv_sge& element : elements) length += element.length;
  return length;
}

// Completions of sends of the QP that any thread has polled.
std::uint64_t polled(const QpRecord& qp) {
  std::uint64_t completions = 0;
  for (const QpCounts* counts = qp.counts.load(std::memory_order_acquire); counts != nullptr; counts = counts->next) {
    completions += __atomic_load_n(&counts->send_completions, __ATOMIC_RELAXED);
  }
  return completions;
}

// For a request whose elements are at several addresses: adds it to the totals, not to a shape.
void count_gather(QpCounts& counts, const Request& request, std::uint64_t weight) {
  SendTotals totals = counts.spilled;
  add_request(process.arena.header().wire, counts.qp->facts, request, weight, totals);
  put_all(counts.spilled, totals);
}

// Requests that this thread has posted to the QP.
std::uint64_t all_requests(const QpCounts& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts.spilled.by_opcode) all += count;
  for (const ShapeSlot& slot : counts.shapes) all += slot.count;
  return all;
}

}  // namespace

Request posted_request(const ibv_send_wr& wr) {
  if (wr.num_sge == 1) return request_of({shape_head(wr), shape_data(*wr.sg_list, ~std::uint32_t{0})});
  Request request = request_of({shape_head(wr), 0});
  // The provider will refuse a negative number.
  const std::span gather(wr.sg_list, static_cast<std::uint32_t>(std::max(wr.num_sge, 0)));
  request.length = total_length(gather);
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) request.gather = gather;
  return request;
}

// A shape has four possible slots, so that lookups are short, and keeps the slot it took.
std::uint64_t* count_of(QpCounts& counts, const Shape& shape) {
  const std::uint64_t first = (shape.head + shape.data) * 0x9e3779b97f4a7c15 >> 60;
  for (std::size_t i = 0; i < kProbes; ++i) {
    ShapeSlot& slot = counts.shapes[(first + i) % QpCounts::kShapes];
    if (slot.head == shape.head && slot.data == shape.data) return &slot.count;
    // An unused slot has count 0. The shape of all zeros (an empty WRITE) also matches an unused slot.
    if (slot.head == 0 && slot.data == 0 && slot.count == 0) {
      put(slot.head, shape.head);
      put(slot.data, shape.data);
      return &slot.count;
    }
  }
  return nullptr;
}

void count_shape(QpCounts& counts, const Shape& shape, std::uint64_t weight) {
  if (std::uint64_t* const count = count_of(counts, shape)) return add(*count, weight);
  count_gather(counts, request_of(shape), weight);
}

void count_several(QpCounts& counts, const ibv_send_wr& wr, bool alone, std::uint64_t weight) {
  Request request = posted_request(wr);
  request.alone = alone;
  if (request.gather.empty() && request.length <= kMaxLength) {
    return count_shape(counts, {shape_head(wr) | (alone ? kAlone : 0), request.length << 32}, weight);
  }
  count_gather(counts, request, weight);
}

void count_received(QpCounts& counts, std::uint64_t shape, std::uint64_t weight) {
  for (ReceiveSlot& slot : counts.received) {
    if (slot.count != 0 && slot.shape != shape) continue;
    put(slot.shape, shape);
    counts.last_received = shape;
    counts.last_received_count = &slot.count;
    return add(slot.count, weight);
  }
  ReceiveTotals totals = counts.received_spilled;
  add_received(process.arena.header().wire, counts.qp->facts, shape & 0xffffffff, (shape & kWithoutMemory) == 0, weight,
               totals);
  put_all(counts.received_spilled, totals);
}

std::uint64_t signaled_requests(const QpCounts& counts) {
  std::uint64_t signaled = counts.spilled.signaled;
  for (const ShapeSlot& slot : counts.shapes) {
    const bool asks = (request_of({slot.head, slot.data}).flags & IBV_SEND_SIGNALED) != 0;
    if (asks || counts.qp->facts.signal_all) signaled += slot.count;
  }
  return signaled;
}

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
