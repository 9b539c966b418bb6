// Starts a program with the preloaded library and waits for it. The program inherits standard input and output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace verbscope {

// Why TracedProgram::wait returned.
enum class TraceTurn {
  ended,
  asked,   // SIGUSR1 arrived
  passed,  // the time is over
};

class TracedProgram {
 public:
  // Starts arguments[0], a path or a name in PATH. `folder` receives the count files of its processes; `nic`: a family
  // of adapters, or "auto"; `verify`: also compare WQEs. Throws Error if the program cannot be started or the library
  // is not in the folder of this program. While this object lives, SIGINT, SIGTERM and SIGHUP are passed on to the
  // program.
  TracedProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder, const std::string& nic,
                bool verify);
  TracedProgram(const TracedProgram&) = delete;
  TracedProgram& operator=(const TracedProgram&) = delete;
  ~TracedProgram();  // kills it if it still runs

  // Waits for one of the events above, at most for `most`.
  TraceTurn wait(std::chrono::milliseconds most);
  // Valid after TraceTurn::ended: the status as waitpid() returns it.
  int status() const { return status_; }

 private:
  void pass_on(int number, bool from_terminal) const;

  pid_t pid_ = -1;
  int status_ = 0;
  bool running_ = false;
  sigset_t before_{};
};

// Ends this process like the program: returns its exit status, or raises the signal that ended it.
int end_like(int status);

}  // namespace verbscope
