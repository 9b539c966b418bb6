// Processes that programs start, and the wait for their ends. A child of fork(2) begins while its parent waits in real
// time, and a program that begins by exec(2) goes on with the turn of the thread that began it: so the order in which
// processes run does not depend on the host. What posix_spawn(3), system(3) and popen(3) start comes here, too.
#include "simulate/preload/children.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <vector>

#include "simulate/preload/looks.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

// While a thread begins another program; its end means that exec(2) has failed.
class Exec {
 public:
  Exec(const char* file, char* const* environment, bool by_path) : in_simulation_(simulated()) {
    if (!in_simulation_) return;
    if (takes_part(file, environment, by_path)) {
      keep_for_exec();
    } else {
      leave(nullptr);
    }
  }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  ~Exec() {
    if (in_simulation_) exec_has_failed();
  }

 private:
  bool in_simulation_;
};

using Arguments = std::vector<char*>;

// The variable arguments of execl(3) and its like, up to the null.
Arguments arguments_of(const char* first, va_list& rest) {
  Arguments list{const_cast<char*>(first)};
  while (list.back() != nullptr) list.push_back(va_arg(rest, char*));
  return list;
}

[[noreturn]] void run_shell(const char* command) {
  execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  _exit(127);
}

// posix_spawn(3) or posix_spawnp(3). What it has started has begun when this returns.
int spawn(auto* function, pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  if (!simulated()) return function(child, file, actions, attributes, arguments, environment);
  pid_t started = 0;
  const int error = function(&started, file, actions, attributes, arguments, environment);
  if (error != 0) return error;
  if (child != nullptr) *child = started;
  char program[32];
  snprintf(program, sizeof program, "/proc/%d/exe", started);
  if (takes_part(program, environment, false)) ask(Operation::await_start, static_cast<std::int32_t>(started));
  return 0;
}

// The streams of popen(3).
struct Popened {
  FILE* stream;
  pid_t child;
};
std::vector<Popened>& popened() {
  static std::vector<Popened> all;
  return all;
}
pthread_mutex_t popened_lock = PTHREAD_MUTEX_INITIALIZER;

// If a child has ended, waits until that can be seen. A look that said "not yet" would be the last one of a handler of
// SIGCHLD.
void await_end(idtype_t type, id_t id) {
  siginfo_t info{};
  if (REAL(waitid)(type, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  ask(Operation::await_end, info.si_pid);
}
void await_end(pid_t child) {
  if (child > 0) return await_end(P_PID, static_cast<id_t>(child));
  if (child == -1) return await_end(P_ALL, 0);
  await_end(P_PGID, static_cast<id_t>(child == 0 ? getpgrp() : -child));
}

pid_t wait_for(pid_t child, int* status, int options, rusage* usage) {
  int unused = 0;
  int& end = status == nullptr ? unused : *status;
  const pid_t found = look_until((options & WNOHANG) != 0 ? 0 : kNever, true, 0, [&] {
    await_end(child);
    return REAL(wait4)(child, &end, options | WNOHANG, usage);
  });
  // The kernel closes what a process had open before others can wait for its end.
  if (found > 0 && (WIFEXITED(end) || WIFSIGNALED(end))) ask(Operation::await_reaction, found, 0);
  return found;
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED pid_t fork() noexcept {
  if (!simulated()) return REAL(fork)();
  Channel* const reserved = reserve_channel_of_child();
  if (reserved == nullptr) {
    errno = EAGAIN;
    return -1;
  }
  const pid_t child = REAL(fork)();
  if (child == 0) {
    restart_after_fork(*reserved);
  } else if (child < 0) {
    give_back(*reserved);
  } else {
    ask(Operation::await_start, static_cast<std::int32_t>(child));
  }
  return child;
}

// The parent goes on while the child runs: nothing depends on its wait but programs that let the child change its
// memory.
EXPORTED pid_t vfork() noexcept {
  return fork();
}

EXPORTED int execve(const char* file, char* const* arguments, char* const* environment) noexcept {
  const Exec exec(file, environment, false);
  return REAL(execve)(file, arguments, environment);
}

EXPORTED int execv(const char* file, char* const* arguments) noexcept {
  return execve(file, arguments, environ);
}

EXPORTED int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  const Exec exec(file, environment, true);
  return REAL(execvpe)(file, arguments, environment);
}

EXPORTED int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}

EXPORTED int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  char file[32];
  snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
  const Exec exec(file, environment, false);
  return REAL(fexecve)(fd, arguments, environment);
}

EXPORTED int execl(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const Arguments list = arguments_of(first, rest);
  va_end(rest);
  return execv(file, list.data());
}

