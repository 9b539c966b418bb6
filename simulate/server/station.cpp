#include "simulate/server/station.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "simulate/server/thread_state.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::int64_t kNanos = 1'000'000'000;
constexpr std::uint32_t kSearches = 3;               // a thread in which so many searches find no loop works, or counts
constexpr std::int64_t kUnsearchedNs = 50'000'000;   // limit before these searches, which may be prevented
constexpr std::int64_t kLookNs = 500'000;            // between looks
constexpr std::int64_t kBlockedNs = 10'000'000;      // asleep without CPU time for so long: blocked
constexpr std::int64_t kLongWorkNs = 2'000'000'000;  // limit for threads that are not expected to be silent

std::int64_t real_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanos + now.tv_nsec;
}

// CPU time of a process; -1 if it is gone.
std::int64_t cpu_ns_of(int process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return -1;
  return used.tv_sec * kNanos + used.tv_nsec;
}

bool asks(const Channel& channel) {
  return channel.turn.load(std::memory_order_acquire) != Turn::program;
}

// What a thread that has the turn does, by the operating system's figures of it.
class Looks {
 public:
  Looks(const Channel& channel, std::int64_t silence_ns) : channel_(channel), silence_ns_(silence_ns) {}

  // None: nothing is known yet.
  std::optional<Conduct> look() {
    const std::int64_t used = cpu_ns_of(channel_.process);
    // A thread that reads clocks is not silent, and a new thread or the end of one takes the time that it needs.
    const std::int64_t spent = channel_.spent_ps.load(std::memory_order_relaxed);
    const bool patience = channel_.patience.load(std::memory_order_relaxed) != 0;
    const bool runs = used != std::exchange(used_, used) && !patience;
    if (silent_from_ < 0 || patience || spent != std::exchange(spent_, spent)) silent_from_ = used;
    if (patience) idle_since_ = 0;
    const bool searched = channel_.searched.load() >= kSearches;
    if (searched && !std::exchange(searched_, searched)) silent_from_ = used;
    const std::int64_t silence_ns = searched ? silence_ns_ : std::max(silence_ns_, kUnsearchedNs);
    if (used >= 0 && used - silent_from_ > silence_ns / 2) {
      // It does not only look at memory if it touches new pages, as at the beginning of a program.
      const std::uint64_t faults = state_of(channel_.process, channel_.thread).page_faults;
      if (faults == std::exchange(faults_, faults)) return Conduct::silent;
      silent_from_ = used;
    }
    if (used >= 0 && runs) {
      idle_since_ = 0;
      return std::nullopt;
    }
    const ThreadState thread = state_of(channel_.process, channel_.thread);
    if (thread.ended()) return Conduct::gone;
    if (idle_since_ == 0 || thread.runs() || patience) idle_since_ = real_ns();
    if (real_ns() - idle_since_ > kBlockedNs) return Conduct::blocked;
    return std::nullopt;
  }

 private:
  const Channel& channel_;
  std::int64_t silence_ns_;
  std::int64_t used_ = -1;
  std::int64_t idle_since_ = 0;
  std::int64_t silent_from_ = -1;
  std::int64_t spent_ = -1;
  bool searched_ = false;
  std::uint64_t faults_ = ~std::uint64_t{0};
};

}  // namespace

void Station::give(Channel& channel) {
  if (process_ != channel.process) {
    if (process_ != 0) leave_(node_);
    process_ = channel.process;
    node_ = channel.node;
  }
  channel.turn.store(Turn::program, std::memory_order_release);
  futex_wake(channel.turn);
}

void Station::sleep(std::uint32_t seen, std::int64_t limit_ns) {
  const timespec limit{.tv_sec = 0, .tv_nsec = limit_ns};
  memory_.sleeping.store(1, std::memory_order_seq_cst);
  if (memory_.requests.load(std::memory_order_seq_cst) == seen) futex_wait(memory_.requests, seen, &limit);
  memory_.sleeping.store(0, std::memory_order_relaxed);
}

void Station::wait_for_news() {
  if (memory_.requests.load(std::memory_order_acquire) == seen_) sleep(seen_, 1'000'000);
}

Conduct Station::watch(const Channel& channel, bool may_be_silent) {
  Looks looks(channel, may_be_silent ? silence_ns_ : kLongWorkNs);
  while (!stopped()) {
    const std::uint32_t seen = memory_.requests.load(std::memory_order_seq_cst);
    if (asks(channel)) return Conduct::asks;
    sleep(seen, kLookNs);
    if (asks(channel)) return Conduct::asks;
    if (const std::optional<Conduct> conduct = looks.look()) return asks(channel) ? Conduct::asks : *conduct;
  }
  return Conduct::gone;
}

void Station::await_start(int process) {
  const auto begun = [process](const Channel& channel) {
    return channel.process == process && channel.turn.load(std::memory_order_acquire) == Turn::simulator;
  };
  while (!stopped()) {
    const std::uint32_t seen = memory_.requests.load(std::memory_order_seq_cst);
    if (std::ranges::any_of(memory_.channels, begun)) return;
    if (state_of(process, process).ended()) return;
    sleep(seen, kLookNs);
  }
}

bool Station::await_reaction(int process) {
  constexpr std::int64_t kMomentNs = 2'000'000;  // after the last time that one of its threads ran
  constexpr std::int64_t kLongNs = 200'000'000;  // in all: on a busy core its threads get their turn sooner
  const auto handles = [process](const Channel& channel) {
    return is_of(channel, process) && channel.interrupted.load() != 0;
  };
  const auto runs = [process](const Channel& channel) {
    return is_of(channel, process) && state_of(process, channel.thread).runs();
  };
  const std::int64_t begin = real_ns();
  for (std::int64_t last = begin; real_ns() - last < kMomentNs && last - begin < kLongNs && !stopped();) {
    const std::uint32_t seen = memory_.requests.load(std::memory_order_seq_cst);
    if (process > 0 && state_of(process, process).ended()) return true;
    if (std::ranges::any_of(memory_.channels, handles)) return false;
    if (std::ranges::any_of(memory_.channels, runs)) last = real_ns();
    sleep(seen, kLookNs);
  }
  return process <= 0;
}

}  // namespace verbscope::simulate
