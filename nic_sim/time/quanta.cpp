#include "nic_sim/time/quanta.hpp"

#include <algorithm>
#include <ranges>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/awaited.hpp"
#include "common/error.hpp"

namespace verbscope::sim {
namespace {

// All threads start, or none does.
enum class Start { not_yet, now, never };

}  // namespace

void Quanta::at(Picos when, std::function<void()> action) {
  const Picos time = std::max(when, now());
  if (in_quantum_) {
    if (processes_.size() > 1)
      fail("a simulated thread scheduled an action in a cluster of {} partitions; it must have one partition",
           processes_.size());
    Engine& engine = processes_.front()->engine;
    engine.set_horizon(std::min(engine.horizon(), time.count()));
  }
  actions_.emplace(time, std::move(action));
}

Picos Quanta::now() const {
  Picos latest{0};
  for (const LogicalProcess* process : processes_) latest = std::max(latest, process->engine.now());
  return latest;
}

void Quanta::collect(std::size_t process) {
  mailbox_.deliver(process, processes_[process]->engine);
  collect_(process);
}

void Quanta::run_quantum(std::size_t process) {
  LogicalProcess& own = *processes_[process];
  try {
    // If events take no time, they may trigger each other forever.
    constexpr std::uint64_t kMaxAtOnce = 1 << 24;
    std::uint64_t events = 0;
    do {
      const Picos before = own.engine.now();
      events = own.engine.run(kMaxAtOnce);
      if (events == kMaxAtOnce && own.engine.now() == before) {
        fail("simulated time does not advance from {:.0f} ns: events take no time; check for times of 0 in the profile",
             static_cast<double>(before.count()) / 1000);
      }
    } while (events == kMaxAtOnce);
  } catch (...) {
    own.error = std::current_exception();
  }
}

std::int64_t Quanta::next_time() {
  std::int64_t next = Engine::kNever;
  for (LogicalProcess* process : processes_) next = std::min(next, process->engine.next_time());
  return next;
}

bool Quanta::all_ended() const {
  return std::ranges::all_of(processes_, [](const LogicalProcess* p) { return p->unfinished_threads == 0; });
}

void Quanta::run_next_action() {
  const auto action = actions_.extract(actions_.begin());
  for (LogicalProcess* process : processes_) process->engine.advance_to(action.key());
  action.mapped()();
  for (std::size_t i = 0; i < processes_.size(); ++i) collect(i);
}

bool Quanta::begin_next() {
  for (const LogicalProcess* process : processes_) {
    if (process->error) std::rethrow_exception(process->error);
  }
  if (outside_) outside_(false);
  if (all_ended() && !settling_until_) return false;
  std::int64_t next = next_time();
  if (settling_until_ && next >= settling_until_->count()) return false;
  for (; !actions_.empty() && actions_.begin()->first.count() <= next; next = next_time()) run_next_action();
  while (next == Engine::kNever && outside_ && outside_(true)) next = next_time();
  if (all_ended() && !settling_until_) return false;  // outside, the last one has ended
  if (next == Engine::kNever) {
    fail("simulation at {:.3f} us: all threads wait, and no event is left", to_seconds(now()) * 1e6);
  }
  std::int64_t horizon = next + longest_.count();
  if (!actions_.empty()) horizon = std::min(horizon, actions_.begin()->first.count());
  for (LogicalProcess* process : processes_) process->engine.set_horizon(horizon);
  return true;
}

void Quanta::begin_quantum() {
  in_quantum_ = false;
  try {
    in_quantum_ = begin_next();
  } catch (...) {
    error_ = std::current_exception();
  }
}

// Runs the quanta of the thread's share: every threads_-th process.
void Quanta::run_share(std::size_t thread, Barrier& barrier) {
  for (;;) {
    for (std::size_t i = thread; i < processes_.size(); i += threads_) collect(i);
    barrier.arrive_and_wait([this] { begin_quantum(); });
    if (!in_quantum_) return;
    for (std::size_t i = thread; i < processes_.size(); i += threads_) run_quantum(i);
    barrier.arrive_and_wait([] {});
  }
}

void Quanta::settle(Picos limit) {
  settling_until_ = now() + limit;
  run();
  settling_until_.reset();
}

void Quanta::run() {
  Barrier barrier(static_cast<std::uint32_t>(threads_));
  Awaited<Start> start(Start::not_yet);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < threads_; ++i) {
        others.emplace_back([&, i] {
          start.wait(Start::not_yet);
          if (start.load() == Start::now) run_share(i, barrier);
        });
      }
    } catch (const std::system_error& error) {
      start = Start::never;
      fail("cannot start simulation thread {} of {}: {}; use fewer", others.size() + 2, threads_, error.what());
    }
    start = Start::now;
    run_share(0, barrier);
  }
  for (LogicalProcess* process : processes_) process->error = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace verbscope::sim
