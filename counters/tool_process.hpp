// A counting tool as a child process. Its standard output is a pseudo-terminal, because the tools hold lines back when
// they write to a pipe or a file, and a line's arrival tells when its interval ended. It leads a session of that
// terminal: however this process ends, the terminal hangs up and so does the tool.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"

namespace verbscope {

class ToolProcess {
 public:
  // Starts arguments[0], found in PATH, /usr/sbin or /usr/local/sbin, with these arguments (no shell) and /dev/null as
  // input. Throws Error when it cannot.
  explicit ToolProcess(const std::vector<std::string>& arguments);
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;
  ~ToolProcess();

  // Waits for output, the end of the tool, or `wake` to become readable, at most `limit`. Returns what it printed, or
  // nothing.
  std::string_view read(int wake, std::chrono::milliseconds limit);
  bool running() const { return running_; }
  // Whether it has ended with status 0.
  bool ended_well() const;
  // "exit status 1: what it said last" once it has ended.
  std::string end_text() const;
  // The CPU time that the tool took, in seconds; known once it has ended.
  double cpu_s() const { return cpu_s_; }
  // Asks with SIGTERM, so that it can put the CPU's counters back; after `patience` insists with SIGKILL.
  void end(std::chrono::milliseconds patience);

 private:
  void start(const std::vector<std::string>& arguments, const std::string& terminal, int errors);
  void take_errors();
  void reap();

  pid_t pid_ = -1;
  Fd handle_, terminal_, errors_;
  std::string buffer_;
  std::string last_line_, error_line_;  // lines of standard error: the last whole one, and the one that is being read
  bool running_ = false;
  int code_ = 0, status_ = 0;  // si_code and si_status of siginfo_t
  double cpu_s_ = 0;
};

// What a program prints until it ends, which it does within seconds. Throws Error when it cannot be started, ends badly
// or does not end.
std::string output_of(const std::vector<std::string>& arguments);

}  // namespace verbscope
