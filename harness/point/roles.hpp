// The processes of one point, one a role, started, watched and ended together.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "harness/cluster/task.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

// One process: what is started, and what it left.
struct Role {
  std::string name;    // "server", "client 0"; empty when one process plays all
  Host host;           // without a name with an empty name
  std::string holder;  // path of verbscope on the host; empty: the process is one of this machine
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::unique_ptr<TempFolder> folder = std::make_unique<TempFolder>();
  std::unique_ptr<Task> task;
  bool cut_short = false;  // it still ran when the point was over

  std::string record_file() const { return folder->file("record.json"); }
  // "client 0 on node7: ", or nothing.
  std::string prefix() const { return name.empty() ? "" : name + " on " + host.name + ": "; }
  bool running() const { return task && task->running(); }
  bool ended_badly() const { return task && !task->running() && !task->succeeded(); }
  // It ended badly and left no record, which it opens when it starts and writes when it fails.
  bool died() const {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(record_file(), none);
    return ended_badly() && (none || bytes == 0);
  }
};

// The longest waits for the processes of a point.
struct RoleLimits {
  std::chrono::milliseconds timeout{120'000};  // the whole time of a point
  std::chrono::milliseconds silence{15'000};   // the longest time without a word from a host elsewhere
};

class RoleGroup {
 public:
  // The role to blame; an empty reason: it ended badly by itself, and what it wrote says why.
  struct Failure {
    std::size_t role = 0;
    std::string reason;
    std::string others{};  // "; server on node1: nothing heard for 12 s", of hosts that may be the cause
  };

  // All waits end at `timeout` from now on, or with the stop. `launcher` starts the roles that have a holder.
  RoleGroup(const RoleLimits& limits, StopSource* stop, Launcher* launcher);

  // Each does nothing once there is a failure or an interrupt.
  void start(Role role);
  // Waits until the role started last prints "listening on port N" and returns N; 0: it did not.
  int wait_for_port();
  // Waits until all have ended well, or one has not and the others have had the time to say what they saw.
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
  // Takes what the processes have said so far.
  void listen();
  // Waits for `satisfied`; notes an interrupt, and the failure of a host that is silent. False when one of them came or
  // the time was up.
  bool wait(TimePoint deadline, const std::function<bool()>& satisfied);
  // The time at which the first host will have been silent for too long.
  TimePoint patience_ends() const;
  // Gives up the hosts that have been silent for too long; the first is the failure. False when there is none.
  bool note_silence();

  RoleLimits limits_;
  TimePoint deadline_;
  StopSource* stop_;
  Launcher* launcher_;
  std::vector<Role> roles_;
  std::optional<Failure> failure_;
  bool interrupted_ = false;
};

}  // namespace verbscope
