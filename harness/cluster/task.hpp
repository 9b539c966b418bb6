// A benchmark's process on some host, held by a handle: started, watched, ended the same way wherever it is. On this
// machine it is a child; elsewhere `verbscope hold` runs it there, and the child is the launcher's client.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/cluster/hold_protocol.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/process/child.hpp"

namespace verbscope {

// A program to start. The benchmark's record comes to `record_file` on this machine.
struct TaskSpec {
  std::vector<std::string> command;      // the benchmark's path there, its arguments
  std::vector<std::string> environment;  // "NAME=value"
  std::string record_file;
  std::chrono::milliseconds limit{120'000};  // elsewhere: after so long it is ended there, whatever happens here
};

class Task {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts it on this machine. Throws "cannot start ...".
  explicit Task(const TaskSpec& spec, int numa_node = -1);
  // On `host`, by `launcher`; `holder` is the path of verbscope there. Throws when the launcher cannot reach the host.
  Task(Launcher& launcher, const Host& host, const std::string& holder, const TaskSpec& spec);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  Child& child() { return *child_; }
  bool running() const { return child_->running(); }
  // Whether the exit status was 0 on its host. Only after the end.
  bool succeeded() const;
  // "exit status 3"; "connection lost (exit status 255)" when only the launcher's client told its end.
  std::string end_text() const;
  // The last lines of its output, or of the launcher's when the program's are not known.
  std::vector<std::string> tail() const;
  // The beginning of its standard output.
  const std::string& output() const;
  // The time for which nothing has been heard from a program elsewhere that still runs; zero on this machine.
  Clock::duration silence() const;

  // Asks it to end: together with others, before each is waited for by end().
  void ask_end();
  // Returns when it is gone here, at most `patience` later, and, unless its host is silent, there.
  void end(std::chrono::milliseconds patience);

 private:
  void hear(std::string_view chunk);

  bool held_ = false;
  Fd input_;  // stays open as long as a program elsewhere shall run
  std::string output_, record_file_;
  HoldReader answers_;
  bool record_written_ = false;
  Clock::time_point last_heard_;
  std::unique_ptr<Child> child_;
};

}  // namespace verbscope
