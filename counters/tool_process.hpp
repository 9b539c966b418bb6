// A counting tool as a child process. Its standard output is a pseudo-terminal, because the tools buffer lines when
// they write to a pipe or a file. So a line arrives when its interval ends. The tool leads the terminal's session: when
// this process ends in any way, the terminal hangs up, and the tool ends.
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
  // Starts arguments[0] without a shell, with these arguments and /dev/null as input. Searches PATH, /usr/sbin and
  // /usr/local/sbin. Throws Error on failure.
  explicit ToolProcess(const std::vector<std::string>& arguments);
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;
  ~ToolProcess();

  // Waits for output, for the end of the tool, or until `wake` is readable, for at most `limit`. Returns the output,
  // which may be empty.
  std::string_view read(int wake, std::chrono::milliseconds limit);
  bool running() const { return running_; }
  // True if it has ended with status 0.
  bool ended_well() const;
  // "exit status 1: LAST LINE OF STANDARD ERROR", after its end.
  std::string end_text() const;
  // CPU seconds of the tool, after its end.
  double cpu_s() const { return cpu_s_; }
  // Sends SIGTERM, so that the tool can restore the CPU's counters; after `patience` sends SIGKILL.
  void end(std::chrono::milliseconds patience);

 private:
  void start(const std::vector<std::string>& arguments, const std::string& terminal, int errors);
  void take_errors();
  void reap();

  pid_t pid_ = -1;
  Fd handle_, terminal_, errors_;
  std::string buffer_;
  std::string last_line_, error_line_;  // lines of standard error: the last complete one, and the incomplete one
  bool running_ = false;
  int code_ = 0, status_ = 0;  // si_code and si_status of siginfo_t
  double cpu_s_ = 0;
};

// Output of a program that ends within seconds. Throws Error if it cannot be started, fails, or does not end.
std::string output_of(const std::vector<std::string>& arguments);

}  // namespace verbscope
