// Runs one point: starts the benchmark's process or processes, waits, and makes one record of what they wrote. Whatever
// goes wrong with them is a failed record, not an exception.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/benchmark_spec.hpp"
#include "harness/child.hpp"
#include "harness/hosts.hpp"
#include "harness/roles.hpp"
#include "harness/sweep.hpp"

namespace verbscope {

// Where points run.
struct RunTarget {
  std::string fabric;        // "sim:NAME" and "null": one process plays all roles; "verbs": one a role
  std::optional<Cast> cast;  // for "verbs"
};

// `--hosts` of the command line: a fabric, or the path of a hosts file. Throws for a file that is not there, a cluster
// that is not (with the names of those that are), a profile without a readable `wire` section, and for hosts that are
// not this machine, which nothing can start a process on yet.
RunTarget parse_target(const std::string& hosts);

// Runs `binary --describe`. Throws when it fails, takes more than ten seconds, or prints something else.
BenchmarkSpec describe_benchmark(const std::filesystem::path& binary);

class PointRunner {
 public:
  // `timeout` is the wall-clock time that a point may take. `interrupt` may be null.
  PointRunner(std::filesystem::path binary, BenchmarkSpec spec, RunTarget target, std::chrono::milliseconds timeout,
              Interrupt* interrupt);

  // The record of the point, config.point set. Nothing when interrupted: the processes are ended, nothing was kept.
  std::optional<Record> run(const Point& point) const;

  // The identity of a point for --resume: {benchmark, params, repetition, seed, fabric}.
  Json identity(const Point& point) const;

 private:
  Role make_role(const Point& point, const std::string& name, const Host* host) const;
  void start_cast(const Point& point, const Cast& cast, RoleGroup& group) const;
  // What the role's process wrote; a failed record when that does not fit how it ended.
  Record collect(const Point& point, const Role& role) const;
  Record failed(const Point& point, const Role& role, const std::string& reason) const;
  // The server's record, with what the clients wrote.
  Record joined(const Point& point, const std::vector<Role>& roles) const;

  std::filesystem::path binary_;
  BenchmarkSpec spec_;
  RunTarget target_;
  std::chrono::milliseconds timeout_;
  Interrupt* interrupt_;
};

}  // namespace verbscope
