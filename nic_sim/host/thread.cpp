#include "nic_sim/host/thread.hpp"

#include <algorithm>

#include "nic_sim/host/partition.hpp"

namespace verbscope::sim {

// Marks the thread as running; its destructor marks it as ended, also after an exception.
struct SimThread::Running {
  explicit Running(SimThread& t) : thread(t) { thread.home_.running = &thread; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    thread.home_.running = nullptr;
    thread.home_.thread_ended();
  }
  SimThread& thread;
};

SimThread::SimThread(Partition& home, const HostProfile& host, int core, std::function<void(SimThread&)> body)
    : engine_(home.engine),
      home_(home),
      fiber_(home.engine,
             [this, body = std::move(body)] {
               const Running running(*this);
               clock_ = started_ = engine_.now();
               running_ = true;
               body(*this);
             }),
      wc_buffers_(host.wc_buffers),
      misses_(host.dram, host.outstanding_misses),
      core_(core) {}

void SimThread::sync() {
  home_.running = nullptr;
  fiber_.wait_until(clock_);
  home_.running = this;
}

void SimThread::note_empty(Pollable& queue, Picos cost) {
  if (std::find(queue.waiters.begin(), queue.waiters.end(), this) == queue.waiters.end()) queue.waiters.push_back(this);
  if (std::find(empty_queues_.begin(), empty_queues_.end(), &queue) != empty_queues_.end()) {
    empty_queues_.clear();  // a new pass: work was found after the last one
    pass_ = Picos(0);
  }
  empty_queues_.push_back(&queue);
  pass_ += cost;
}

void SimThread::look(Picos cost) {
  spend_polling(cost);
  pass_ += cost;
  sync();
  looked_ = true;
  memory_written_ = false;
}

void SimThread::end_rest(void* object, std::uint64_t) {
  SimThread& thread = *static_cast<SimThread*>(object);
  thread.alarm_ = Picos::max();
  thread.wake_at(thread.engine_.now());
}

void SimThread::relax(Picos deadline) {
  worked_ -= pass_;
  polled_ -= pass_;
  const auto shared = [](const Pollable* queue) { return queue->is_shared(); };
  if (pass_.count() > 0 && std::ranges::any_of(empty_queues_, shared)) return end_pass();
  Picos seen = Picos::max();
  for (const Pollable* queue : empty_queues_) seen = std::min(seen, queue->next_visible(*queue));
  if (looked_ && seen != Picos::max()) seen = std::min(seen, clock_ + pass_);  // one pass: memory may be written first
  home_.running = nullptr;
  if (seen == Picos::max()) {
    if (!nudged_ && !memory_written_ && deadline > clock_) {
      if (deadline < alarm_) {
        alarm_ = deadline;
        engine_.schedule(deadline, &end_rest, this);
      }
      resting_ = pass_.count() == 0;
      fell_asleep_ = clock_;
      fiber_.park();
      resting_ = false;
    }
    seen = engine_.now();
  }
  home_.running = this;
  if (pass_.count() == 0) {
    idle_until(seen);
  } else if (seen > clock_) {
    clock_ += ((seen - clock_).count() - 1) / pass_.count() * pass_;
  }
  end_pass();
}

void SimThread::end_pass() {
  nudged_ = looked_ = false;
  empty_queues_.clear();
  pass_ = Picos(0);
}

void SimThread::sleep(Picos deadline) {
  engine_.schedule(deadline, &end_sleep, this, ++sleeps_);
  fell_asleep_ = clock_;
  asleep_ = true;
  home_.running = nullptr;
  fiber_.park();
  home_.running = this;
  asleep_ = false;
  idle_until(engine_.now());
  empty_queues_.clear();
  pass_ = Picos(0);
  looked_ = false;
}

void SimThread::end_sleep(void* object, std::uint64_t sleep) {
  SimThread& thread = *static_cast<SimThread*>(object);
  if (thread.sleeps_ == sleep) thread.rouse_at(thread.engine_.now());
}

void SimThread::idle_until(Picos when) {
  if (when <= clock_) return;
  slept_ += when - clock_;
  clock_ = when;
}

Picos SimThread::busy() const {
  if (!running_) return Picos(0);
  Picos until = clock_;
  if (asleep_ || resting_) {
    until = fell_asleep_;
  } else if (!fiber_.finished()) {
    until = std::max(clock_, engine_.now());
  }
  return until - started_ - slept_;
}

}  // namespace verbscope::sim
