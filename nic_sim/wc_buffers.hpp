// The write-combining buffers of a core: each line of MMIO leaves from one, and there are few. A thread that runs ahead
// of the engine's clock has begun writes whose departure nobody knows yet; they leave in order.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

// One MMIO write that announces work to the NIC: a doorbell is one line, BlueFlame the whole WQE.
struct Announcement {
  std::uint64_t batch;  // in_life
  std::uint32_t lines;
  std::uint32_t line_bytes;
};

class WcBuffers {
 public:
  explicit WcBuffers(std::uint64_t buffers) : departures_(buffers, Picos(0)) {}

  // Whether nothing waits for the link at `now`; the ring then begins anew, so that it stays in few cache lines.
  bool empty_at(Picos now) {
    if (begun_lines_ > 0 || last_departure_ > now) return false;
    next_ = 0;
    return true;
  }
  // Whether so many of the writes before have left that it is known when `lines` new ones have their buffers.
  bool known_for(std::uint64_t lines) const { return begun_lines_ + taken_by(lines) <= departures_.size(); }
  // When they have.
  Picos free_for(std::uint64_t lines) const { return departures_[within(next_ + begun_lines_ + taken_by(lines) - 1)]; }

  void begin(const Announcement& write) {
    begun_.push_back(write);
    begun_lines_ += write.lines;
  }
  // The first that was begun leaves now: line_departs() for each of its lines.
  Announcement leave() {
    const Announcement write = begun_[left_++];
    begun_lines_ -= write.lines;
    if (left_ == begun_.size()) {
      begun_.clear();
      left_ = 0;
    }
    return write;
  }
  void line_departs(Picos when) {
    departures_[next_] = last_departure_ = when;
    next_ = within(next_ + 1);
  }

 private:
  // Of a write of more lines than there are buffers the first ones leave while the others are written.
  std::uint64_t taken_by(std::uint64_t lines) const { return std::min<std::uint64_t>(lines, departures_.size()); }
  std::size_t within(std::size_t place) const {
    return place < departures_.size() ? place : place - departures_.size();
  }

  boost::container::small_vector<Announcement, 1> begun_;
  std::size_t left_ = 0;  // of those, which stay until all have
  std::uint64_t begun_lines_ = 0;
  std::size_t next_ = 0;
  Picos last_departure_{0};
  std::vector<Picos> departures_;  // of the last lines, a ring of as many as there are buffers
};

}  // namespace verbscope::sim
