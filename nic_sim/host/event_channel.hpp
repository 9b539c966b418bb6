// Events that programs of a simulated node wait for: interrupts append them, and threads sleep until one arrives.
// docs/simulator.md has the sequence.
#pragma once

#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "nic_sim/host/thread.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// The events of a completion channel, or the asynchronous events of a context.
template <class What>
class EventQueue {
 public:
  // `wakeup`: HostProfile::event_wakeup. `pollable`: the queue has a file descriptor.
  EventQueue(Engine& engine, Picos wakeup, bool pollable)
      : engine_(engine), wakeup_(wakeup), fd_(pollable ? eventfd(0, EFD_CLOEXEC) : -1) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() { close(); }

  // Readable while an event has arrived and was not consumed; -1: there is none.
  int fd() const { return fd_; }
  // Shows events by this eventfd of a program from now on, which the queue owns. `on_shown` is called when it becomes
  // readable, with the time at which a thread that sleeps until then runs.
  void show_by(int fd, std::function<void(Picos)> on_shown) {
    close();
    fd_ = fd;
    on_shown_ = std::move(on_shown);
  }
  // Events that arrive later signal nothing.
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // Schedules the interrupt of an event at `at`. Events arrive in the order of the calls.
  void arrive(const What& what, Picos at) {
    pending_.push_back({what, at});
    for (SimThread* sleeper : sleepers_) sleeper->end_sleep_at(at);
    if (fd_ >= 0) engine_.schedule(at, &signal, this);
  }

  // Consumes the first event if it has arrived by `now`.
  std::optional<What> take(Picos now) {
    if (!has_arrived(now)) return std::nullopt;
    const What what = pending_.front().what;
    pending_.pop_front();
    show(now);
    return what;
  }

  // `thread` sleeps until an event has arrived, and consumes it. None after `deadline`, or if `interrupted` is true
  // after its sleep was ended.
  std::optional<What> await(SimThread& thread, Picos deadline, const bool& interrupted = kNotInterrupted) {
    bool slept = false;
    thread.sync();
    while (!has_arrived(thread.clock())) {
      if (thread.clock() >= deadline || interrupted) return std::nullopt;
      sleepers_.push_back(&thread);
      thread.sleep(pending_.empty() ? deadline : std::min(deadline, pending_.front().at));
      std::erase(sleepers_, &thread);
      slept = true;
    }
    const std::optional<What> what = take(thread.clock());
    if (slept) thread.skip_to(thread.clock() + wakeup_);
    return what;
  }

  // Drops the events of an object that is destroyed.
  template <class Concerns>
  void forget(Concerns&& concerns) {
    std::erase_if(pending_, [&](const Event& event) { return concerns(event.what); });
    show(engine_.now());
  }

 private:
  static constexpr bool kNotInterrupted = false;
  struct Event {
    What what;
    Picos at;
  };

  bool has_arrived(Picos now) const { return !pending_.empty() && pending_.front().at <= now; }
  static void signal(void* queue, std::uint64_t) {
    auto& self = *static_cast<EventQueue*>(queue);
    self.show(self.engine_.now());
  }
  // Makes the file descriptor readable or not.
  void show(Picos now) {
    if (fd_ < 0 || has_arrived(now) == readable_) return;
    readable_ = !readable_;
    eventfd_t value = 1;
    if (readable_) {
      eventfd_write(fd_, value);
      if (on_shown_) on_shown_(now + wakeup_);
    } else {
      eventfd_read(fd_, &value);
    }
  }

  Engine& engine_;
  Picos wakeup_;
  int fd_;
  bool readable_ = false;
  std::function<void(Picos)> on_shown_;
  std::deque<Event> pending_;         // in order; not yet consumed
  std::vector<SimThread*> sleepers_;  // in await()
};

struct SimChannel : ibv_comp_channel {
  SimChannel(Engine& engine, Picos wakeup, bool pollable) : ibv_comp_channel{}, events(engine, wakeup, pollable) {
    fd = events.fd();
  }

  EventQueue<ibv_cq*> events;
};

}  // namespace verbscope::sim
