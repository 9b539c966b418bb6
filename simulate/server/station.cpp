#include "simulate/server/station.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

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
    const char state = state_of(channel_.process, channel_.thread).state;
    if (state == 'X' || state == 'Z') return Conduct::gone;
    const bool goes_on = state == 'R' || state == 'D';  // D: it waits for a disk, or for a child to begin a program
    if (idle_since_ == 0 || goes_on || patience) idle_since_ = real_ns();
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
