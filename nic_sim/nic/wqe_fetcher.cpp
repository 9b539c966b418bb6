#include "nic_sim/nic/wqe_fetcher.hpp"

#include <algorithm>

namespace verbscope::sim {

namespace {

// A unit looks this many WQEs ahead for evicted ones, and reads up to this many more behind them. Assumed.
constexpr std::uint64_t kRereadRun = 8;

// A run of work requests, packed into the count of a QpWord: low bits of the first number, and the length.
constexpr unsigned kRunBits = 5;
static_assert(2 * kRereadRun < 1u << kRunBits);
constexpr unsigned kFirstBits = QpWord::kCountBits - kRunBits;  // enough: send queues are shorter than 2^19
std::uint64_t pack_run(std::uint64_t first, std::uint64_t count) {
  return first << kRunBits | count;
}

}  // namespace

WqeFetcher::WqeFetcher(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts,
                       const SendEvents& events, UnitScheduler& scheduler, std::uint64_t seed)
    : engine_(engine),
      bus_(bus),
      profile_(profile),
      counts_(counts),
      events_(events),
      scheduler_(scheduler),
      shares_(static_cast<std::size_t>(profile.requester_units)),
      waiting_(profile.wqe_cache, Replacement::random, seed),
      sent_(profile.sent_wqe_cache, profile.sent_wqe_replacement, seed ^ 4) {}

void WqeFetcher::context_ready(SimQp& qp, std::uint64_t low_first) {
  qp.send.batch(qp.send.whole(low_first, QpWord::kCountBits)).has_context = true;
}

bool WqeFetcher::begin_next(SimQp& qp) {
  SendQueue& queue = qp.send;
  const std::uint64_t first = queue.rung;
  if (first == queue.posted || !queue.batch(first).has_context) return false;
  queue.rung += queue.batch(first).count;
  if (SendWqe& wqe = queue.at(first); wqe.by_blueflame) {
    waiting_.insert(wqe);
    batch_ready(qp, first);
  } else {
    Share& share = share_of(qp);
    share.fetches.push_back({&qp, qp.generation, first});
    fetch_more(share);
  }
  return true;
}

// Starts to read the WQEs of doorbells while the fetch-ahead share allows; at least one batch is always under way.
void WqeFetcher::fetch_more(Share& share) {
  const std::uint64_t limit = profile_.wqe_fetch_ahead.value;
  while (!share.fetches.empty()) {
    const auto [qp, generation, first] = share.fetches.front();
    const std::uint64_t bytes = qp->send.batch(first).bytes;
    const bool wanted = qp->state == IBV_QPS_RTS && qp->generation == generation;
    if (wanted && share.bytes > 0 && share.bytes + bytes > limit) return;
    share.fetches.pop_front();
    if (wanted) fetch(*qp, first);
  }
}

// Adjacent WQEs need one DMA read, two if they wrap at the end of the ring. WQEs that do not fill their slots (mlx4)
// need a read each: the gaps are not read.
void WqeFetcher::fetch(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  Batch& batch = queue.batch(first);
  share_of(qp).requested_at = engine_.now();
  const std::uint64_t word = QpWord::make(qp, first);
  std::uint64_t begin = queue.at(first).ring_offset, bytes = 0;
  const auto read = [this, &batch, word](std::uint64_t from, std::uint64_t length) {
    ++batch.reads_left;
    bus_.dma_read(from, length, events_.wqes_fetched, events_.requester, word);
  };
  batch.reads_left = 0;
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    SendWqe& wqe = queue.at(first + i);
    wqe.ahead = true;
    share_of(qp).bytes += wqe.bytes;
    if (wqe.ring_offset != begin + bytes) {
      read(begin, bytes);
      begin = wqe.ring_offset;
      bytes = 0;
    }
    bytes += wqe.bytes;
    if (begin + bytes > queue.ring_bytes) {
      read(begin, queue.ring_bytes - begin);
      bytes -= queue.ring_bytes - begin;
      begin = 0;
    }
  }
  if (bytes > 0) read(begin, bytes);
}

void WqeFetcher::fetched(SimQp& qp, std::uint64_t low_first) {
  const std::uint64_t first = qp.send.whole(low_first, QpWord::kCountBits);
  Batch& batch = qp.send.batch(first);
  if (--batch.reads_left > 0) return;
  if (const Share& share = share_of(qp); !share.fetches.empty()) scheduler_.note_held_up(qp, share.requested_at);
  for (std::uint64_t i = 0; i < batch.count; ++i) waiting_.insert(qp.send.at(first + i));
  batch_ready(qp, first);
}

