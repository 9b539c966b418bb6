#include "simulate/server/program_thread.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace verbscope::simulate {
namespace {

// After it has written, a program may wait or end without a notice that it has: libc's own files, such as stdout.
constexpr Picos kUnnoticed{1'000'000};

// Assumed: from the end of a process until the kernel has closed what it had open. What it has sent goes on meanwhile.
constexpr Picos kEndOfProcess{100'000'000};

struct Runs {
  Runs(bool& done, int& threads) : ended(done), count(threads) { ++count; }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  ~Runs() {
    ended = true;
    --count;
  }
  bool& ended;
  int& count;
};

// It does not keep the simulator's core from others while it works beside them.
struct Elsewhere {
  Elsewhere(const Channel& channel, std::int32_t own_core) : thread(channel.thread), core(own_core) {
    if (core >= 0) bind_to_core(thread, -1);
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  ~Elsewhere() {
    if (core >= 0) bind_to_core(thread, core);
  }
  std::int32_t thread, core;
};

struct Watches {
  Watches(std::vector<ProgramThread*>& all, ProgramThread& one) : watchers(all), watcher(&one) { all.push_back(&one); }
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;
  ~Watches() { std::erase(watchers, watcher); }
  std::vector<ProgramThread*>& watchers;
  ProgramThread* watcher;
};

}  // namespace

void ProgramThread::run(SimNode& node, Picos start) {
  if (ended_) return;
  const Runs runs(ended_, process_.threads);
  thread_ = &node.thread();
  node.watch(nullptr, ~std::size_t{0});  // which memory the program watches is not known
  while (node.now() < start) sleep(node, start, Where::here);
  while (answer(node)) {
    if (!next_request(node)) return tell_end(node);
  }
}

void ProgramThread::tell_end(const SimNode& node) {
  if (!process_.ends()) return;
  node.thread().sync();
  system_.tell_parent(process_.id());
  system_.bury_at(process_.id(), node.now() + kEndOfProcess);
  outside_.notify(node.now() + kEndOfProcess);
}

void ProgramThread::sleep(SimNode& node, Picos until, Where where) {
  node.thread().sync();
  if (interrupted_ || node.now() >= until) return;
  where_ = where;
  node.thread().sleep(until);
  where_ = Where::here;
}

bool ProgramThread::returns() {
  if (channel_.turn.load(std::memory_order_acquire) != Turn::simulator) return false;
  if (where_ == Where::silent) {
    thread_->recheck();
  } else if (where_ == Where::blocked) {
    thread_->end_sleep_at(Picos(0));
  } else if (channel_.interrupted.exchange(0) != 0) {
    interrupt();
  } else {
    return false;
  }
  return true;
}

void ProgramThread::interrupt() {
  interrupted_ = true;
  thread_->end_sleep_at(Picos(0));
  thread_->recheck();
}

void ProgramThread::send(const Signal& signal) {
  if (where_ == Where::silent || where_ == Where::blocked) {
    if (!signal.arrived) queue_signal(channel_, signal);
    return;
  }
  signals_.push_back(signal);
  if (!blocks(signal.number) || where_ == Where::signals) interrupt();
}

void ProgramThread::let_spin() {
  lets_spin_ = true;
  thread_->recheck();
}

void ProgramThread::end() {
  if (!ended_ && thread_ != nullptr) thread_->end();
  ended_ = true;
}

// Its program may have written to memory since the last request, unless it is still in the same loop.
void ProgramThread::tell_watchers() {
  const bool spins = static_cast<Operation>(channel_.operation) == Operation::await_memory;
  const std::uint64_t loop = spins ? Reader(channel_.message).get<std::uint64_t>() : 0;
  if (std::exchange(loop_, loop) == loop && spins) return;
  for (ProgramThread* const each : system_.watchers()) {
    if (each != this && each->process_.node() == process_.node()) each->thread_->recheck();
  }
}

bool ProgramThread::next_request(SimNode& node) {
  for (;;) {
    switch (station_.watch(channel_, may_be_silent())) {
      case Conduct::asks:
        tell_watchers();
        return true;
      case Conduct::gone:
        return false;
      case Conduct::silent: {
        ++silences_.silent;
        channel_.late = 1;
        where_ = Where::silent;
        const Elsewhere elsewhere(channel_, station_.core());
        node.await_memory();
        where_ = Where::here;
        break;
      }
      case Conduct::blocked:
        ++silences_.blocked;
        channel_.late = 1;
        sleep(node, Picos::max(), Where::blocked);
        break;
    }
  }
}

bool ProgramThread::answer(SimNode& node) {
  const auto operation = static_cast<Operation>(channel_.operation);
  node.thread().spend(Picos(channel_.spent_ps.load(std::memory_order_relaxed)));
  if (operation == Operation::end) {
    Reader ending(channel_.message);
    const auto address = ending.get<std::uint64_t>();
    node.thread().sync();
    process_.waits.wake(address, UINT32_MAX, node.now());
    channel_.turn.store(Turn::nobody, std::memory_order_release);
    return false;
  }
  const auto room = std::span(channel_.message);
  // Arguments are read before results are written over them, but for lists of work requests, which have short results.
  Reader in(room.first(std::min<std::size_t>(channel_.bytes, room.size())));
  std::vector<std::byte>& results = requests_.results;
  results.resize(kMessageBytes);
  Writer out(results);
  int error = execute_own(operation, node, in, out);
  if (error == ENOSYS) error = execute(operation, {process_, node, outside_, empty_, requests_, interrupted_, in, out});
  std::memcpy(room.data(), &error, sizeof error);
  std::memcpy(room.data() + sizeof error, results.data(), out.size());
  channel_.bytes = static_cast<std::uint32_t>(sizeof error) + out.size();
  channel_.now_ps = node.now().count();
  channel_.late = 0;
  channel_.loops = loops();
  hand_over_signals();
  station_.give(channel_);
  return true;
}

Loops ProgramThread::loops() {
  if (std::exchange(lets_spin_, false)) return Loops::let_spin;
  return system_.alone(*this) ? Loops::found : Loops::identified;
}

// Others can write to its memory.
bool ProgramThread::may_be_silent() const {
  return process_.has_regions() || process_.threads > 1;
}

// Operations that concern time and the operating system. ENOSYS: it is none.
int ProgramThread::execute_own(Operation operation, SimNode& node, Reader& in, Writer& out) {
  switch (operation) {
    case Operation::begin:
      if (std::exchange(begun_, true)) process_.destroy_objects();  // by exec(2)
      out.put(process_.number());
      return 0;
    case Operation::exec:
      return 0;
    case Operation::spend:
      node.thread().sync();
      return 0;
    case Operation::await_memory:
      return await_memory(node);
    case Operation::sleep_until: {
      const Picos until(in.get<std::int64_t>());
      node.thread().sync();
      outside_.suspect(node.now() + kUnnoticed);
      sleep(node, until, Where::asleep);
      return node.now() >= until ? 0 : EINTR;
    }
    case Operation::look_outside:
      node.thread().sync();
      tell_of_outside(node, out);
      return 0;
    case Operation::await_sight: {
      const Picos from = outside_.seen_from(in.get<std::uint64_t>());
      while (node.now() < from && !interrupted_) sleep(node, from, Where::asleep);
      return 0;
    }
    case Operation::wait_outside:
      return wait_outside(node, in, out);
    case Operation::notify: {
      node.thread().sync();
      const Picos when = node.now() + Picos(in.get<std::int64_t>());
      const auto key = in.get<std::uint64_t>();
      if (key != 0) outside_.show(key, node.now(), when);
      outside_.notify(when);
      return 0;
    }
    case Operation::await_start:
      node.thread().sync();
      station_.await_start(in.get<std::int32_t>());
      return 0;
    case Operation::await_reaction: {
      const auto process = in.get<std::int32_t>();
      node.thread().sync();
      return await_reaction(node, process, in.get<int>());
    }
    case Operation::await_end: {
      node.thread().sync();
      const Picos from = system_.end_of(in.get<std::int32_t>());
      while (node.now() < from && !interrupted_) sleep(node, from, Where::asleep);
      return 0;
    }
    case Operation::wait_on:
      return wait_on(node, in);
    case Operation::wake: {
      const auto address = in.get<std::uint64_t>();
      node.thread().sync();
      process_.waits.wake(address, in.get<std::uint32_t>(), node.now());
      return 0;
    }
    case Operation::interrupt:
      node.thread().sync();
      system_.interrupt(process_, in.get<int>());
      return 0;
    case Operation::set_timer:
      return set_timer(node, in.get<TimerSettings>(), out);
    case Operation::query_timer: {
      const auto id = in.get<std::int32_t>();
      out.put(process_.timers.state(id, node.now()));
      out.put(process_.timers.overrun(id));
      return 0;
    }
    case Operation::delete_timer:
      process_.timers.remove(in.get<std::int32_t>());
      return 0;
    case Operation::find_process: {
      const std::optional<int> id = system_.id_of(in.get<int>());
      if (!id) return ESRCH;
      out.put(*id);
      return 0;
    }
    default:
      return ENOSYS;
  }
}

int ProgramThread::await_reaction(SimNode& node, int process, int signal) {
  if (!station_.await_reaction(process)) {
    if (signal != 0) system_.tell(process, signal);
    return 0;
  }
  system_.tell_parent(process);
  system_.bury_at(process, node.now());
  outside_.notify(node.now() + kUnnoticed);
  sleep(node, node.now() + kUnnoticed, Where::asleep);
  return 0;
}

int ProgramThread::await_memory(const SimNode& node) {
  ++silences_.silent;
  const Watches watches(system_.watchers(), *this);
  where_ = Where::watching;
  if (!interrupted_) node.await_memory();
  where_ = Where::here;
  node.thread().look_at_memory();
  return 0;
}

int ProgramThread::wait_on(SimNode& node, Reader& in) {
  const auto address = in.get<std::uint64_t>();
  const auto* const word = in.get<const void*>();
  const auto expected = in.get<std::uint32_t>();
  const Picos until(in.get<std::int64_t>());
  node.thread().sync();
  std::uint32_t value = expected;
  if (word != nullptr) process_.memory().read(word, reinterpret_cast<std::byte*>(&value), sizeof value);
  if (value != expected) return EAGAIN;
  const Waits::Wait wait(process_.waits, address, node.thread());
  while (!wait.woken() && !interrupted_ && node.now() < until)
    sleep(node, until, word == nullptr ? Where::signals : Where::asleep);
  if (wait.woken()) return 0;
  return interrupted_ ? EINTR : ETIMEDOUT;
}

int ProgramThread::wait_outside(SimNode& node, Reader& in, Writer& out) {
  const Picos until(in.get<std::int64_t>());
  const bool for_room = in.get<bool>();
  // The first time that the thread waits for this.
  if (in.get<bool>()) outside_.suspect(node.now() + kUnnoticed);
  const Outside::Wait waits(outside_, node.thread(), for_room);
  node.thread().sync();  // meanwhile others may have notified
  if (!interrupted_) {
    where_ = Where::asleep;
    node.thread().sleep(std::min(until, waits.look()));
    where_ = Where::here;
  }
  tell_of_outside(node, out);
  if (interrupted_) return EINTR;
  return node.now() >= until ? ETIMEDOUT : 0;
}

void ProgramThread::tell_of_outside(SimNode& node, Writer& out) const {
  out.put(outside_.wants_room());
  out.put(outside_.seen_from(0) > node.now());
}

int ProgramThread::set_timer(SimNode& node, const TimerSettings& settings, Writer& out) {
  node.thread().sync();
  Fd fd(settings.fd < 0 ? -1 : process_.copy_fd(settings.fd));
  if (settings.fd >= 0 && fd.get() < 0) return EBADF;
  out.put(process_.timers.set(settings, std::move(fd), node.now()));
  if (settings.at_ps != kNever) system_.ring_at(process_, Picos(settings.at_ps));
  return 0;
}

void ProgramThread::hand_over_signals() {
  interrupted_ = false;
  channel_.signals_count = 0;
  for (; !signals_.empty() && channel_.signals_count < kMaxSignals; signals_.pop_front())
    channel_.signals[channel_.signals_count++] = signals_.front();
}

}  // namespace verbscope::simulate
