// Resources of a simulated core that limit its accesses in flight: write-combining buffers and cache misses.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>

#include "common/units.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

// One MMIO write that posts a batch of WQEs: one line for a doorbell, the whole WQE for BlueFlame.
struct MmioWrite {
  std::uint64_t batch;  // with_generation
  std::uint32_t lines;
  std::uint32_t line_bytes;
};

// The write-combining buffers of a core. Each line of MMIO occupies one until it drains to the link, and there are few.
// A thread that runs ahead of the engine begins writes whose departure times are not known yet; they drain in order.
class WcBuffers {
 public:
  explicit WcBuffers(std::uint64_t buffers) : buffers_(buffers) {}

  // True if no write waits for the link at `now`. The ring then restarts, so that it stays in one cache line.
  bool empty_at(Picos now) {
    if (begun_lines_ > 0 || last_departure_ > now) return false;
    next_ = 0;
    return true;
  }
  // True if enough earlier writes have drained that free_for(lines) is known.
  bool known_for(std::uint64_t lines) const { return begun_lines_ + taken_by(lines) <= buffers_; }
  // The time at which `lines` new lines have buffers.
  Picos free_for(std::uint64_t lines) const { return departures_[within(next_ + begun_lines_ + taken_by(lines) - 1)]; }

  void begin(const MmioWrite& write) {
    begun_.push_back(write);
    begun_lines_ += write.lines;
  }
  // Removes the oldest write that has begun. line_departs() must follow for each of its lines.
  MmioWrite drain_first() {
    const MmioWrite write = begun_[drained_++];
    begun_lines_ -= write.lines;
    if (drained_ == begun_.size()) {
      begun_.clear();
      drained_ = 0;
    }
    return write;
  }
  void line_departs(Picos when) {
    departures_[next_] = last_departure_ = when;
    next_ = static_cast<std::uint32_t>(within(next_ + 1));
  }

 private:
  // If a write has more lines than there are buffers, its first lines drain while the others are written.
  std::uint64_t taken_by(std::uint64_t lines) const { return std::min(lines, buffers_); }
  std::uint64_t within(std::uint64_t place) const { return place < buffers_ ? place : place - buffers_; }

  std::uint64_t buffers_;
  std::uint32_t begun_lines_ = 0;
  std::uint32_t next_ = 0;
  std::uint64_t drained_ = 0;  // of begun_, which is cleared when all have drained
  Picos last_departure_{0};
  boost::container::small_vector<MmioWrite, 1> begun_;
  std::array<Picos, HostProfile::kMaxWcBuffers>
      departures_{};  // departure times of the last lines; a ring of buffers_ entries
};

// The cache misses of a core. A miss takes the latency of DRAM. Only a limited number is outstanding at once; one more
// begins when the first of them ends. Memory that is not declared here is cached and costs nothing extra.
class MemoryMisses {
 public:
  // Prefetched lines that were not loaded yet. If there are more, the oldest is forgotten, as if evicted from the L1
  // cache, which has this many lines (32 KB).
  static constexpr std::size_t kMaxPrefetched = 512;

  MemoryMisses(Picos latency, std::uint64_t limit) : latency_(latency), limit_(limit) {}

  // Prefetches the line of `place` at `now`; no effect if it is prefetched already. Returns the time at which the
  // thread continues: it stalls while the maximum of misses is outstanding.
  Picos prefetch(const void* place, Picos now) {
    const std::uintptr_t line = line_of(place);
    if (find(line) != nullptr) return now;
    const Picos start = begin(now);
    if (prefetched_.size() == kMaxPrefetched) prefetched_.erase(prefetched_.begin());
    prefetched_.push_back({line, start + latency_});
    return start;
  }
  // Loads the line, and forgets its prefetch. Returns the time at which the data are available: when the prefetch ends,
  // or after a whole latency.
  Picos load(const void* place, Picos now) {
    Miss* const miss = find(line_of(place));
    if (miss == nullptr) return begin(now) + latency_;
    const Picos end = miss->end;
    prefetched_.erase(prefetched_.begin() + (miss - prefetched_.data()));
    return end;
  }

 private:
  struct Miss {
    std::uintptr_t line;
    Picos end;
  };
  static std::uintptr_t line_of(const void* place) {
    return reinterpret_cast<std::uintptr_t>(place) / kCacheLine.value;
  }
  Miss* find(std::uintptr_t line) {
    const auto found = std::ranges::find(prefetched_, line, &Miss::line);
    return found == prefetched_.end() ? nullptr : &*found;
  }
  // Adds a miss requested at `now`. Returns the time at which it begins.
  Picos begin(Picos now) {
    const auto ended = std::ranges::find_if(under_way_, [now](Picos end) { return end > now; });
    under_way_.erase(under_way_.begin(), ended);
    const Picos start = under_way_.size() < limit_ ? now : under_way_[under_way_.size() - limit_];
    under_way_.push_back(start + latency_);
    return start;
  }

  Picos latency_;
  std::uint64_t limit_;
  boost::container::small_vector<Miss, 4> prefetched_;  // in order of prefetch
  boost::container::small_vector<Picos, 4> under_way_;  // end times, ascending
};

}  // namespace verbscope::sim
