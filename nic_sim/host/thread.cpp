#include "nic_sim/host/thread.hpp"

#include <algorithm>

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

SimThread::SimThread(Partition& home, const HostProfile& host, std::function<void(SimThread&)> body)
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
      misses_(host.dram, host.outstanding_misses) {}

void SimThread::end() {
  if (!running_ && !fiber_.finished()) home_.thread_ended();  // its body does not begin
  fiber_.end();
}

void SimThread::sync() {
  home_.running = nullptr;
  do {
    fiber_.wait_until(clock_);
  } while (engine_.now() < clock_);  // hold()
  home_.running = this;
}

void SimThread::note_empty(Pollable& queue, Picos cost) {
  if (std::find(queue.waiters.begin(), queue.waiters.end(), this) == queue.waiters.end()) queue.waiters.push_back(this);
  if (std::find(empty_queues_.begin(), empty_queues_.end(), &queue) != empty_queues_.end()) {
    empty_queues_.clear();  // a new pass: work was found after the last one
    pass_ = Picos(0);
  }
  empty_queues_.push_back(&queue);
  pass_ += scaled(cost);
}

void SimThread::pass_over_memory(Picos cost) {
  spend_polling(cost);
  pass_ += scaled(cost);
  sync();
  memory_polled_ = true;
}

void SimThread::poll_memory(Picos cost) {
  pass_over_memory(cost);
  look_at_memory();
}

void SimThread::await_memory(Picos cost) {
  pass_over_memory(cost);
  idle();
}

void SimThread::end_idle(void* object, std::uint64_t) {
  SimThread& thread = *static_cast<SimThread*>(object);
  thread.idle_end_ = Picos::max();
  thread.wake_at(thread.engine_.now());
}

void SimThread::idle(Picos deadline) {
  work_time_ -= pass_;
  polling_time_ -= pass_;
  const auto shared = [](const Pollable* queue) { return queue->is_shared(); };
  if (pass_.count() > 0 && std::ranges::any_of(empty_queues_, shared)) return end_pass();
  Picos seen = Picos::max();
  for (const Pollable* queue : empty_queues_) seen = std::min(seen, queue->next_visible(*queue));
  if (memory_polled_ && seen != Picos::max())
    seen = std::min(seen, clock_ + pass_);  // one pass: memory may be written first
  home_.running = nullptr;
  if (seen == Picos::max()) {
    if (!recheck_ && !memory_written_ && deadline > clock_) {
      if (deadline < idle_end_) {
        idle_end_ = deadline;
        engine_.schedule(deadline, &end_idle, this);
      }
      core_idle_ = pass_.count() == 0;
      fell_asleep_ = clock_;
      fiber_.park();
      core_idle_ = false;
    }
    seen = engine_.now();
  }
  home_.running = this;
  if (pass_.count() == 0) {
    skip_to(seen);
  } else if (seen > clock_) {
    clock_ += ((seen - clock_).count() - 1) / pass_.count() * pass_;
  }
  end_pass();
}

void SimThread::end_pass() {
  recheck_ = memory_polled_ = false;
  empty_queues_.clear();
  pass_ = Picos(0);
}

void SimThread::sleep(Picos deadline) {
  ++sleeps_;
  if (deadline != Picos::max()) engine_.schedule(deadline, &end_sleep, this, sleeps_);
  fell_asleep_ = clock_;
  asleep_ = true;
  home_.running = nullptr;
  fiber_.park();
  home_.running = this;
  asleep_ = false;
  skip_to(engine_.now());
  empty_queues_.clear();
  pass_ = Picos(0);
  memory_polled_ = false;
}

void SimThread::end_sleep(void* object, std::uint64_t sleep) {
  SimThread& thread = *static_cast<SimThread*>(object);
  if (thread.sleeps_ == sleep) thread.end_sleep_at(thread.engine_.now());
}

void SimThread::skip_to(Picos when) {
  if (when <= clock_) return;
  idle_time_ += when - clock_;
  clock_ = when;
}

Picos SimThread::busy() const {
  if (!running_) return Picos(0);
  Picos until = clock_;
  if (asleep_ || core_idle_) {
    until = fell_asleep_;
  } else if (!fiber_.finished()) {
    until = std::max(clock_, engine_.now());
  }
  return until - started_ - idle_time_;
}

}  // namespace verbscope::sim
