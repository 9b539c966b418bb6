// What an endpoint spends its time on, and how full its queues are over time. Data path.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/units.hpp"

namespace verbscope {

// Kinds of work for requests. `handler`: of handlers and continuations. `control`: congestion control, time stamps
// included. `other`: polls that find nothing, and whatever happens outside the endpoint.
enum class RpcWork : std::uint8_t { receive, send, handler, control, other };

// Adds up time by kind of work, by a clock that is read whenever the work changes. Until start() it does nothing.
class WorkTimes {
 public:
  using Clock = Picos (*)(const void* node);
  using Times = std::array<Picos, 4>;  // by RpcWork, without `other`

  // `clock(node)` is the time now. `simulated`: the clock stands still while work is declared, so charge() adds the
  // declared time. The node must outlive this object.
  void start(Clock clock, const void* node, bool simulated) {
    clock_ = clock;
    node_ = node;
    simulated_ = simulated;
    since_ = clock(node);
  }
  bool measured() const { return clock_ != nullptr; }

  // The work is `work` from now on. Returns what it was.
  [[gnu::always_inline]] RpcWork turn(RpcWork work) {
    if (clock_ != nullptr) [[unlikely]]
      add_since();
    return std::exchange(work_, work);
  }
  // Declares time for the present work.
  void charge(Picos time) {
    if (simulated_) add(time);
  }
  // The time since the last turn() belongs to nothing, or was declared before.
  void skip() {
    if (clock_ != nullptr) since_ = clock_(node_);
  }

  const Times& times() const { return times_; }
  void clear() { times_ = {}; }
  // Forgets the time since times() had this value.
  void restore(const Times& times) { times_ = times; }

 private:
  [[gnu::noinline]] void add_since() {
    const Picos now = clock_(node_);
    add(now - since_);
    since_ = now;
  }
  void add(Picos time) {
    if (work_ != RpcWork::other) times_[static_cast<std::size_t>(work_)] += time;
  }

  Times times_{};
  Clock clock_ = nullptr;
  const void* node_ = nullptr;
  bool simulated_ = false;
  Picos since_{0};
  RpcWork work_ = RpcWork::other;
};

// Work of one kind until the end of a block.
class WorkBlock {
 public:
  [[gnu::always_inline]] WorkBlock(WorkTimes& times, RpcWork work) : times_(times), before_(times.turn(work)) {}
  [[gnu::always_inline]] ~WorkBlock() { times_.turn(before_); }
  WorkBlock(const WorkBlock&) = delete;
  WorkBlock& operator=(const WorkBlock&) = delete;

 private:
  WorkTimes& times_;
  RpcWork before_;
};

// The length of a queue over time.
class Occupancy {
 public:
  void set(std::size_t length, Picos now) {
    advance(now);
    length_ = length;
    peak_ = std::max(peak_, length);
  }
  // Begins anew, with the length that it has.
  void clear(Picos now) {
    begin_ = since_ = now;
    area_ = 0;
    busy_ = Picos(0);
    peak_ = length_;
  }

  std::size_t length() const { return length_; }
  std::size_t peak() const { return peak_; }
  // Mean over time, and the share of time in which it was not empty, until `now`.
  double mean(Picos now) const {
    return share(area_ + static_cast<double>((now - since_).count()) * static_cast<double>(length_), now);
  }
  double busy(Picos now) const {
    return share(static_cast<double>((busy_ + (length_ > 0 ? now - since_ : Picos(0))).count()), now);
  }

 private:
  void advance(Picos now) {
    area_ += static_cast<double>((now - since_).count()) * static_cast<double>(length_);
    if (length_ > 0) busy_ += now - since_;
    since_ = now;
  }
  double share(double sum, Picos now) const {
    return now > begin_ ? sum / static_cast<double>((now - begin_).count()) : 0;
  }

  std::size_t length_ = 0, peak_ = 0;
  Picos begin_{0}, since_{0};
  double area_ = 0;  // packets x ps
  Picos busy_{0};
};

}  // namespace verbscope
