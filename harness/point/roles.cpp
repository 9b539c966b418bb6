#include "harness/point/roles.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kListenTimeout{30};
// After a failure, the other processes have this long to end and report; longer if they are on other hosts.
constexpr std::chrono::seconds kAfterFailure{3};
constexpr std::chrono::seconds kAfterRemoteFailure{10};
// Time from SIGTERM to SIGKILL; on other hosts, including the round trip.
constexpr std::chrono::milliseconds kKillDelay{1000};
constexpr std::chrono::milliseconds kRemoteKillDelay{5000};
// When another process has failed, a host that was silent for this long is reported as a possible cause.
constexpr auto kSuspiciousSilence = 2 * kHoldBeat + std::chrono::seconds(1);
// A terminal or Slurm signals the processes of a group or of a job in turn, a child perhaps first.
constexpr std::chrono::milliseconds kSignalLag{500};
constexpr std::string_view kListening = "listening on port ";

// The port in the first line "listening on port N" of the output; 0 if there is none.
int listening_port(const std::string& output) {
  std::size_t start = 0;
  for (std::size_t end = output.find('\n'); end != std::string::npos; end = output.find('\n', start)) {
    const std::string line = output.substr(start, end - start);
    if (line.starts_with(kListening)) {
      const int port = std::atoi(line.c_str() + kListening.size());
      if (port > 0 && port < 65536) return port;
    }
    start = end + 1;
  }
  return 0;
}

std::string seconds_text(Clock::duration duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace

RoleGroup::RoleGroup(const RoleLimits& limits, StopSource* stop, Launcher* launcher)
    : limits_(limits), deadline_(Clock::now() + limits.timeout), stop_(stop), launcher_(launcher) {}

void RoleGroup::start(Role role) {
  if (stopped()) return;
  roles_.push_back(std::move(role));
  Role& started = roles_.back();
  const TaskSpec spec{.command = started.command,
                      .environment = started.environment,
                      .record_file = started.record_file(),
                      .limit = limits_.timeout};
  try {
    if (started.program != nullptr) {
      started.task = std::make_unique<Task>(*started.program, spec);
    } else if (started.holder.empty()) {
      started.task = std::make_unique<Task>(spec, started.host.numa_node);
    } else {
      started.task = std::make_unique<Task>(*launcher_, started.host, started.holder, spec);
    }
  } catch (const Error& error) {
    interrupted_ = stop_ != nullptr && stop_->pending();
    failure_ = Failure{.role = roles_.size() - 1, .reason = error.what()};
  }
}

int RoleGroup::wait_for_port() {
  if (stopped()) return 0;
  const Role& role = roles_.back();
  const auto limit = std::min<Clock::duration>(kListenTimeout, limits_.timeout);
  const bool in_time =
      wait(Clock::now() + limit, [&role] { return !role.running() || listening_port(role.task->output()) != 0; });
  const int port = listening_port(role.task->output());
  if (stopped() || port != 0) return port;
  std::string reason = in_time ? "" : "not listening after " + seconds_text(limit);
  if (in_time && role.task->succeeded()) reason = "exited before it listened";
  failure_ = Failure{.role = roles_.size() - 1, .reason = std::move(reason)};
  return 0;
}

void RoleGroup::wait_all() {
  if (stopped()) return;
  const auto all_ended = [this] { return std::ranges::none_of(roles_, &Role::running); };
  const bool in_time = wait(deadline_, [&] { return all_ended() || std::ranges::any_of(roles_, &Role::ended_badly); });
  if (stopped()) return;
  const auto bad = std::ranges::find_if(roles_, &Role::ended_badly);
  if (bad != roles_.end()) {
    // Ctrl-C also reaches a child that has not left the terminal's process group yet, and Slurm ends every process of a
    // job. That end is an interrupt, not a failure.
    if (bad->task->child().was_asked_to_end()) wait(Clock::now() + kSignalLag, [] { return false; });
    interrupted_ = stop_ != nullptr && stop_->pending();
    if (interrupted_) return;
    failure_ = Failure{.role = static_cast<std::size_t>(bad - roles_.begin()), .reason = ""};
    wait(std::min(deadline_, Clock::now() + (launcher_ == nullptr ? kAfterFailure : kAfterRemoteFailure)), all_ended);
    // Peers may notice the death of a process before this program does: blame the process that died.
    const auto dead = std::ranges::find_if(roles_, &Role::died);
    if (dead != roles_.end()) failure_->role = static_cast<std::size_t>(dead - roles_.begin());
  } else if (!in_time) {
    const auto late = std::ranges::find_if(roles_, &Role::running);
    failure_ = Failure{.role = static_cast<std::size_t>(late - roles_.begin()),
                       .reason = "not finished after " + seconds_text(limits_.timeout)};
  }
}

void RoleGroup::read_output() {
  wait_children(children(), Clock::now() + std::chrono::milliseconds(1), nullptr, [] { return false; });
}

void RoleGroup::end_all() {
  read_output();
  for (Role& role : roles_) {
    if (!role.running()) continue;
    role.cut_short = true;
    if (failure_ && role.task->silence() > kSuspiciousSilence) {
      const auto silence = std::chrono::round<std::chrono::seconds>(role.task->silence());
      failure_->others += fmt::format("; {}no message for {} s", role.prefix(), silence.count());
    }
    role.task->request_end();
  }
  for (Role& role : roles_) {
    if (role.running()) role.task->end(role.holder.empty() ? kKillDelay : kRemoteKillDelay);
  }
}

std::vector<Child*> RoleGroup::children() const {
  std::vector<Child*> out;
  for (const Role& role : roles_) {
    if (role.task) out.push_back(&role.task->child());
  }
  return out;
}

RoleGroup::TimePoint RoleGroup::silence_deadline() const {
  TimePoint first = TimePoint::max();
  for (const Role& role : roles_) {
    if (role.running() && !role.holder.empty()) {
      first = std::min(first, Clock::now() + limits_.silence - role.task->silence());
    }
  }
  return first;
}

bool RoleGroup::end_silent_roles() {
  bool noted = false;
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    if (!roles_[i].running() || roles_[i].task->silence() < limits_.silence) continue;
    noted = true;
    launcher_->drop_connection(roles_[i].host);
    roles_[i].task->end(std::chrono::milliseconds(0));
    if (!failure_) {
      failure_ =
          Failure{.role = i, .reason = "the host does not respond: no message for " + seconds_text(limits_.silence)};
    }
  }
  return noted;
}

bool RoleGroup::wait(TimePoint deadline, const std::function<bool()>& satisfied) {
  read_output();  // connecting to another host may have taken longer than the limit for silence
  while (true) {
    const WaitEnd end = wait_children(children(), std::min(deadline, silence_deadline()), stop_, satisfied);
    interrupted_ = interrupted_ || end == WaitEnd::interrupted;
    if (end != WaitEnd::timeout) return end == WaitEnd::satisfied;
    if (end_silent_roles() || Clock::now() >= deadline) return false;
  }
}

}  // namespace verbscope
