// The processes of one point, one a role, started, watched and ended together.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/child.hpp"

namespace verbscope {

// One process: what is started, and what it left.
struct Role {
  std::string name;  // "server", "client 0"; empty when one process plays all
  std::string host;  // empty with an empty name
  std::vector<std::string> command;
  std::unique_ptr<TempFolder> folder = std::make_unique<TempFolder>();
  std::unique_ptr<std::string> output = std::make_unique<std::string>();  // standard output, its beginning
  std::unique_ptr<Child> child;

  std::string record_file() const { return folder->file("record.json"); }
  // "client 0 on node7: ", or nothing.
  std::string prefix() const { return name.empty() ? "" : name + " on " + host + ": "; }
  bool running() const { return child && child->running(); }
  bool ended_badly() const { return child && !child->running() && !child->succeeded(); }
};

class RoleGroup {
 public:
  // The role to blame; an empty reason: it ended badly by itself, and what it wrote says why.
  struct Failure {
    std::size_t role = 0;
    std::string reason;
  };

  // All waits end at `timeout` from now on, or with the interrupt, which may be null.
  RoleGroup(std::chrono::milliseconds timeout, Interrupt* interrupt);

  // Each does nothing once there is a failure or an interrupt.
  void start(Role role, const std::vector<std::string>& environment);
  // Waits until the role started last prints "listening on port N" and returns N; 0: it did not.
  int wait_for_port();
  // Until all have ended well, or one has not and the others have had the time to say what they saw.
  void wait_all();

  // Ends what still runs.
  void end_all();
  bool interrupted() const { return interrupted_; }
  const std::optional<Failure>& failure() const { return failure_; }
  const std::vector<Role>& roles() const { return roles_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  bool stopped() const { return interrupted_ || failure_.has_value(); }
  std::vector<Child*> children() const;
  // Waits for `satisfied`; notes an interrupt. False when it came or the time was up.
  bool wait(TimePoint deadline, const std::function<bool()>& satisfied);

  std::chrono::milliseconds timeout_;
  TimePoint deadline_;
  Interrupt* interrupt_;
  std::vector<Role> roles_;
  std::optional<Failure> failure_;
  bool interrupted_ = false;
};

}  // namespace verbscope
