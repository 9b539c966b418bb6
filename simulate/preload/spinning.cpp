#include "simulate/preload/spinning.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "simulate/preload/taken_signals.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::size_t kMaxSamples = 16;  // where a thread was seen, in one search
constexpr int kMaxSteps = 512;           // instructions of a loop

// CPU time without a call after which a search begins: soon where one has found a loop, later where one has not.
constexpr std::int64_t kSoonNs = 20'000;
constexpr std::int64_t kFirstNs = 1'000'000;
constexpr std::int64_t kLateNs = 10'000'000;  // a search without result takes about 1 ms
constexpr std::int64_t kLostNs = 1'000'000;   // in real time, if the look was at a signal handler that has ended meanwhile
constexpr std::int64_t kRoundNs = 50'000;     // real time between two looks: a loop goes round meanwhile

constexpr greg_t kTrapFlag = 1 << 8;           // trap after each instruction
constexpr greg_t kResumeFlag = 1 << 16;        // differs between signals and traps
constexpr std::size_t kRedZone = 128;     // below the stack pointer, belongs to the function that runs
constexpr std::size_t kStackBytes = 8192;  // above it: where loops count if it is not in registers
constexpr std::size_t kPage = 4096;
constexpr std::size_t kRegisters = REG_RIP + 1;

// Of what decides how the thread goes on: its registers and the top of its stack. Memory elsewhere is not in it.
struct State {
  std::uint64_t low = 0, high = 0;

  void add(std::uint64_t word) {
    low = (low ^ word) * 0x9e37'79b9'7f4a'7c15 + (low >> 32);
    high = (high + word) * 0xc2b2'ae3d'27d4'eb4f ^ (high >> 29);
  }
  void add(const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(from) + i, sizeof word);
      add(word);
    }
  }
  bool operator==(const State&) const = default;
};

// Of a thread.
struct Search {
  std::int64_t after_ns = kFirstNs;
  bool has_timer = false;
  bool armed = false;
  std::int32_t timer = 0;      // its id for the kernel
  std::uint32_t requests = 0;  // of the thread so far
  std::uint32_t armed_at = 0;  // the request after which the timer was armed
  std::int64_t begins_ns = 0;  // the CPU time of the thread when the search begins
  std::uint32_t looks = 0;
  bool runs = false;  // until a loop is found or a request is made
  bool laps = false;  // the thread goes once through the loop that was found
  std::size_t count = 0;
  std::array<State, kMaxSamples> samples;
  bool went_on = false;  // the thread, by an instruction at least, since the last sample
  int steps = 0;                           // of the lap
  std::uint64_t lap = 0;                   // sum of states
};
thread_local constinit Search search{};

bool readable(const std::byte* at) {
  std::uint64_t word = 0;
  const iovec to{&word, sizeof word}, from{const_cast<std::byte*>(at), sizeof word};
  return system_call(SYS_process_vm_readv, own_channel().process, reinterpret_cast<long>(&to), 1,
                     reinterpret_cast<long>(&from), 1, 0) == sizeof word;
}

State look(const ucontext_t& context) {
  const mcontext_t& machine = context.uc_mcontext;
  State state;
  state.add(machine.gregs, kRegisters * sizeof(greg_t));
  state.add(static_cast<std::uint64_t>(machine.gregs[REG_EFL] & ~(kTrapFlag | kResumeFlag)));
  state.add(machine.fpregs->_xmm, sizeof machine.fpregs->_xmm);
  // In whole words. The stack of a coroutine may end at the end of any page.
  const auto top = static_cast<std::uintptr_t>(machine.gregs[REG_RSP]) & ~std::uintptr_t{7};
  // Thread-local memory, such as `search`, follows the stack and does not belong to it.
  const auto own = reinterpret_cast<std::uintptr_t>(&search);
  const std::uintptr_t end = top < own ? std::min(top + kStackBytes, own) : top + kStackBytes;
  std::uintptr_t from = top - kRedZone;
  std::uintptr_t to = std::min(end, (top & ~(kPage - 1)) + kPage);
  do {
    state.add(reinterpret_cast<const void*>(from), to - from);
    from = std::exchange(to, std::min(end, to + kPage));
  } while (from < end && readable(reinterpret_cast<const std::byte*>(from)));
  return state;
}

void trace(ucontext_t& context, bool on) {
  greg_t& flags = context.uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | kTrapFlag : flags & ~kTrapFlag;
}

