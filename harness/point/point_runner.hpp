// Runs one point: starts the benchmark's process or processes, waits, and makes one record of what they wrote. Whatever
// goes wrong with them is a failed record, not an exception.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/cluster/deploy.hpp"
#include "harness/cluster/hosts.hpp"
#include "harness/point/roles.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The place where points run: a fabric, its hosts, and the way to them.
struct RunTarget {
  std::string fabric;        // "sim:NAME", "null", "host": one process plays all roles; "verbs": one a role
  std::optional<Cast> cast;  // the hosts of fabric "verbs"
  int port = 0;              // the server listens there; 0: the system picks

  // The launcher starts processes; null: on this machine. Both must outlive the runner. A host to which nothing was
  // deployed is this machine; a point without a cast finds the programs where they are here.
  Launcher* launcher = nullptr;
  const Deployment* deployment = nullptr;  // set when there is a launcher
};

// `--hosts` of the command line: a fabric, "slurm", "localhost", the path of a hosts file, or "a,b". Throws for a file
// that is not there, a cluster that is not (with the names of those that are), a profile without a readable `wire`
// section.
void require_target(const std::string& hosts);
// The target that `hosts` means, with the hosts of the file or of the Slurm allocation. Throws what require_target
// throws, and for what cannot be a cast.
RunTarget parse_target(const std::string& hosts);

// The fabric that `--hosts` means, without a look at files or hosts.
std::string fabric_of(const std::string& hosts);

// Throws when a host of the cast is not this machine: without a launcher nothing can be started there.
void require_local(const RunTarget& target, const std::string& hosts);

class PointRunner {
 public:
  // `stop` may be null.
  PointRunner(std::filesystem::path binary, BenchmarkSpec spec, RunTarget target, const RoleLimits& limits,
              StopSource* stop);

  // The record of the point, config.point set. Nothing when interrupted: the processes are ended, nothing was kept.
  std::optional<Record> run(const Point& point) const;

 private:
  // The path of `verbscope` on the host, empty when it is this machine, and the benchmark's there.
  std::pair<std::string, std::vector<std::string>> place(const Host& host) const;
  Role make_role(const Point& point, const std::string& name, const Host* host) const;
  void start_cast(const Point& point, const Cast& cast, RoleGroup& group) const;
  // The record that the role's process wrote; a failed one when that does not fit how the process ended.
  Record collect(const Point& point, const Role& role) const;
  Record failed(const Point& point, const Role& role, const std::string& reason) const;
  // result.others: what became of the roles but the one that is blamed.
  void add_others(const Point& point, const std::vector<Role>& roles, std::size_t blamed, Record& record) const;
  // The server's record, with what the clients wrote.
  Record joined(const Point& point, const std::vector<Role>& roles) const;

  std::filesystem::path binary_;
  BenchmarkSpec spec_;
  RunTarget target_;
  RoleLimits limits_;
  StopSource* stop_;
};

}  // namespace verbscope
