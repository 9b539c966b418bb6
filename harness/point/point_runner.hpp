// Runs one point: starts the benchmark's processes, waits for them, and combines their output into one record. A
// failure of a process gives a failed record, not an exception.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/cluster/deploy.hpp"
#include "harness/cluster/hosts.hpp"
#include "harness/point/roles.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// Where points run: a fabric, its hosts, and how to reach them.
struct RunTarget {
  std::string fabric;  // "sim:NAME", "null", "host": one process for all roles; "verbs": one process per role
  std::optional<RoleAssignment> roles;  // the hosts of fabric "verbs"
  int port = 0;                         // TCP port of the server; 0: the system chooses

  // The launcher starts processes; null: they start on this machine. Launcher and deployment must outlive the runner. A
  // host without a deployment is this machine. A point without roles uses the programs on this machine.
  Launcher* launcher = nullptr;
  const Deployment* deployment = nullptr;  // set if there is a launcher

  // A simulated point runs in an idle one of these, if there is one. Null: each point has a process of its own. They
  // must outlive the runner.
  ServedPrograms* programs = nullptr;
};

// Checks `--hosts`: a fabric, "slurm", "localhost", the path of a hosts file, or "a,b". Throws for a file that does not
// exist, an unknown cluster (with a list of the known ones), or a profile without a readable `wire` section.
void require_target(const std::string& hosts);
// Returns the target for `hosts`, with the hosts of the file or of the Slurm allocation. Throws as require_target does,
// and if the roles cannot be assigned.
RunTarget parse_target(const std::string& hosts);

// The fabric for `--hosts`. Reads no files and contacts no hosts.
std::string fabric_of(const std::string& hosts);

// Throws if a host of the roles is not this machine: without a launcher, no process can be started there.
void require_local(const RunTarget& target, const std::string& hosts);

class PointRunner {
 public:
  // `stop` may be null.
  PointRunner(std::filesystem::path binary, BenchmarkSpec spec, RunTarget target, const RoleLimits& limits,
              StopSource* stop);

  // Returns the record of the point, with config.point. Empty if interrupted: the processes have been ended and nothing
  // was written.
  std::optional<Record> run(const Point& point) const;

 private:
  // `program` has all roles; null: each has its own process.
  std::optional<Record> run(const Point& point, ServedProgram* program) const;
  // Returns the path of `verbscope` on the host (empty if it is this machine) and the beginning of the benchmark's
  // command there.
  std::pair<std::string, std::vector<std::string>> place(const Host& host) const;
  Role make_role(const Point& point, const std::string& name, const Host* host) const;
  void start_roles(const Point& point, const RoleAssignment& roles, RoleGroup& group) const;
  // Reads the record that the role's process wrote. Returns a failed one if it contradicts the exit status.
  Record collect(const Point& point, const Role& role) const;
  Record failed(const Point& point, const Role& role, const std::string& reason) const;
  // Sets result.others: how the roles other than `blamed` ended.
  void add_others(const Point& point, const std::vector<Role>& roles, std::size_t blamed, Record& record) const;
  // Combines the server's record with those of the clients.
  Record combined(const Point& point, const std::vector<Role>& roles) const;

  std::filesystem::path binary_;
  BenchmarkSpec spec_;
  RunTarget target_;
  RoleLimits limits_;
  StopSource* stop_;
};

}  // namespace verbscope
