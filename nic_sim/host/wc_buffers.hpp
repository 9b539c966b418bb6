// The write-combining buffers of a core. Each line of MMIO occupies one until it drains to the link, and there are few.
// A thread that runs ahead of the engine begins writes whose departure times are not known yet; they drain in order.
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
  std::array<Picos, HostProfile::kMostWcBuffers>
      departures_{};  // departure times of the last lines; a ring of buffers_ entries
};

}  // namespace verbscope::sim
