#include "simulate/preload/session.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace verbscope::simulate {
namespace {

// Between two requests a thread reads clocks for at most this long.
constexpr std::int64_t kMaxUnreportedPs = 20'000'000;

SharedMemory* memory = nullptr;
std::int32_t own_node = 0;
std::int32_t own_process = 0;

// Of each thread. The library is loaded at program start.
thread_local Channel* channel __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool asking __attribute__((tls_model("initial-exec"))) = false;  // a signal handler may interrupt a request
thread_local std::int64_t spent_ps __attribute__((tls_model("initial-exec"))) = 0;

[[noreturn]] void refuse(const char* what) {
  fprintf(stderr, "verbscope simulate: %s\n", what);
  _exit(127);
}

// Spins for a few microseconds, then sleeps.
void wait_for_turn(Channel& own) {
  constexpr int kSpins = 300;
  for (int i = 0; i < kSpins; ++i) {
    if (own.turn.load(std::memory_order_acquire) == Turn::program) return;
    relax_cpu();
  }
  while (own.turn.load(std::memory_order_acquire) == Turn::simulator) futex_wait(own.turn, Turn::simulator);
}

void hand_over(Channel& own, Operation operation, std::uint32_t bytes) {
  own.operation = static_cast<std::uint32_t>(operation);
  own.spent_ps = std::exchange(spent_ps, 0);
  own.bytes = bytes;
  own.turn.store(Turn::simulator, std::memory_order_release);
  memory->requests.fetch_add(1, std::memory_order_seq_cst);
  if (memory->sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(memory->requests);
}

Channel* take_channel() {
  for (Channel& each : memory->channels) {
    Turn nobody = Turn::nobody;
    if (each.turn.load(std::memory_order_relaxed) == Turn::nobody && each.turn.compare_exchange_strong(nobody, Turn::taken))
      return &each;
  }
  return nullptr;
}

void begin() {
  channel->process = own_process;
  channel->thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  channel->node = own_node;
  hand_over(*channel, Operation::begin, 0);
  wait_for_turn(*channel);
}

void join() {
  const char* const path = getenv(kMemoryVariable);
  const char* const node = getenv(kNodeVariable);
  if (path == nullptr || node == nullptr) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) refuse("the simulation has ended, or belongs to another user");
  void* const mapped = mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) refuse("cannot map the memory of the simulation");
  memory = static_cast<SharedMemory*>(mapped);
  if (memory->version != kVersion) refuse("the library is of another release than the simulator");
  own_node = atoi(node);
  own_process = static_cast<std::int32_t>(syscall(SYS_getpid));
}

}  // namespace

bool simulated() { return memory != nullptr; }
std::uint32_t nodes() { return memory->nodes; }
std::int32_t node() { return own_node; }
double tsc_mhz() { return memory->tsc_mhz; }

Channel& own_channel() {
  if (channel != nullptr) return *channel;
  channel = take_channel();
  if (channel == nullptr) refuse("the programs have more threads than the simulation has room for");
  begin();
  return *channel;
}

Channel* reserve_channel() { return take_channel(); }

void adopt_channel(Channel& reserved) {
  channel = &reserved;
  begin();
}

void leave() {
  if (channel == nullptr) return;
  hand_over(*std::exchange(channel, nullptr), Operation::end, 0);
}

void restart_after_fork() {
  if (memory == nullptr) return;
  channel = nullptr;
  spent_ps = 0;
  own_process = static_cast<std::int32_t>(syscall(SYS_getpid));
  own_channel();
}

std::int64_t now_ps(std::int64_t cost_ps) {
  Channel& own = own_channel();
  spent_ps += cost_ps;
  if (spent_ps > kMaxUnreportedPs && !asking) ask(Operation::spend);
  return own.now_ps + spent_ps;
}

Request::Request(Operation operation) : channel_(own_channel()), operation_(operation), out_(channel_.message) {}

int Request::ask() {
  if (out_.full()) return ENOMEM;
  const int saved = errno;
  asking = true;
  hand_over(channel_, operation_, out_.size());
  wait_for_turn(channel_);
  asking = false;
  in_ = Reader({channel_.message.data(), channel_.bytes});
  const int error = in_.get<int>();
  const std::uint32_t signal = std::exchange(channel_.signal, 0);
  if (signal != 0) raise_later_ = signal;
  errno = saved;
  return error;
}

Request::~Request() {
  if (raise_later_ != 0) raise(static_cast<int>(raise_later_));
}

}  // namespace verbscope::simulate

// Before the constructors of the program, so that all threads of a simulation begin in it.
__attribute__((constructor(101))) static void join_simulation() {
  using namespace verbscope::simulate;
  join();
  if (simulated()) own_channel();
}
