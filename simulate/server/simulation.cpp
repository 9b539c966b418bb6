#include "simulate/server/simulation.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/error.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::simulate {
namespace {

// Between two looks whether processes still live, when the simulation is busy.
constexpr std::uint64_t kQuantaBetweenLooks = 4096;

// Before virtual time moves on by more than this, what has happened outside is taken in: else timers would run out for
// the peers of processes that have died, and for threads that computed for long and only seemed to watch memory. The
// latter get this many milliseconds.
constexpr Picos kJump{1'000'000'000};
constexpr int kLooksBeforeJump = 3;

// True if a process that this one has started has ended. It is not reaped.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child;
}

}  // namespace

Simulation::Simulation(SharedMemory& memory, const Profile& profile, const SimulationOptions& options,
                       std::stop_token stop, std::function<void()> look)
    : memory_(memory),
      wakeup_(profile.host.event_wakeup),
      options_(options),
      cluster_(profile, options.nodes, options.seed),
      connections_(cluster_, profile),
      station_(memory, options.silence_ns, std::move(stop)),
      look_(std::move(look)) {
  cluster_.ask_outside([this](bool stuck) { return ask(stuck); });
}

Simulation::~Simulation() = default;

void Simulation::run(const std::vector<pid_t>& launched) {
  await(launched);
  cluster_.expect_threads(true);
  cluster_.run();
}

void Simulation::await(const std::vector<pid_t>& launched) {
  launched_ = launched;
  const auto begun = [this](pid_t child) {
    return std::ranges::any_of(memory_.channels, [child](const Channel& channel) {
      return channel.turn.load(std::memory_order_acquire) == Turn::simulator && channel.process == child;
    });
  };
  for (const pid_t child : launched) {
    while (!begun(child) && !has_ended(child) && !station_.stopped()) {
      station_.has_news();
      station_.wait_for_news();
    }
  }
  admit();
}

bool Simulation::ask(bool stuck) {
  if (station_.stopped()) throw InterruptedError("interrupted");
  const bool jumps = !stuck && about_to_jump();
  const bool check_processes = std::exchange(gone_, false) || ++asked_ % kQuantaBetweenLooks == 0 || jumps;
  now_ps_.store(cluster_.now().count(), std::memory_order_relaxed);
  look_();
  bool any = false;
  if (stuck || check_processes || station_.has_news()) {
    const bool came = admit(), returned = let_return();
    any = came || returned;
  }
  if (stuck || check_processes) any = bury() || any;
  for (int looks = 0; looks < kLooksBeforeJump && jumps && !any && any_silent(); ++looks) {
    station_.wait_for_news();
    const bool came = admit(), returned = let_return();
    any = came || returned;
  }
  if ((stuck || check_processes) && !any_alive()) {
    cluster_.expect_threads(false);
    return false;
  }
  while (stuck && !any) {
    station_.wait_for_news();
    if (station_.stopped()) throw InterruptedError("interrupted");
    const bool came = admit(), returned = let_return(), died = bury(), looks = let_outside_look();
    any = came || returned || died || looks;
    if (!any_alive()) {
      cluster_.expect_threads(false);
      return false;
    }
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
      *threads_.emplace_back(std::make_unique<ProgramThread>(channel, process, *this, station_, silences_));
  of_channel_[index] = &thread;
  const auto node = static_cast<std::uint32_t>(channel.node);
  const bool first = std::ranges::find(begun_, node) == begun_.end();
  if (first) begun_.push_back(node);
  const Picos delay =
      first && cluster_.now() < options_.start_gap * node ? options_.start_gap * node - cluster_.now() : Picos(0);
  const std::optional<int> core = cluster_.free_core(channel.node);
  if (!core) ++silences_.without_core;
  cluster_.add_thread(channel.node, core, [&thread, delay](SimNode& sim_node) { thread.run(sim_node, delay); });
}

Process& Simulation::process_of(const Channel& channel) {
  for (const auto& process : processes_) {
    if (process->id() != channel.process || process->buried || !process->alive()) continue;
    const auto lives = [&process](const auto& thread) {
      return &thread->process() == process.get() && !thread->ended();
    };
    if (std::ranges::none_of(threads_, lives)) process->destroy_objects();  // it begins again, by exec(2)
    return *process;
  }
  auto& provider = static_cast<sim::SimProvider&>(cluster_.provider(channel.node));
  return *processes_.emplace_back(std::make_unique<Process>(channel.process, static_cast<int>(processes_.size()) + 1,
                                                            channel.node, provider, wakeup_, connections_));
}

bool Simulation::let_return() {
  bool any = false;
  for (const auto& thread : threads_) {
    if (!thread->ended()) any = thread->returns() || any;
  }
  return any;
}

bool Simulation::bury() {
  bool any = false;
  for (const auto& process : processes_) {
    if (process->buried || process->alive()) continue;
    any = process->buried = true;
    for (const auto& thread : threads_) {
      if (&thread->process() == process.get()) thread->end();
    }
    for (Channel& channel : memory_.channels) {
      if (channel.turn.load() != Turn::nobody && channel.process == process->id()) channel.turn = Turn::nobody;
    }
    process->destroy_objects();
  }
  if (any) let_outside_look();
  return any;
}

bool Simulation::let_outside_look() {
  bool any = false;
  for (const auto& thread : threads_) {
    if (thread->ended() || !thread->waits_outside()) continue;
    thread->look_again();
    any = true;
  }
  return any;
}

void Simulation::ring_at(Process& process, Picos when) {
  cluster_.at(when, [this, &process] { ring(process); });
}

void Simulation::ring(Process& process) {
  if (process.buried) return;
  const auto expired = [this, &process](Timers::Timer& timer, std::int64_t times) {
    const TimerSettings& settings = timer.settings;
    if (timer.fd.get() >= 0) {
      eventfd_write(timer.fd.get(), static_cast<eventfd_t>(times));
      let_outside_look();
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

// To the first thread of the process that does not block the signal, as the kernel prefers the main thread.
void Simulation::send(const Process& process, const Signal& signal, int thread) {
  const auto gets = [&](const auto& each) {
    return &each->process() == &process && !each->ended() &&
           (thread == 0 ? !each->blocks(signal.number) : each->channel().thread == thread);
  };
  if (const auto found = std::ranges::find_if(threads_, gets); found != threads_.end()) return (*found)->send(signal);
  if (thread != 0) return;
  siginfo_t info = siginfo_of(signal);
  syscall(SYS_rt_sigqueueinfo, process.id(), signal.number, &info);  // pending for the process
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
    if (process->number() == number && !process->buried) return process->id();
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

bool Simulation::any_alive() const {
  return std::ranges::any_of(processes_, [](const auto& process) { return !process->buried; });
}

}  // namespace verbscope::simulate
