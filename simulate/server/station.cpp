#include "simulate/server/station.hpp"

#include <fcntl.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

namespace verbscope::simulate {
namespace {

constexpr std::int64_t kNanos = 1'000'000'000;
constexpr int kSpins = 400;                          // before the first look at the thread, each about 20 ns
constexpr std::int64_t kLookNs = 50'000;             // between looks
constexpr std::int64_t kBlockedNs = 2'000'000;       // asleep without CPU time for so long: blocked
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

struct ThreadState {
  char state = 'X';               // such as R or S; X if it is gone
  std::uint64_t page_faults = 0;  // so far, without those that wait for a disk
};

// The state of a thread as /proc reports it.
ThreadState state_of(int process, int thread) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[512];
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
  const char* const end = std::strrchr(text, ')');  // the name before it may have any characters
  ThreadState found;
  if (end != nullptr) std::sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %lu", &found.state, &found.page_faults);
  return found;
}

}  // namespace

void Station::give(Channel& channel) const {
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
  const std::int64_t silence_ns = may_be_silent ? silence_ns_ : kLongWorkNs;
  const auto asks = [&channel] { return channel.turn.load(std::memory_order_acquire) != Turn::program; };
  for (int i = 0; i < kSpins; ++i) {
    if (asks()) return Conduct::asks;
    relax_cpu();
  }
  std::int64_t cpu = -1, idle_since = 0;
  std::int64_t silent_from = -1;
  std::int64_t spent = -1;
  std::uint64_t faults = state_of(channel.process, channel.thread).page_faults;
  while (!stopped()) {
    const std::uint32_t seen = memory_.requests.load(std::memory_order_seq_cst);
    if (asks()) return Conduct::asks;
    const std::int64_t used = cpu_ns_of(channel.process);
    // A thread that reads clocks is not silent, and a new thread or the end of one takes the time that it needs.
    const std::int64_t spent_now = channel.spent_ps.load(std::memory_order_relaxed);
    const bool patience = channel.patience.load(std::memory_order_relaxed) != 0;
    if (silent_from < 0 || patience || spent_now != std::exchange(spent, spent_now)) silent_from = used;
    if (patience) idle_since = 0;
    if (used >= 0 && used - silent_from > silence_ns) {
      // It does not only look at memory if it touches new pages, as at the beginning of a program.
      const std::uint64_t faults_now = state_of(channel.process, channel.thread).page_faults;
      if (faults_now == std::exchange(faults, faults_now)) return asks() ? Conduct::asks : Conduct::silent;
      silent_from = used;
    }
    if (used < 0 || used == cpu) {
      const char state = state_of(channel.process, channel.thread).state;
      if (state == 'X' || state == 'Z') return asks() ? Conduct::asks : Conduct::gone;
      if (idle_since == 0 || state == 'R' || patience) idle_since = real_ns();
      if (real_ns() - idle_since > kBlockedNs) return asks() ? Conduct::asks : Conduct::blocked;
    } else {
      idle_since = 0;
    }
    cpu = used;
    sleep(seen, kLookNs);
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
    const char state = state_of(process, process).state;
    if (state == 'X' || state == 'Z') return;
    sleep(seen, kLookNs);
  }
}

bool Station::await_reaction(int process) {
  constexpr std::int64_t kMomentNs = 2'000'000;
  const auto handles = [process](const Channel& channel) {
    return channel.process == process && channel.interrupted.load() != 0;
  };
  for (const std::int64_t begin = real_ns(); real_ns() - begin < kMomentNs && !stopped();) {
    const std::uint32_t seen = memory_.requests.load(std::memory_order_seq_cst);
    const char state = process > 0 ? state_of(process, process).state : 'R';
    if (state == 'X' || state == 'Z') return true;
    if (std::ranges::any_of(memory_.channels, handles)) return false;
    sleep(seen, kLookNs);
  }
  return process <= 0;
}

}  // namespace verbscope::simulate
