// The write-combining buffers of a core: each line of MMIO drains to the link from one, and there are few. A thread
// that runs ahead of the engine's clock has begun writes whose departure nobody knows yet; they drain in order.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>

#include "common/units.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope::sim {

// One MMIO write that posts a batch of WQEs: a doorbell is one line, BlueFlame the whole WQE.
struct MmioWrite {
  std::uint64_t batch;  // with_generation
  std::uint32_t lines;
  std::uint32_t line_bytes;
};

class WcBuffers {
 public:
  explicit WcBuffers(std::uint64_t buffers) : buffers_(buffers) {}

  // Whether nothing waits for the link at `now`; the ring then begins anew, so that it stays in one cache line.
  bool empty_at(Picos now) {
    if (begun_lines_ > 0 || last_departure_ > now) return false;
    next_ = 0;
    return true;
  }
  // Whether so many of the writes before have drained that it is known when `lines` new ones have their buffers.
  bool known_for(std::uint64_t lines) const { return begun_lines_ + taken_by(lines) <= buffers_; }
  // When they have.
  Picos free_for(std::uint64_t lines) const { return departures_[within(next_ + begun_lines_ + taken_by(lines) - 1)]; }

  void begin(const MmioWrite& write) {
    begun_.push_back(write);
    begun_lines_ += write.lines;
  }
  // The write that was begun first drains to the link now: line_departs() follows for each of its lines.
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
  // The first lines of a write of more lines than there are buffers drain while the others are written.
  std::uint64_t taken_by(std::uint64_t lines) const { return std::min(lines, buffers_); }
  std::uint64_t within(std::uint64_t place) const { return place < buffers_ ? place : place - buffers_; }

  std::uint64_t buffers_;
  std::uint32_t begun_lines_ = 0;
  std::uint32_t next_ = 0;
  std::uint64_t drained_ = 0;  // of begun_, which stay until all have
  Picos last_departure_{0};
  boost::container::small_vector<MmioWrite, 1> begun_;
  std::array<Picos, HostProfile::kMostWcBuffers>
      departures_{};  // when the last lines depart, a ring of as many as there are buffers
};

}  // namespace verbscope::sim
