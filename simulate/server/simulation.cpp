#include "simulate/server/simulation.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "common/error.hpp"
#include "nic_sim/device/provider.hpp"

namespace verbscope::simulate {
namespace {

// Between two looks whether processes still live, when the simulation is busy.
constexpr std::uint64_t kQuantaBetweenLooks = 4096;

// True if a process that this one has started has ended. It is not reaped.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child;
}

}  // namespace

Simulation::Simulation(SharedMemory& memory, const Profile& profile, const SimulationOptions& options, std::stop_token stop,
                       std::function<void()> look)
    : memory_(memory),
      options_(options),
      cluster_(profile, options.nodes, options.seed),
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
  const bool check_processes = ++asked_ % kQuantaBetweenLooks == 0;
  now_ps_.store(cluster_.now().count(), std::memory_order_relaxed);
  look_();
  bool any = false;
  if (stuck || check_processes || station_.has_news()) {
    const bool came = admit(), returned = let_return();
    any = came || returned;
  }
  if (stuck || check_processes) any = bury() || any;
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
  bool any = false;
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    Channel& channel = memory_.channels[i];
    if (channel.turn.load(std::memory_order_acquire) != Turn::simulator) continue;
    if (of_channel_[i] != nullptr && !of_channel_[i]->ended()) continue;
    if (static_cast<Operation>(channel.operation) != Operation::begin) continue;
    any = true;
    Process& process = process_of(channel);
    ProgramThread& thread = *threads_.emplace_back(std::make_unique<ProgramThread>(channel, process, station_, silences_));
    of_channel_[i] = &thread;
    const auto node = static_cast<std::uint32_t>(channel.node);
    const bool first = std::ranges::find(begun_, node) == begun_.end();
    if (first) begun_.push_back(node);
    const Picos delay = first && cluster_.now() < options_.start_gap * node ? options_.start_gap * node - cluster_.now() : Picos(0);
    const std::optional<int> core = cluster_.free_core(channel.node);
    if (!core) fail("node {} runs more threads than its {} cores", channel.node, cluster_.cores());
    cluster_.add_thread(channel.node, *core, [&thread, delay](SimNode& sim_node) { thread.run(sim_node, delay); });
  }
  return any;
}

Process& Simulation::process_of(const Channel& channel) {
  for (const auto& process : processes_) {
    if (process->id() != channel.process || process->buried || !process->alive()) continue;
    const auto lives = [&process](const auto& thread) { return &thread->process() == process.get() && !thread->ended(); };
    if (std::ranges::none_of(threads_, lives)) process->destroy_objects();  // it begins again, by exec(2)
    return *process;
  }
  auto& provider = static_cast<sim::SimProvider&>(cluster_.provider(channel.node));
  return *processes_.emplace_back(std::make_unique<Process>(channel.process, channel.node, provider));
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

bool Simulation::any_alive() const {
  return std::ranges::any_of(processes_, [](const auto& process) { return !process->buried && process->alive(); });
}

}  // namespace verbscope::simulate
