// A benchmark's process on any host, which is started, watched and ended in the same way everywhere. On this machine it
// is a child; on other hosts `verbscope hold` runs it, and the child is the launcher's client.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/cluster/hold.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/process/child.hpp"
#include "harness/process/served_program.hpp"

namespace verbscope {

// A program to start. Its record is written to `record_file` on this machine.
struct TaskSpec {
  std::vector<std::string> command;      // the benchmark's path on the host, and its arguments
  std::vector<std::string> environment;  // "NAME=value"
  std::string record_file;
  std::chrono::milliseconds limit{120'000};  // time limit on other hosts, enforced there
};

class Task {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the program on this machine. Throws "cannot start ...".
  explicit Task(const TaskSpec& spec, int numa_node = -1);
  // Starts the program on `host`. `holder`: the path of verbscope there. Throws if the launcher cannot reach the host.
  Task(Launcher& launcher, const Host& host, const std::string& holder, const TaskSpec& spec);
  // Has a served program run the command, whose path is the program's. `program` must outlive the task. Throws if it
  // has ended.
  Task(ServedProgram& program, const TaskSpec& spec);
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  Child& child() { return served_ != nullptr ? served_->child() : *child_; }
  bool running() const { return served_ != nullptr ? served_->busy() : child_->running(); }
  // True if the exit status was 0 on its host. Valid after the end.
  bool succeeded() const;
  // "exit status 3"; "connection lost (exit status 255)" if only the end of the launcher's client is known.
  std::string end_text() const;
  // The last lines of its output, or of the launcher's output if the program's is unknown.
  std::vector<std::string> tail() const;
  // The beginning of its standard output.
  const std::string& output() const;
  // Time since the last message from a running program on another host; zero on this machine.
  Clock::duration silence() const;

  // Requests the end without waiting, so that several tasks can end at the same time.
  void request_end();
  // Ends the task: waits at most `patience`, then kills the local process. On another host, the program also ends if
  // the host still responds.
  void end(std::chrono::milliseconds patience);

 private:
  void receive(std::string_view chunk);

  bool held_ = false;
  Fd input_;  // closing it ends a program on another host
  std::string output_, record_file_;
  HoldReader hold_reader_;
  bool record_written_ = false;
  Clock::time_point last_heard_;
  ServedProgram* served_ = nullptr;
  std::unique_ptr<Child> child_;  // null: `served_` has it
};

}  // namespace verbscope
