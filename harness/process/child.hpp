// A child process, identified by its pidfd and its process group. It is started from an argument array (never a shell),
// its output is bounded, and it is ended when the object is destroyed.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fd.hpp"
#include "harness/process/stop.hpp"

namespace verbscope {

// Creates a pipe: read end, write end. Both close on exec; writes do not block. Throws Error.
std::pair<Fd, Fd> make_pipe();
// Writes to such a pipe, whose reader may not read yet. Throws Error if the pipe has no room, or no reader any more.
void write_whole(const Fd& pipe, std::string_view text);

class Child {
 public:
  using OutputHook = std::function<void(std::string_view)>;

  // Starts arguments[0] (a path) in its own process group. Standard input is `input`, or /dev/null. The child is killed
  // when the thread that started it ends, even by SIGKILL. `on_stdout` and `on_stderr` receive its output as it
  // arrives; `environment` ("NAME=value") is added to this process's own. Throws "cannot start PATH: reason".
  explicit Child(const std::vector<std::string>& arguments, OutputHook on_stdout = {},
                 const std::vector<std::string>& environment = {}, Fd input = {}, OutputHook on_stderr = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Its process id, which belongs to no other process while it runs.
  int id() const { return pid_; }
  bool running() const { return running_; }
  // True if the exit status was 0. Valid after the end.
  bool succeeded() const;
  // True if one of the signals that ask a program to end (SIGINT, SIGTERM, SIGHUP) ended it. Valid after the end.
  bool was_asked_to_end() const;
  // "exit status 3", "killed by signal 9 (Killed)", "still running".
  std::string end_text() const;
  // end_text() and the last line of its output, if it printed one: "exit status 1: no space left".
  std::string end_and_last_line() const;
  // The last lines of standard error and output, at most kTailLines of at most kTailLineBytes.
  std::vector<std::string> tail() const;
  // tail() begins with what it prints from now on.
  void forget_tail();
  // Sends the signal to the process group if the child still runs.
  void signal(int number);
  // Copies of the pipes with its output, for another thread that asks whether output is unread (FIONREAD).
  std::array<Fd, 2> copies_of_pipes() const;
  // Sends SIGTERM, and SIGKILL after `patience`. Returns when the child has ended.
  void end(std::chrono::milliseconds patience);

  static constexpr std::size_t kTailLines = 20;
  static constexpr std::size_t kTailLineBytes = 400;

 private:
  friend class ChildWaiter;
  void read_stream(Fd& stream, std::string& partial, const OutputHook& hook);
  void add_tail_line(std::string line);
  void drain();
  void reap();

  OutputHook on_stdout_, on_stderr_;
  int pid_ = -1;
  Fd pidfd_, stdout_, stderr_;
  std::string stdout_partial_, stderr_partial_;
  std::deque<std::string> tail_;
  bool running_ = false;
  int status_code_ = 0;  // siginfo_t::si_code
  int status_ = 0;       // siginfo_t::si_status
};

enum class WaitEnd { satisfied, timeout, interrupted };

// Reads the children's output and collects their exit statuses until `satisfied` returns true (checked after every
// event), the deadline passes, or `stop` fires. `stop` may be null.
WaitEnd wait_children(const std::vector<Child*>& children, std::chrono::steady_clock::time_point deadline,
                      StopSource* stop, const std::function<bool()>& satisfied);

// Waits as above until the child has ended.
WaitEnd wait_for_end(Child& child, std::chrono::steady_clock::time_point deadline, StopSource* stop);

// `end`, and the last line of `tail` if there is one: "exit status 1: no space left".
std::string with_last_line(const std::string& end, const std::vector<std::string>& tail);

// Returns the path of the program in PATH. Throws "NAME is not installed: ...".
std::string find_program(const std::string& name);

}  // namespace verbscope