// The C library's functions are this library's, in virtual time.
bool make_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kLookSignal;
  event.sigev_value.sival_ptr = &search;
  event._sigev_un._tid = own_channel().thread;
  return system_call(SYS_timer_create, CLOCK_MONOTONIC, reinterpret_cast<long>(&event),
                     reinterpret_cast<long>(&search.timer)) == 0;
}

void arm(std::int64_t after_ns) {
  if (!search.has_timer) search.has_timer = make_timer();
  search.armed = true;
  if (!search.has_timer) return;  // for good: the simulator finds out by the thread's CPU time
  itimerspec when{};
  when.it_value = {.tv_sec = 0, .tv_nsec = after_ns};
  search.armed_at = search.requests;
  system_call(SYS_timer_settime, search.timer, 0, reinterpret_cast<long>(&when), 0);
}

std::int64_t cpu_ns() {
  timespec used{};
  system_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, reinterpret_cast<long>(&used));
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

void begin_search_later() {
  search.begins_ns = cpu_ns() + search.after_ns;
  arm(search.after_ns);
}

void end_search() {
  search.count = 0;
  search.runs = search.laps = false;
}

void not_found() {
  end_search();
  own_channel().searched.fetch_add(1);
  search.after_ns = std::min(4 * search.after_ns, kLateNs);
  begin_search_later();
}

// `loop`: a number that differs from that of other loops, and of this one with other values in its registers.
void found(ucontext_t& context, std::uint64_t loop) {
  trace(context, false);
  search.after_ns = kSoonNs;
  const Deliverable traps(SIGTRAP), looks(kLookSignal);  // signal handlers of the program may run before the answer
  ask(Operation::await_memory, loop);
}

void on_step(ucontext_t& context) {
  if (search.runs && search.laps) {
    const State now = look(context);
    search.lap += now.low;
    if (now == search.samples[0]) return found(context, search.lap);
    if (++search.steps < kMaxSteps) return;
    not_found();
  }
  search.went_on = true;
  trace(context, false);
  if (search.runs) arm(kRoundNs);
}

void on_look(ucontext_t& context) {
  const Channel& own = own_channel();
  search.armed = false;
  if (request_under_way() || own.loops == Loops::let_spin) return;  // until the next turn
  if (search.armed_at != search.requests || own.patience.load() != 0) return begin_search_later();
  // The time has passed, but others had the core.
  if (const std::int64_t left = search.begins_ns - cpu_ns(); !search.runs && left > 0) return arm(left);
  search.runs = true;
  // The thread may be in this state still, not again.
  if (search.count > 0 && !search.went_on) --search.count;
  const State now = look(context);
  const auto end = search.samples.begin() + static_cast<std::ptrdiff_t>(search.count);
  if (std::find(search.samples.begin(), end, now) != end) {
    if (own.loops == Loops::found) return found(context, 0);
    search.laps = true;
    search.samples[0] = now;
    search.steps = 0;
    search.lap = 0;
    return trace(context, true);
  }
  if (search.count == kMaxSamples) return not_found();
  search.samples[search.count++] = now;
  search.went_on = false;
  trace(context, true);
  arm(kLostNs);
}

bool on_trap(siginfo_t& info, ucontext_t& context) {
  const bool traced = info.si_code == TRAP_TRACE && (context.uc_mcontext.gregs[REG_EFL] & kTrapFlag) != 0;
  if (traced) on_step(context);
  return traced;
}

bool on_timer(siginfo_t& info, ucontext_t& context) {
  if (info.si_code != SI_TIMER || info.si_value.sival_ptr != &search) return false;
  ++search.looks;
  if (simulated()) on_look(context);
  return true;
}

}  // namespace

void find_loops() {
  take_signal(SIGTRAP, &on_trap);
  take_signal(kLookSignal, &on_timer);
}

void look_for_loop(const Channel& channel) {
  if (channel.loops == Loops::let_spin || search.armed) return;
  begin_search_later();
}

void give_up_loop() {
  ++search.requests;
  if (search.runs) end_search();
}

void end_looks() {
  if (search.has_timer) system_call(SYS_timer_delete, search.timer);
  forget_looks();
}

void forget_looks() {
  search.has_timer = search.armed = false;
}

std::uint32_t looks_at_thread() {
  return search.looks;
}

}  // namespace verbscope::simulate
