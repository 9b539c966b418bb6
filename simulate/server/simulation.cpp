#include "simulate/server/simulation.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/time/engine.hpp"
#include "simulate/server/thread_state.hpp"

namespace verbscope::simulate {
namespace {

// Between two looks whether processes still live, when the simulation is busy.
constexpr std::uint64_t kQuantaBetweenLooks = 4096;

// Before virtual time moves on by more than this, what has happened outside is taken in: else timers would run out for
// the peers of processes that have died, and for threads that computed for long and only seemed to watch memory. The
// latter get this many milliseconds.
constexpr Picos kJump{1'000'000'000};
constexpr int kLooksBeforeJump = 3;

// While one lives, the calling thread runs on the core of the programs: there the kernel hands over the turn without
// waking another core. Its waits are short.
class OnCore {
 public:
  OnCore(std::int32_t core, const cpu_set_t& before) : before_(before), slack_(prctl(PR_GET_TIMERSLACK)) {
    bind_to_core(0, core);
    prctl(PR_SET_TIMERSLACK, 1);
  }
  OnCore(const OnCore&) = delete;
  OnCore& operator=(const OnCore&) = delete;
  ~OnCore() {
    sched_setaffinity(0, sizeof before_, &before_);
    prctl(PR_SET_TIMERSLACK, slack_);
  }

 private:
  const cpu_set_t& before_;
  int slack_;
};

}  // namespace

Simulation::Simulation(SharedMemory& memory, const Profile& profile, const SimulationOptions& options,
                       std::stop_token stop, std::function<void()> look, std::function<void(int)> leave)
    : memory_(memory),
      wakeup_(profile.host.event_wakeup),
      options_(options),
      cluster_(profile, options.nodes, options.seed),
      connections_(cluster_, profile),
      threads_of_node_(static_cast<std::size_t>(options.nodes)),
      station_(memory, options.silence_ns, std::move(stop), std::move(leave)),
      look_(std::move(look)) {
  // A part of the host's loopback network for this simulation alone, unless another's process number is equal in 16
  // bits.
  const auto number = static_cast<std::uint32_t>(getpid());
  memory.simulator = static_cast<std::int32_t>(number);
  memory.core = sched_getcpu();  // an idle one, where the kernel has begun this program
  sched_getaffinity(0, sizeof memory.cores, &memory.cores);
  memory.loopback = 0x7f00'0001 | (1 + number / 256 % 126) << 16 | number % 256 << 8;
  cluster_.ask_outside([this](bool stuck) { return ask(stuck); });
}

// The simulated threads of a run that failed have not ended. They use other parts of the simulation.
Simulation::~Simulation() {
  for (int node = 0; node < options_.nodes; ++node) cluster_.end_threads(node);
}

void Simulation::run(const std::vector<pid_t>& launched) {
  const OnCore on_core(memory_.core, memory_.cores);
  expect_processes(true);
  await(launched);
  cluster_.run();
}

void Simulation::await(const std::vector<pid_t>& launched) {
  launched_ = launched;
  for (const pid_t child : launched) station_.await_start(child);
  admit();
}

bool Simulation::ask(bool stuck) {
  if (station_.stopped()) throw InterruptedError("interrupted");
  const bool jumps = !stuck && about_to_jump();
  const bool rarely = ++asked_ % kQuantaBetweenLooks == 0;
  const bool check_processes = rarely || jumps;
  now_ps_.store(cluster_.now().count(), std::memory_order_relaxed);
  look_();
  bool any = false;
  if (stuck || check_processes || station_.has_news()) {
    const bool came = admit(), returned = let_return();
    any = came || returned;
  }
  if (stuck || check_processes) any = bury() || any;
  if (rarely) any = outside_.suspect(Picos(0)) || any;
  for (int looks = 0; looks < kLooksBeforeJump && jumps && !any && any_silent(); ++looks) {
    station_.wait_for_news();
    const bool came = admit(), returned = let_return();
    any = came || returned;
  }
  if (!any_alive_) return false;
  if (stuck && !any) any = let_watchers_spin();
  while (stuck && !any) {
    station_.wait_for_news();
    if (station_.stopped()) throw InterruptedError("interrupted");
    const bool came = admit(), returned = let_return(), died = bury(), looks = outside_.suspect(Picos(0));
    any = came || returned || died || looks;
    if (!any_alive_) return false;
  }
  return any;
}

bool Simulation::admit() {
  std::vector<std::size_t> come;
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    const Channel& channel = memory_.channels[i];
    if (channel.turn.load(std::memory_order_acquire) != Turn::simulator) continue;
    if (of_channel_[i] != nullptr && !of_channel_[i]->ended()) continue;
    if (static_cast<Operation>(channel.operation) == Operation::begin) come.push_back(i);
  }
  // The operating system has started them in any order.
  std::ranges::stable_sort(come, {}, [this](std::size_t i) {
    return std::ranges::find(launched_, memory_.channels[i].process) - launched_.begin();
  });
  for (const std::size_t each : come) admit(each);
  return !come.empty();
}

void Simulation::admit(std::size_t index) {
  Channel& channel = memory_.channels[index];
  Process& process = process_of(channel);
  ProgramThread& thread =
      *threads_.emplace_back(std::make_unique<ProgramThread>(channel, process, *this, station_, outside_, silences_));
  of_channel_[index] = &thread;
  ++threads_of_node_[static_cast<std::size_t>(channel.node)];
  const Picos start = start_of(channel);
  const std::optional<int> core = cluster_.free_core(channel.node);
  if (!core) ++silences_.without_core;
  cluster_.add_thread(channel.node, core, [&thread, start](SimNode& sim_node) { thread.run(sim_node, start); });
}

// The first program of a node starts a while after that of the node before; others when they are started.
Picos Simulation::start_of(const Channel& channel) {
  const auto node = static_cast<std::uint32_t>(channel.node);
  if (std::ranges::find(begun_, node) != begun_.end()) return Picos(channel.now_ps);
  begun_.push_back(node);
  return options_.start_gap * node;
}

Process* Simulation::find_process(int id) {
  const auto is = [id](const auto& process) { return process->id() == id && !process->buried(); };
  const auto found = std::ranges::find_if(processes_, is);
  return found == processes_.end() ? nullptr : found->get();
}

Process& Simulation::process_of(const Channel& channel) {
  if (Process* const known = find_process(channel.process); known != nullptr && known->alive()) return *known;
  auto& provider = static_cast<sim::SimProvider&>(cluster_.provider(channel.node));
  const int number = static_cast<int>(processes_.size()) + 1;
  Process& made = *processes_.emplace_back(
      std::make_unique<Process>(channel.process, number, channel.node, provider, wakeup_, connections_));
  expect_processes(true);
  const auto parent = Reader(std::span(channel.message).first(channel.bytes)).get<std::int32_t>();
  if (const Process* const copied = find_process(parent); copied != nullptr) made.skip_numbers_of(*copied);
  return made;
}

bool Simulation::let_return() {
  bool any = false;
  for (const auto& thread : threads_) {
    if (!thread->ended()) any = thread->returns() || any;
  }
  return any;
}

bool Simulation::let_watchers_spin() {
  for (ProgramThread* const each : watchers_) each->let_spin();
  return !watchers_.empty();
}

bool Simulation::bury() {
  bool any = false, untold = false;
  for (const auto& process : processes_) {
    if (process->buried() || process->closes_at > cluster_.now()) continue;
    if (process->closes_at ? !process->ends() : process->alive()) continue;
    any = true;
    untold = untold || !process->closes_at;
    for (const auto& thread : threads_) {
      if (&thread->process() == process.get()) thread->end();
    }
    for (Channel& channel : memory_.channels) {
      if (is_of(channel, process->id())) channel.turn = Turn::nobody;
    }
    process->bury();
  }
  expect_processes(std::ranges::any_of(processes_, [](const auto& each) { return !each->buried(); }));
  if (untold) outside_.suspect(Picos(0));
  return any;
}

void Simulation::bury_at(int process, Picos when) {
  if (Process* const ended = find_process(process); ended != nullptr) ended->closes_at = when;
  cluster_.at(when, [this] { bury(); });
}

Picos Simulation::end_of(int process) {
  const Process* const found = find_process(process);
  return found == nullptr ? Picos(0) : found->closes_at.value_or(Picos(0));
}

void Simulation::tell(int id, int signal) {
  const Process* const process = find_process(id);
  if (process == nullptr || (receiver_of(*process, signal, 0) != nullptr && !catches(id, signal))) return;
  send(*process, {.number = signal, .code = 0, .value = 0, .timer = 0, .overrun = 0, .arrived = true}, 0);
}

void Simulation::tell_parent(int process) {
  const int parent = state_of(process, process).parent;
  if (find_process(parent) == nullptr) return;
  if (catches(parent, SIGCHLD)) station_.await_reaction(parent);
  tell(parent, SIGCHLD);
}

void Simulation::ring_at(Process& process, Picos when) {
  cluster_.at(when, [this, &process] { ring(process); });
}

void Simulation::ring(Process& process) {
  if (process.buried()) return;
  const auto expired = [this, &process](Timers::Timer& timer, std::int64_t times) {
    const TimerSettings& settings = timer.settings;
    if (timer.fd.get() >= 0) {
      eventfd_write(timer.fd.get(), static_cast<eventfd_t>(times));
      outside_.notify(cluster_.now());
    }
    if (settings.wake != 0) process.waits.wake(settings.wake, 1, cluster_.now());
    if (settings.signal.number == 0) return;
    timer.overrun = static_cast<std::int32_t>(times - 1);
    Signal signal = settings.signal;
    signal.overrun = timer.overrun;
    send(process, signal, settings.thread);
  };
  process.timers.ring(cluster_.now(), expired, [this, &process](Picos next) { ring_at(process, next); });
}

// As the kernel, which prefers the main thread.
ProgramThread* Simulation::receiver_of(const Process& process, int signal, int thread) {
  const auto gets = [&](const auto& each) {
    return &each->process() == &process && !each->ended() &&
           (thread == 0 ? !each->blocks(signal) : each->channel().thread == thread);
  };
  const auto found = std::ranges::find_if(threads_, gets);
  return found == threads_.end() ? nullptr : found->get();
}

void Simulation::send(const Process& process, const Signal& signal, int thread) {
  if (ProgramThread* const receiver = receiver_of(process, signal.number, thread); receiver != nullptr)
    return receiver->send(signal);
  if (thread != 0) return;
  siginfo_t info = siginfo_of(signal);
  // Pending for the process.
  if (!signal.arrived) syscall(SYS_rt_sigqueueinfo, process.id(), signal.number, &info);
  for (const auto& each : threads_) {
    if (&each->process() == &process && !each->ended() && each->awaits_signals()) each->interrupt();
  }
}

void Simulation::interrupt(const Process& process, int thread) {
  for (const auto& each : threads_) {
    if (&each->process() == &process && !each->ended() && each->channel().thread == thread) each->interrupt();
  }
}

std::optional<int> Simulation::id_of(int number) const {
  for (const auto& process : processes_) {
    if (process->number() == number && !process->buried()) return process->id();
  }
  return std::nullopt;
}

bool Simulation::about_to_jump() {
  const std::int64_t next = cluster_.engine().next_time();
  return next != sim::Engine::kNever && next - cluster_.now().count() > kJump.count();
}

bool Simulation::any_silent() const {
  return std::ranges::any_of(threads_, [](const auto& thread) { return !thread->ended() && thread->silent(); });
}

void Simulation::expect_processes(bool any_alive) {
  any_alive_ = any_alive;
  cluster_.expect_threads(any_alive);
}

}  // namespace verbscope::simulate
