#include "harness/roles.hpp"

#include <algorithm>
#include <csignal>

#include "common/error.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kListenTimeout{30};
// After one process has failed: how long the others have to end by themselves and say what they saw.
constexpr std::chrono::seconds kAfterFailure{3};
// From SIGTERM to SIGKILL.
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::size_t kKeptOutput = 1 << 16;
constexpr std::string_view kListening = "listening on port ";

// The port of a line "listening on port N" in the output so far; 0: none yet.
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

RoleGroup::RoleGroup(std::chrono::milliseconds timeout, Interrupt* interrupt)
    : timeout_(timeout), deadline_(Clock::now() + timeout), interrupt_(interrupt) {}

void RoleGroup::start(Role role, const std::vector<std::string>& environment) {
  if (stopped()) return;
  roles_.push_back(std::move(role));
  std::string* kept = roles_.back().output.get();
  try {
    roles_.back().child = std::make_unique<Child>(
        roles_.back().command,
        [kept](std::string_view chunk) {
          kept->append(chunk.substr(0, kKeptOutput - std::min(kKeptOutput, kept->size())));
        },
        environment);
  } catch (const Error& error) {
    failure_ = Failure{.role = roles_.size() - 1, .reason = error.what()};
  }
}

int RoleGroup::wait_for_port() {
  if (stopped()) return 0;
  const Role& role = roles_.back();
  const auto limit = std::min<Clock::duration>(kListenTimeout, timeout_);
  const bool in_time =
      wait(Clock::now() + limit, [&role] { return !role.running() || listening_port(*role.output) != 0; });
  const int port = listening_port(*role.output);
  if (interrupted_ || port != 0) return port;
  std::string reason = in_time ? "" : "not listening after " + seconds_text(limit);
  if (in_time && role.child->succeeded()) reason = "ended before it listened";
  failure_ = Failure{.role = roles_.size() - 1, .reason = std::move(reason)};
  return 0;
}

void RoleGroup::wait_all() {
  if (stopped()) return;
  const auto all_ended = [this] { return std::ranges::none_of(roles_, &Role::running); };
  const bool in_time = wait(deadline_, [&] { return all_ended() || std::ranges::any_of(roles_, &Role::ended_badly); });
  if (interrupted_) return;
  const auto bad = std::ranges::find_if(roles_, &Role::ended_badly);
  if (bad != roles_.end()) {
    failure_ = Failure{.role = static_cast<std::size_t>(bad - roles_.begin()), .reason = ""};
    wait(std::min(deadline_, Clock::now() + kAfterFailure), all_ended);
  } else if (!in_time) {
    const auto late = std::ranges::find_if(roles_, &Role::running);
    failure_ = Failure{.role = static_cast<std::size_t>(late - roles_.begin()),
                       .reason = "no end after " + seconds_text(timeout_)};
  }
}

void RoleGroup::end_all() {
  for (Role& role : roles_) {
    if (role.running()) role.child->signal(SIGTERM);
  }
  for (Role& role : roles_) {
    if (role.running()) role.child->end(kPatience);
  }
}

std::vector<Child*> RoleGroup::children() const {
  std::vector<Child*> out;
  for (const Role& role : roles_) {
    if (role.child) out.push_back(role.child.get());
  }
  return out;
}

bool RoleGroup::wait(TimePoint deadline, const std::function<bool()>& satisfied) {
  const WaitEnd end = wait_children(children(), deadline, interrupt_, satisfied);
  interrupted_ = interrupted_ || end == WaitEnd::interrupted;
  return end == WaitEnd::satisfied;
}

}  // namespace verbscope
