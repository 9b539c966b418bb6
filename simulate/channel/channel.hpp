// The memory that the simulator shares with the programs it runs. Each thread of a program has a channel, over which it
// and the simulator take turns: the thread hands over a request, and waits until the simulator hands back the answer.
// Only the owner of the turn touches the channel's other members.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace verbscope::simulate {

// Environment of the programs: the path of the shared memory, and the number of the program's node.
inline constexpr const char* kMemoryVariable = "VERBSCOPE_SIMULATION";
inline constexpr const char* kNodeVariable = "VERBSCOPE_SIMULATION_NODE";

inline constexpr std::size_t kMaxThreads = 512;
// Room for a request: a list of 4096 work requests with an SGE each. Pages that are not used take no memory.
inline constexpr std::size_t kMessageBytes = 1 << 20;

// getpid() of the main programs of processes: this and the number of the process, in the order in which they begin. The
// kernel has no ids from here on (PID_MAX_LIMIT).
inline constexpr std::int32_t kFirstProcessId = 4 * 1024 * 1024;

enum class Turn : std::uint32_t {
  nobody,  // the channel is free
  taken,   // a thread prepares its first request
  simulator,
  program
};

// A signal that the simulator sends, as a timer does. `arrived`: the operating system has delivered it already, and
// only the wait of the thread has to end.
struct Signal {
  std::int32_t number;
  std::int32_t code;     // si_code
  std::uint64_t value;   // sigev_value
  std::int32_t timer;    // si_timerid
  std::int32_t overrun;  // si_overrun
  bool arrived;
};
inline siginfo_t siginfo_of(const Signal& signal) {
  siginfo_t info{};
  info.si_signo = signal.number;
  info.si_code = signal.code;
  info.si_timerid = signal.timer;
  info.si_overrun = signal.overrun;
  info.si_value.sival_ptr = reinterpret_cast<void*>(signal.value);
  return info;
}
inline constexpr std::size_t kMaxSignals = 8;  // of an answer; others follow with the next one

// What a thread does that seems to watch memory: see preload/spinning.hpp.
enum class Loops : std::uint32_t {
  let_spin,   // nothing
  found,      // it asks to wait for a write
  identified  // the same, and says in which loop it is: others on its node may have to know
};

struct alignas(64) Channel {
  std::atomic<Turn> turn;
  std::int32_t process;  // ids of the thread for the operating system
  std::int32_t thread;
  std::int32_t node;
  // Of a request.
  std::uint32_t operation;  // an Operation
  std::uint32_t bytes;      // of the message
  // Of an answer. The time is also that of a new thread's begin, if it is later than the simulator's.
  std::int64_t now_ps;  // virtual time of the thread
  Loops loops;
  std::uint32_t signals_count;
  std::array<Signal, kMaxSignals> signals;  // that the thread raises
  // Read and written at any time.
  alignas(64) std::atomic<std::int64_t> spent_ps;  // virtual time for which the thread has worked since the last answer
  std::atomic<std::uint64_t> blocked_signals;      // its signal mask, a bit for each signal from 1 on
  std::atomic<std::uint32_t> late;  // not 0: the simulator, which took it for silent or blocked, has gone on without it
  std::atomic<std::uint32_t> patience;     // not 0: it sleeps in the operating system, and will soon be woken
  std::atomic<std::uint32_t> searched;     // times without a call since that a loop was looked for, and none was found
  std::atomic<std::uint32_t> interrupted;  // a signal handler has run while the simulator has the turn
  alignas(64) std::array<std::byte, kMessageBytes> message;
};

// True if a thread of the process has the channel. A free channel keeps the ids of its last thread.
inline bool is_of(const Channel& channel, int process) {
  return channel.turn.load() != Turn::nobody && channel.process == process;
}

struct SharedMemory {
  std::uint32_t version;  // kVersion: simulator and library are of one build
  std::uint32_t nodes;
  double tsc_mhz;          // rate of the virtual time stamp counter
  std::int32_t simulator;  // its process
  std::int32_t core;       // on which simulator and programs run, one at a time; -1: any
  cpu_set_t cores;         // on which they were allowed to run
  std::uint32_t loopback;  // the simulation's part of the host's loopback network: node N has this address + N
  alignas(64) std::atomic<std::uint32_t> requests;  // counts requests; a futex
  std::atomic<std::uint32_t> sleeping;              // the simulator waits for `requests` to change
  std::array<Channel, kMaxThreads> channels;
};

inline constexpr std::uint32_t kVersion = 2;

// A system call past the C library, whose syscall() the preloaded library replaces. Returns -errno on errors.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
}
template <class Word>
long futex(std::atomic<Word>& word, int operation, std::uint32_t value, const timespec* limit) {
  static_assert(sizeof word == 4);
  return system_call(SYS_futex, reinterpret_cast<long>(&word), operation, value, reinterpret_cast<long>(limit));
}

// Binds the calling thread (0) or another one to a core; -1: to none. Without the right to, it runs as before.
inline void bind_to_core(std::int32_t thread, std::int32_t core) {
  std::array<std::uint64_t, 16> cores{};
  if (core < 0) cores.fill(~std::uint64_t{0});
  if (core >= 0 && core < 1024) cores[static_cast<std::size_t>(core) / 64] = std::uint64_t{1} << core % 64;
  system_call(SYS_sched_setaffinity, thread, sizeof cores, reinterpret_cast<long>(cores.data()));
}

// Sends the signal to the channel's thread. Returns false if it cannot.
inline bool queue_signal(const Channel& channel, const Signal& signal) {
  siginfo_t info = siginfo_of(signal);
  return system_call(SYS_rt_tgsigqueueinfo, channel.process, channel.thread, signal.number,
                     reinterpret_cast<long>(&info)) == 0;
}

// Waits until `word` differs from `value`, a signal handler has run (EINTR), or `limit` has passed (ETIMEDOUT; null: no
// limit). Returns 0 or an errno.
template <class Word>
int futex_wait(std::atomic<Word>& word, Word value, const timespec* limit = nullptr) {
  return static_cast<int>(-futex(word, FUTEX_WAIT, static_cast<std::uint32_t>(value), limit));
}
template <class Word>
void futex_wake(std::atomic<Word>& word) {
  futex(word, FUTEX_WAKE, 1, nullptr);
}

}  // namespace verbscope::simulate
