// The processes of one point, one per role, which are started, watched and ended together.
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

// One process: how it is started, and its state.
struct Role {
  std::string name;    // "server", "client 0"; empty if one process has all roles
  Host host;           // default if `name` is empty
  std::string holder;  // path of verbscope on the host; empty: the process runs on this machine
  std::vector<std::string> command;
  std::vector<std::string> environment;
  ServedProgram* program = nullptr;  // runs the command; null: it has its own process
  std::unique_ptr<TempFolder> folder = std::make_unique<TempFolder>();
  std::unique_ptr<Task> task;
  bool cut_short = false;  // the process still ran when the point was over

  std::string record_file() const { return folder->file("record.json"); }
  // "client 0 on node7: ", or empty.
  std::string prefix() const { return name.empty() ? "" : name + " on " + host.name + ": "; }
  bool running() const { return task && task->running(); }
  bool ended_badly() const { return task && !task->running() && !task->succeeded(); }
  // The process failed without a record. A process creates its record file at the start and writes to it when it fails.
  bool died() const {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(record_file(), none);
    return ended_badly() && (none || bytes == 0);
  }
};

// Time limits for the processes of a point.
struct RoleLimits {
  std::chrono::milliseconds timeout{120'000};  // for the whole point
  std::chrono::milliseconds silence{15'000};   // for silence of a remote host
};

class RoleGroup {
 public:
  // The role that failed first. Empty `reason`: the process failed by itself, and its record or output has the reason.
  struct Failure {
    std::size_t role = 0;
    std::string reason;
    std::string others{};  // "; server on node1: no message for 12 s": other hosts that may be the cause
  };

  // All waits end at limits.timeout from now, or at the stop. `launcher` starts roles that have a holder.
  RoleGroup(const RoleLimits& limits, StopSource* stop, Launcher* launcher);

  // The next three do nothing after a failure or an interrupt.
  void start(Role role);
  // Waits until the role that was started last prints "listening on port N". Returns N, or 0 if it did not.
  int wait_for_port();
  // Waits until all processes have succeeded, or until one has failed and the others had time to end and report.
  void wait_all();

  // Ends all processes that still run.
  void end_all();
  bool interrupted() const { return interrupted_; }
  const std::optional<Failure>& failure() const { return failure_; }
  const std::vector<Role>& roles() const { return roles_; }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  bool stopped() const { return interrupted_ || failure_.has_value(); }
  std::vector<Child*> children() const;
  // Reads the pending output of the processes.
  void read_output();
  // Waits until `satisfied` returns true. Records an interrupt, and the failure of a silent host. Returns false after
  // either, or at the deadline.
  bool wait(TimePoint deadline, const std::function<bool()>& satisfied);
  // The earliest time at which a host will exceed the limit for silence.
  TimePoint silence_deadline() const;
  // Ends the roles on hosts that exceeded the limit for silence; the first becomes the failure. Returns false if there
  // is none.
  bool end_silent_roles();

  RoleLimits limits_;
  TimePoint deadline_;
  StopSource* stop_;
  Launcher* launcher_;
  std::vector<Role> roles_;
  std::optional<Failure> failure_;
  bool interrupted_ = false;
};

}  // namespace verbscope
