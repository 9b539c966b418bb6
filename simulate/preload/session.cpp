#include "simulate/preload/session.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "simulate/preload/real.hpp"
#include "simulate/preload/spinning.hpp"
#include "simulate/preload/threads.hpp"
#include "simulate/preload/tsc.hpp"

namespace verbscope::simulate {
namespace {

// Between two requests a thread reads clocks for at most this long.
constexpr std::int64_t kMaxUnreportedPs = 20'000'000;

SharedMemory* memory = nullptr;
std::int32_t own_node = 0;
std::int32_t own_process = 0;

std::int32_t own_number = 0;
std::atomic<bool> several_threads = false;
std::atomic<std::int64_t> all_work_ps = 0;

// Of each thread.
thread_local constinit Channel* channel = nullptr;
thread_local constinit bool has_left = false;
thread_local constinit int requests_alive = 0;        // more than one: a signal handler has interrupted a request
thread_local constinit bool handler_has_run = false;  // in this wait; see wait_for_turn
thread_local constinit std::int64_t work_ps = 0;

}  // namespace

// What the channel holds of an interrupted request, whose arguments may not be complete.
struct Interrupted {
  std::uint32_t bytes;
  std::uint32_t signals_count;
  std::array<Signal, kMaxSignals> signals;
  std::array<std::byte, 1 << 16> message;
};

void refuse(const char* what) {
  fprintf(stderr, "verbscope simulate: %s\n", what);
  _exit(127);
}

namespace {

void ring() {
  memory->requests.fetch_add(1, std::memory_order_seq_cst);
  if (memory->sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(memory->requests);
}

// `restarts`: handlers with SA_RESTART do not count as having run.
void wait_for_turn(Channel& own, bool restarts = false) {
  // With a time limit, the kernel reports every signal handler, without one only those that have no SA_RESTART.
  constexpr timespec kLong{.tv_sec = 1, .tv_nsec = 0};
  while (own.turn.load(std::memory_order_acquire) == Turn::simulator) {
    const std::uint32_t looks = looks_at_thread();
    const int error = futex_wait(own.turn, Turn::simulator, restarts ? nullptr : &kLong);
    if (error == ETIMEDOUT && REAL(kill)(memory->simulator, 0) != 0 && errno == ESRCH)
      refuse("the simulator has ended");
    if (error != EINTR || looks_at_thread() != looks) continue;
    handler_has_run = true;
    if (own.turn.load() != Turn::simulator) continue;
    own.interrupted.store(1);
    ring();
  }
}

void hand_over(Channel& own, Operation operation, std::uint32_t bytes) {
  own.operation = static_cast<std::uint32_t>(operation);
  own.bytes = bytes;
  own.searched.store(0, std::memory_order_relaxed);
  own.interrupted.store(0, std::memory_order_relaxed);
  own.turn.store(Turn::simulator, std::memory_order_release);
  ring();
}

bool waits(Operation operation) {
  return operation == Operation::sleep_until || operation == Operation::wait_outside ||
         operation == Operation::wait_on || operation == Operation::get_cq_event ||
         operation == Operation::cm_get_event;
}

// Hands over a request, and waits for the answer.
void hand_over_and_wait(Channel& own, Operation operation, std::uint32_t bytes, bool restarts) {
  const std::int64_t before = own.now_ps, spent = own.spent_ps.load(std::memory_order_relaxed);
  hand_over(own, operation, bytes);
  wait_for_turn(own, restarts);
  own.spent_ps.store(0, std::memory_order_relaxed);
  const std::int64_t worked = waits(operation) ? spent : own.now_ps - before;
  work_ps += worked;
  all_work_ps.fetch_add(worked, std::memory_order_relaxed);
}

Channel* take_channel() {
  for (Channel& each : memory->channels) {
    Turn nobody = Turn::nobody;
    if (each.turn.load(std::memory_order_relaxed) != Turn::nobody ||
        !each.turn.compare_exchange_strong(nobody, Turn::taken))
      continue;
    each.process = own_process;
    each.operation = static_cast<std::uint32_t>(Operation::begin);
    return &each;
  }
  return nullptr;
}

// The channel of this process's thread if it has just begun another program.
Channel* channel_before_exec() {
  for (Channel& each : memory->channels) {
    if (each.turn.load(std::memory_order_acquire) == Turn::program && each.process == own_process &&
        each.thread == own_process && each.operation == static_cast<std::uint32_t>(Operation::exec))
      return &each;
  }
  return nullptr;
}

// The simulator reads and writes this process's memory, also where only ancestors may (Yama's ptrace_scope 1). Call
// after it has answered, since it writes its number when it begins.
void let_simulator_in() {
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(memory->simulator), 0, 0, 0);
}

// Hands over the first request. `copied`: the process of which this one is a copy; 0: none.
void begin(std::int64_t start_ps, std::int32_t copied = 0) {
  if (memory->core >= 0) bind_to_core(0, memory->core);
  channel->thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  channel->node = own_node;
  channel->now_ps = start_ps;
  channel->spent_ps = 0;
  channel->patience = 0;
  channel->late = 0;
  std::uint64_t blocked = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  channel->blocked_signals = blocked;
  Writer(channel->message).put(copied);
  hand_over(*channel, Operation::begin, sizeof copied);
}

void await_begin() {
  wait_for_turn(*channel);
  Reader answer({channel->message.data(), channel->bytes});
  answer.get<int>();
  own_number = answer.get<std::int32_t>();
  look_for_loop(*channel);
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
  find_loops();
  channel = channel_before_exec();
  if (channel == nullptr) {
    own_channel();
  } else {
    begin(0);
    await_begin();
    end_with_thread();
  }
  let_simulator_in();
  // Others find out by themselves that it has ended, unless they wait in a call that signal handlers do not end.
  if (getppid() == memory->simulator) prctl(PR_SET_PDEATHSIG, SIGKILL);
  replace_counter_reads();
}

// Constructors of other libraries, which run before the one of this library, may be the first to call.
void join_once() {
  static bool joined = false;
  if (!std::exchange(joined, true)) join();
}

}  // namespace

bool simulated() {
  join_once();
  return memory != nullptr && !has_left;
}
std::uint32_t nodes() {
  return memory->nodes;
}
std::int32_t node() {
  return own_node;
}
double tsc_mhz() {
  return memory->tsc_mhz;
}
std::uint32_t loopback() {
  return memory->loopback;
}
const cpu_set_t& cores() {
  return memory->cores;
}
std::int32_t process_number() {
  return own_number;
}

Channel& own_channel() {
  if (channel != nullptr) return *channel;
  channel = take_channel();
  if (channel == nullptr) refuse("the programs have more threads than the simulation has room for");
  begin(0);
  await_begin();
  end_with_thread();
  return *channel;
}

Channel* reserve_channel() {
  several_threads = true;
  return take_channel();
}

void adopt_channel(Channel& reserved, std::int64_t start_ps, void (*begun)(void*), void* argument) {
  channel = &reserved;
  begin(start_ps);
  begun(argument);
  await_begin();
  end_with_thread();
}

void give_back(Channel& reserved) {
  reserved.turn = Turn::nobody;
}

void leave(const void* address) {
  if (channel == nullptr) return;
  end_looks();
  has_left = true;
  Writer out(channel->message);
  out.put(address);
  hand_over(*std::exchange(channel, nullptr), Operation::end, out.size());
}

Channel* reserve_channel_of_child() {
  Channel* const reserved = take_channel();
  if (reserved != nullptr) reserved->now_ps = now_ps(0);
  return reserved;
}

void keep_for_exec() {
  Channel& own = own_channel();
  own.patience.fetch_add(1);  // until the program begins
  ask(Operation::exec);
  own.thread = own_process;   // the number of its only thread
}

void exec_has_failed() {
  has_left = false;
  if (channel == nullptr) return;
  channel->patience.fetch_sub(1);
  channel->thread = static_cast<std::int32_t>(syscall(SYS_gettid));
}

void restart_after_fork(Channel& reserved) {
  requests_alive = 0;
  forget_looks();
  several_threads = false;
  work_ps = 0;
  all_work_ps = 0;
  const std::int32_t parent = std::exchange(own_process, static_cast<std::int32_t>(syscall(SYS_getpid)));
  let_simulator_in();
  channel = &reserved;
  channel->process = own_process;
  begin(reserved.now_ps, parent);
  await_begin();
}

// True if a signal that ends a request has a handler after which a call goes on.
bool restarts_after(const Signal& signal) {
  struct sigaction action {};
  return REAL(sigaction)(signal.number, nullptr, &action) == 0 && (action.sa_flags & SA_RESTART) != 0;
}

std::int64_t now_ps(std::int64_t cost_ps) {
  Channel& own = own_channel();
  const std::int64_t spent = own.spent_ps.load(std::memory_order_relaxed) + cost_ps;
  own.spent_ps.store(spent, std::memory_order_relaxed);
  const bool known = spent <= kMaxUnreportedPs && own.late.load(std::memory_order_relaxed) == 0;
  if (known || requests_alive > 0) return own.now_ps + spent;
  ask(Operation::spend);
  return own.now_ps;
}

void charge(std::int64_t cost_ps) {
  if (several_threads.load(std::memory_order_relaxed)) now_ps(cost_ps);
}

std::int64_t thread_work_ps() {
  return work_ps + (channel == nullptr ? 0 : channel->spent_ps.load());
}
std::int64_t process_work_ps() {
  return all_work_ps.load() + (channel == nullptr ? 0 : channel->spent_ps.load());
}

bool request_under_way() {
  return requests_alive > 0;
}

Request::Request(Operation operation)
    : channel_(own_channel()), operation_(operation), out_(channel_.message), interrupted_(nullptr) {
  give_up_loop();
  if (requests_alive++ == 0) return;
  const int saved = errno;
  if (channel_.turn.load() == Turn::simulator) {
    channel_.interrupted.store(1);
    ring();
    wait_for_turn(channel_);
  }
  // Not from malloc(), which the handler may have interrupted.
  void* const memory_of_saved =
      mmap(nullptr, sizeof(Interrupted), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_of_saved == MAP_FAILED) refuse("no memory for a request of a signal handler");
  interrupted_ = new (memory_of_saved) Interrupted;
  interrupted_->bytes = channel_.bytes;
  interrupted_->signals_count = channel_.signals_count;
  interrupted_->signals = channel_.signals;
  std::memcpy(interrupted_->message.data(), channel_.message.data(), interrupted_->message.size());
  errno = saved;
}

int Request::ask(bool restarts) {
  if (out_.full()) return ENOMEM;
  const int saved = errno;
  handler_has_run = false;
  hand_over_and_wait(channel_, operation_, out_.size(), restarts);
  in_ = Reader({channel_.message.data(), channel_.bytes});
  const int error = in_.get<int>();
  signals_count_ = std::exchange(channel_.signals_count, 0);
  std::copy_n(channel_.signals.begin(), signals_count_, signals_.begin());
  errno = saved;
  const bool goes_on =
      restarts && !handler_has_run && std::all_of(signals_.begin(), signals_.begin() + signals_count_, restarts_after);
  return error == EINTR && goes_on ? 0 : error;
}

Request::~Request() {
  if (interrupted_ != nullptr) {
    channel_.bytes = interrupted_->bytes;
    channel_.signals_count = interrupted_->signals_count;
    channel_.signals = interrupted_->signals;
    std::memcpy(channel_.message.data(), interrupted_->message.data(), interrupted_->message.size());
    munmap(interrupted_, sizeof *interrupted_);
  }
  if (--requests_alive == 0) look_for_loop(channel_);
  for (std::uint32_t i = 0; i < signals_count_; ++i) {
    if (!signals_[i].arrived) queue_signal(channel_, signals_[i]);
  }
}

}  // namespace verbscope::simulate

// Before the constructors of the program, so that all threads of a simulation begin in it.
__attribute__((constructor(101))) static void join_simulation() {
  using namespace verbscope::simulate;
  simulated();
}