// WQEs become available in the order of posting, whichever fetch completes first.
void WqeFetcher::batch_ready(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  queue.batch(first).at_nic = true;
  while (queue.arrived < queue.posted && queue.batch(queue.arrived).at_nic) {
    queue.arrived += queue.batch(queue.arrived).count;
  }
  scheduler_.activate(qp);
}

bool WqeFetcher::next_ready(SimQp& qp) {
  const SendWqe& wanted = qp.send.at(qp.send.next);
  if (qp.requester.packet_of_next > 0) return true;
  const bool here = wanted.staged || wanted.place.cached();
  if (!here || waiting_.was_full()) reread_ahead(qp);
  if (wanted.place.cached()) ++counts_.wqe_cache_hits;
  qp.requester.waiting = !here;
  return here;
}

// If one of the next few WQEs was evicted, reads it and the evicted ones behind it, with one DMA read per adjacent run.
void WqeFetcher::reread_ahead(SimQp& qp) {
  SendQueue& queue = qp.send;
  std::uint64_t first = queue.next;
  const std::uint64_t near = std::min(queue.next + kRereadRun, queue.arrived);
  while (first < near && !queue.at(first).missing()) ++first;
  if (first == near) return;
  queue.at(first).led_reread = true;
  for (const std::uint64_t end = std::min(queue.next + 2 * kRereadRun, queue.arrived); first < end; ++first) {
    if (queue.at(first).missing()) first = reread(qp, first, end);
  }
}

// Reads again the evicted WQEs from `first` on, before `end`, as far as they are adjacent. Returns the last one.
std::uint64_t WqeFetcher::reread(SimQp& qp, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t begin = qp.send.at(first).ring_offset;
  std::uint64_t bytes = 0, next = first;
  for (; next < end; ++next) {
    SendWqe& wqe = qp.send.at(next);
    if (!wqe.missing() || wqe.ring_offset != begin + bytes) break;
    wqe.coming = true;
    bytes += wqe.bytes;
  }
  counts_.wqe_cache_misses += next - first;
  counts_.wqe_cache_reread_lines += bytes / kCacheLine.value;
  bus_.dma_read(begin, bytes, events_.wqes_reread, events_.requester, QpWord::make(qp, pack_run(first, next - first)));
  return next - 1;
}

void WqeFetcher::reread_done(SimQp& qp, std::uint32_t run) {
  const std::uint64_t first = qp.send.whole(run >> kRunBits, kFirstBits);
  for (std::uint64_t i = first; i < first + (run & ((1u << kRunBits) - 1)); ++i) {
    SendWqe& wqe = qp.send.at(i);
    if (wqe.index != i) continue;  // it was confirmed meanwhile, and its place was reused
    wqe.coming = false;
    wqe.staged = true;
  }
  qp.requester.waiting = false;
  scheduler_.activate(qp);
}

bool WqeFetcher::ready_for_response(SimQp& qp, const SendWqe& wqe) {
  if (wqe.staged) return true;
  if (wqe.place.cached()) {
    ++counts_.wqe_cache_hits;
    return true;
  }
  ++counts_.wqe_cache_misses;
  counts_.wqe_cache_reread_lines += wqe.bytes / kCacheLine.value;
  bus_.dma_read(wqe.ring_offset, wqe.bytes, events_.wqe_read_for_answer, events_.requester,
                QpWord::make(qp, wqe.index));
  return false;
}

void WqeFetcher::unit_starts(const SimQp& qp, SendWqe& wqe) {
  if (!wqe.ahead) return;
  wqe.ahead = false;
  Share& share = share_of(qp);
  share.bytes -= wqe.bytes;
  fetch_more(share);
}

void WqeFetcher::return_share(SimQp& qp) {
  Share& share = share_of(qp);
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) {
    SendWqe& wqe = qp.send.at(i);
    if (wqe.ahead) share.bytes -= wqe.bytes;
    wqe.ahead = false;
  }
  fetch_more(share);
}

void WqeFetcher::mark_sent(SendWqe& wqe) {
  release(wqe);
  wqe.sent = true;
  if (wqe.wants_response()) sent_.insert(wqe);
}

void WqeFetcher::release(SendWqe& wqe) {
  (wqe.sent ? sent_ : waiting_).drop(wqe);
  wqe.staged = false;
}

void WqeFetcher::forget(SimQp& qp) {
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) release(qp.send.at(i));
  return_share(qp);
}

}  // namespace verbscope::sim
