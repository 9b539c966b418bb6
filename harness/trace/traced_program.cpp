#include "harness/trace/traced_program.hpp"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "common/error.hpp"
#include "common/paths.hpp"
#include "drivers_patch/trace_file.hpp"

namespace verbscope {
namespace {

// This process's environment, with the library first in LD_PRELOAD.
std::vector<std::string> environment_of(const std::filesystem::path& folder, const std::string& nic, bool verify) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  const std::filesystem::path library = program_folder() / driver::kLibrary;
  if (!std::filesystem::exists(library)) fail("{} is not there", library.string());
  std::string preload = std::string(kPreload) + library.string();
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable = *each;
    if (variable.starts_with(kPreload)) {
      preload += ":" + std::string(variable.substr(kPreload.size()));
    } else {
      variables.emplace_back(variable);
    }
  }
  variables.push_back(preload);
  variables.push_back(fmt::format("{}={}", driver::kFolderVariable, folder.string()));
  variables.push_back(fmt::format("{}={}", driver::kNicVariable, nic));
  if (verify) variables.push_back(fmt::format("{}=1", driver::kVerifyVariable));
  return variables;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& each : strings) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

sigset_t signals_of_turns() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGUSR1, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, number);
  return set;
}

}  // namespace

TracedProgram::TracedProgram(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                             const std::string& nic, bool verify) {
  const std::vector<std::string> variables = environment_of(folder, nic, verify);
  const sigset_t turns = signals_of_turns();
  check_errno("pthread_sigmask", pthread_sigmask(SIG_BLOCK, &turns, &before_));
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before_);
  // verbscope ignores these two; the program gets the default.
  sigset_t by_default;
  sigemptyset(&by_default);
  sigaddset(&by_default, SIGPIPE);
  sigaddset(&by_default, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &by_default);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid_, arguments[0].c_str(), nullptr, &attributes, pointers(arguments).data(),
                                 pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    fail("cannot start {}: {}", arguments[0], errno_text(error));
  }
  running_ = true;
}

TracedProgram::~TracedProgram() {
  if (running_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// The terminal already sends its signals to the program too.
void TracedProgram::pass_on(int number, bool from_terminal) const {
  if (!from_terminal) kill(pid_, number);
}

TraceTurn TracedProgram::wait(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  const sigset_t turns = signals_of_turns();
  while (waitpid(pid_, &status_, WNOHANG) == 0) {
    const auto left = std::max(end - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration{0});
    const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{.tv_sec = nanos / 1'000'000'000, .tv_nsec = nanos % 1'000'000'000};
    siginfo_t info{};
    const int number = sigtimedwait(&turns, &info, &timeout);
    if (number < 0 && errno == EAGAIN) return TraceTurn::passed;
    if (number == SIGUSR1) return TraceTurn::asked;
    if (number > 0 && number != SIGCHLD) pass_on(number, info.si_code == SI_KERNEL);
  }
  running_ = false;
  return TraceTurn::ended;
}

int end_like(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(number);
  return 128 + number;
}

}  // namespace verbscope
