// The threads that wait for what happens outside of the simulation: data in a socket, the end of a child. They look by
// themselves whether it has come; here is told when they look. A look sees all that has been written until then, so
// that they also ask here whether it may be seen yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

#include "nic_sim/host/thread.hpp"

namespace verbscope::simulate {

class Outside {
  struct Waiter {
    sim::SimThread* thread;
    bool for_room;
    Picos look = Picos::max();  // when it looks again
  };

 public:
  Outside() = default;
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

  // While it lives, `thread` waits. `for_room`: it waits until others have read.
  class Wait {
   public:
    Wait(Outside& outside, sim::SimThread& thread, bool for_room)
        : all_(outside.waiting_), place_(all_.insert(all_.end(), {&thread, for_room})) {}
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    ~Wait() { all_.erase(place_); }
    // When the thread looks again.
    Picos look() const { return place_->look; }

   private:
    std::list<Waiter>& all_;
    std::list<Waiter>::iterator place_;
  };

  // At `when` it can be seen that something has changed.
  void notify(Picos when) {
    for (Waiter& waiter : waiting_) look_at(waiter, when);
  }
  // What has changed can be seen at `when` by those who know its key, which is not 0.
  void show(std::uint64_t key, Picos now, Picos when) {
    constexpr std::size_t kManyKeys = 256;
    if (shown_.size() >= kManyKeys) std::erase_if(shown_, [now](const auto& each) { return each.second <= now; });
    shown_[key] = when;
    all_shown_ = std::max(all_shown_, when);
  }
  // When the last change with this key can be seen; `key` 0: with any.
  Picos seen_from(std::uint64_t key) const {
    if (key == 0) return all_shown_;
    const auto found = shown_.find(key);
    return found == shown_.end() ? Picos(0) : found->second;
  }
  // Something may have changed without a notice: it can be seen at `when`. True if anyone looks. Those who know of a
  // change look at its time instead, since it must not be seen earlier.
  bool suspect(Picos when) {
    bool any = false;
    for (Waiter& waiter : waiting_) {
      if (waiter.look != Picos::max()) continue;
      look_at(waiter, when);
      any = true;
    }
    return any;
  }
  // Somebody waits until others have read.
  bool wants_room() const { return std::ranges::any_of(waiting_, &Waiter::for_room); }

 private:
  static void look_at(Waiter& waiter, Picos when) {
    waiter.look = std::min(waiter.look, when);
    waiter.thread->end_sleep_at(when);
  }

  std::list<Waiter> waiting_;
  std::unordered_map<std::uint64_t, Picos> shown_;
  Picos all_shown_{0};
};

}  // namespace verbscope::simulate