EXPORTED int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const Arguments list = arguments_of(first, rest);
  va_end(rest);
  return execvp(file, list.data());
}

EXPORTED int execle(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const Arguments list = arguments_of(first, rest);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return execve(file, list.data(), environment);
}

EXPORTED int posix_spawn(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                         const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(REAL(posix_spawn), child, file, actions, attributes, arguments, environment);
}

EXPORTED int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(REAL(posix_spawnp), child, file, actions, attributes, arguments, environment);
}

EXPORTED int system(const char* command) {
  if (!simulated() || command == nullptr) return REAL(system)(command);
  struct sigaction ignored {
  }, interrupt{}, quit{};
  ignored.sa_handler = SIG_IGN;
  sigset_t children, before;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigaction(SIGINT, &ignored, &interrupt);
  sigaction(SIGQUIT, &ignored, &quit);
  sigprocmask(SIG_BLOCK, &children, &before);
  const auto restore = [&] {
    sigaction(SIGINT, &interrupt, nullptr);
    sigaction(SIGQUIT, &quit, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  };
  const pid_t child = fork();
  if (child == 0) {
    restore();
    run_shell(command);
  }
  int status = -1;
  if (child > 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  restore();
  return status;
}

EXPORTED FILE* popen(const char* command, const char* mode) {
  if (!simulated()) return REAL(popen)(command, mode);
  const bool reads = mode[0] == 'r';
  if (!reads && mode[0] != 'w') {
    errno = EINVAL;
    return nullptr;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const int own = ends[reads ? 0 : 1], other = ends[reads ? 1 : 0];
  const int standard = reads ? STDOUT_FILENO : STDIN_FILENO;
  const pid_t child = fork();
  if (child == 0) {
    if (other == standard) {
      fcntl(other, F_SETFD, 0);
    } else {
      dup2(other, standard);
    }
    for (const Popened& each : popened()) close(fileno(each.stream));
    run_shell(command);
  }
  close(other);
  FILE* const stream = child < 0 ? nullptr : fdopen(own, reads ? "r" : "w");
  if (stream == nullptr) {
    close(own);
    return nullptr;
  }
  if (mode[1] != 'e') fcntl(own, F_SETFD, 0);
  pthread_mutex_lock(&popened_lock);
  popened().push_back({stream, child});
  pthread_mutex_unlock(&popened_lock);
  return stream;
}

EXPORTED int pclose(FILE* stream) {
  pthread_mutex_lock(&popened_lock);
  std::vector<Popened>& all = popened();
  const auto found = std::ranges::find(all, stream, &Popened::stream);
  const pid_t child = found == all.end() ? 0 : found->child;
  if (child != 0) all.erase(found);
  pthread_mutex_unlock(&popened_lock);
  if (child == 0) return REAL(pclose)(stream);
  fclose(stream);
  int status = -1;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

EXPORTED int daemon(int keeps_folder, int keeps_files) noexcept {
  if (!simulated()) return REAL(daemon)(keeps_folder, keeps_files);
  const pid_t child = fork();
  if (child > 0) _exit(0);
  if (child < 0 || setsid() < 0) return -1;
  if (keeps_folder == 0 && chdir("/") != 0) return -1;
  if (keeps_files != 0) return 0;
  const int none = open("/dev/null", O_RDWR);
  if (none < 0) return -1;
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) dup2(none, fd);
  if (none > STDERR_FILENO) close(none);
  return 0;
}

EXPORTED pid_t wait4(pid_t child, int* status, int options, rusage* usage) noexcept {
  if (!simulated()) return REAL(wait4)(child, status, options, usage);
  return wait_for(child, status, options, usage);
}

EXPORTED pid_t wait3(int* status, int options, rusage* usage) noexcept {
  return wait4(-1, status, options, usage);
}

EXPORTED pid_t waitpid(pid_t child, int* status, int options) {
  return wait4(child, status, options, nullptr);
}

EXPORTED pid_t wait(int* status) {
  return wait4(-1, status, 0, nullptr);
}

EXPORTED int waitid(idtype_t type, id_t id, siginfo_t* about, int options) {
  if (!simulated()) return REAL(waitid)(type, id, about, options);
  siginfo_t unused{};
  siginfo_t& info = about == nullptr ? unused : *about;
  const int result = look_until((options & WNOHANG) != 0 ? 0 : kNever, true, 0, [&] {
    info.si_pid = 0;
    await_end(type, id);
    if (REAL(waitid)(type, id, &info, options | WNOHANG) != 0) return -1;
    return info.si_pid == 0 ? 0 : 1;
  });
  const bool ended = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  if (result > 0 && ended) ask(Operation::await_reaction, info.si_pid, 0);
  return std::min(result, 0);
}
