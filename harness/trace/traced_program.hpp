// A program under the preloaded library: started with what it needs in its environment, with this process's standard
// input and output, and waited for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace verbscope {

// What wakes the one that waits for the program.
enum class TraceTurn {
  ended,
  asked,   // by SIGUSR1
  passed,  // the time that was asked for
};

class TracedProgram {
 public:
  // Starts arguments[0], a path or a name in PATH. `folder` takes the files of its processes; `nic`: a family of
  // adapters, or "auto"; `verify`: WQEs too. Throws Error: it cannot be started, or the library is not beside this
  // program. While it lives, SIGINT, SIGTERM and SIGHUP are the program's, who ends by them or not.
  TracedProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder, const std::string& nic,
                bool verify);
  TracedProgram(const TracedProgram&) = delete;
  TracedProgram& operator=(const TracedProgram&) = delete;
  ~TracedProgram();  // kills it if it still runs

  // Waits for the next turn, at most so long.
  TraceTurn wait(std::chrono::milliseconds most);
  // After the end: the status, as of waitpid().
  int status() const { return status_; }

 private:
  void pass_on(int number, bool from_terminal) const;

  pid_t pid_ = -1;
  int status_ = 0;
  bool running_ = false;
  sigset_t before_{};
};

// Ends this process as the program ended: with its exit status, which is returned, or by its signal.
int end_like(int status);

}  // namespace verbscope
