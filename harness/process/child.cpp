#include "harness/process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

// The program that the child executes. Prepared before the fork, because only async-signal-safe calls are allowed after
// it.
struct ChildProgram {
  std::vector<char*> arguments, variables;
  int stdin_fd, stdout_fd, stderr_fd;
  int errors_fd;  // receives an errno if execve fails; closed if it succeeds
};

// Runs in the child: sets up its own process group, no blocked or ignored signals, its input, and the two pipes as
// output. The child is killed when the thread that started it ends.
[[noreturn]] void exec_program(const ChildProgram& image, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  const bool ready = setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                     dup2(image.stdin_fd, STDIN_FILENO) >= 0 && dup2(image.stdout_fd, STDOUT_FILENO) >= 0 &&
                     dup2(image.stderr_fd, STDERR_FILENO) >= 0 && sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
                     std::signal(SIGPIPE, SIG_DFL) != SIG_ERR && std::signal(SIGXFSZ, SIG_DFL) != SIG_ERR;
  if (getppid() != parent) _exit(EXIT_FAILURE);  // the parent ended before prctl
  if (ready) execve(image.arguments[0], image.arguments.data(), image.variables.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(image.errors_fd, &error, sizeof error);
  _exit(EXIT_FAILURE);
}

// Returns the process id.
int spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, int stdin_fd,
          int stdout_fd, int stderr_fd) {
  auto [errors_read, errors_write] = make_pipe();
  ChildProgram image{c_strings(arguments), c_strings(environment), stdin_fd, stdout_fd, stderr_fd, errors_write.get()};
  // `environment` has precedence: of two variables of one name some programs read the first, others the last.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, std::strcspn(*variable, "=") + 1);
    const bool given = std::ranges::any_of(environment, [name](const auto& other) { return other.starts_with(name); });
    if (!given) image.variables.insert(image.variables.end() - 1, *variable);
  }
  const pid_t parent = getpid();
  // fork() would copy the page tables of this process, which takes a twentieth of the time of a short simulated run.
  // The child shares the memory of this process until it executes its program: it must not run what follows.
  const pid_t pid = vfork();
  if (pid == 0) exec_program(image, parent);
  check("vfork", pid);
  errors_write = Fd();
  int error = 0;
  ssize_t got = 0;
  while ((got = read(errors_read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (got <= 0) return pid;
  waitpid(pid, nullptr, 0);
  fail("cannot start {}: {}", arguments[0], errno_text(error));
}

}  // namespace

std::pair<Fd, Fd> make_pipe() {
  int ends[2];
  check("pipe2", pipe2(ends, O_CLOEXEC));
  std::pair<Fd, Fd> out{Fd(ends[0]), Fd(ends[1])};
  check("fcntl", fcntl(ends[1], F_SETFL, O_NONBLOCK));
  return out;
}

void write_whole(const Fd& pipe, std::string_view text) {
  const ssize_t written = write(pipe.get(), text.data(), text.size());
  if (written < 0) throw_errno("write to a pipe", errno);
  if (written != static_cast<ssize_t>(text.size())) fail("the arguments do not fit into a pipe");
}

Child::Child(const std::vector<std::string>& arguments, OutputHook on_stdout,
             const std::vector<std::string>& environment, Fd input, OutputHook on_stderr)
    : on_stdout_(std::move(on_stdout)), on_stderr_(std::move(on_stderr)) {
  if (access(arguments[0].c_str(), X_OK) != 0) fail("cannot start {}: {}", arguments[0], errno_text(errno));
  auto [stdout_read, stdout_write] = make_pipe();
  auto [stderr_read, stderr_write] = make_pipe();
  for (const auto& [ours, childs] : {std::pair(&stdout_read, &stdout_write), {&stderr_read, &stderr_write}}) {
    check("fcntl", fcntl(ours->get(), F_SETFL, O_NONBLOCK));
    check("fcntl", fcntl(childs->get(), F_SETFL, 0));  // the child's writes block
  }
  if (input.get() < 0) input = Fd(check("open /dev/null", open("/dev/null", O_RDONLY | O_CLOEXEC)));
  pid_ = spawn(arguments, environment, input.get(), stdout_write.get(), stderr_write.get());
  running_ = true;
  stdout_ = std::move(stdout_read);
  stderr_ = std::move(stderr_read);
  pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (pidfd_.get() < 0) {
    const int error = errno;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    throw_errno("pidfd_open", error);
  }
}

Child::~Child() {
  if (running_) end(std::chrono::milliseconds(0));
}

bool Child::succeeded() const {
  return !running_ && status_code_ == CLD_EXITED && status_ == 0;
}

bool Child::was_asked_to_end() const {
  return !running_ && status_code_ == CLD_KILLED && (status_ == SIGINT || status_ == SIGTERM || status_ == SIGHUP);
}

std::string Child::end_text() const {
  if (running_) return "still running";
  if (status_code_ == CLD_EXITED) return fmt::format("exit status {}", status_);
  return fmt::format("killed by signal {} ({})", status_, strsignal(status_));
}

std::string Child::end_and_last_line() const {
  return with_last_line(end_text(), tail());
}

std::vector<std::string> Child::tail() const {
  std::vector<std::string> lines(tail_.begin(), tail_.end());
  if (!stdout_partial_.empty()) lines.push_back(printable_ascii(stdout_partial_));
  if (!stderr_partial_.empty()) lines.push_back(printable_ascii(stderr_partial_));
  return lines;
}

void Child::forget_tail() {
  tail_.clear();
  stdout_partial_.clear();
  stderr_partial_.clear();
}

std::array<Fd, 2> Child::copies_of_pipes() const {
  const auto copy = [](const Fd& fd) { return Fd(check("fcntl", fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))); };
  return {copy(stdout_), copy(stderr_)};
}

void Child::signal(int number) {
  if (running_) kill(-pid_, number);  // the child is not reaped yet, so the number is still its own
}

void Child::end(std::chrono::milliseconds patience) {
  if (!running_) return;
  signal(SIGTERM);
  if (wait_for_end(*this, Clock::now() + patience, nullptr) == WaitEnd::satisfied) return;
  signal(SIGKILL);
  wait_for_end(*this, Clock::time_point::max(), nullptr);
}

void Child::add_tail_line(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  tail_.push_back(printable_ascii(std::move(line)));
  if (tail_.size() > kTailLines) tail_.pop_front();
}

void Child::read_stream(Fd& stream, std::string& partial, const OutputHook& hook) {
  // Bounded, so that a child that never stops writing cannot delay the harness past its deadline.
  for (int round = 0; round < 64; ++round) {
    char buffer[4096];
    const ssize_t got = read(stream.get(), buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      stream = Fd();
      return;
    }
    const std::string_view chunk(buffer, static_cast<std::size_t>(got));
    if (hook) hook(chunk);
    for (const char c : chunk) {
      if (c == '\n') {
        add_tail_line(std::exchange(partial, {}));
      } else if (partial.size() < kTailLineBytes) {
        partial.push_back(c);
      }
    }
  }
}

void Child::drain() {
  if (stdout_.get() >= 0) read_stream(stdout_, stdout_partial_, on_stdout_);
  if (stderr_.get() >= 0) read_stream(stderr_, stderr_partial_, on_stderr_);
}

void Child::reap() {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
  kill(-pid_, SIGKILL);  // processes left in its group; the number stays reserved until the wait below
  check("waitid", waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED));
  status_code_ = info.si_code;
  status_ = info.si_status;
  running_ = false;
  drain();
  stdout_ = Fd();
  stderr_ = Fd();
  pidfd_ = Fd();
}

// Polls the descriptors of all children. A class so that it can access Child's private members.
class ChildWaiter {
 public:
  ChildWaiter(const std::vector<Child*>& children, StopSource* stop) : children_(children), stop_(stop) {}

  // Waits for one event, at most until `deadline`, and lets each child read its descriptors.
  void wait_one(Clock::time_point deadline) {
    std::vector<pollfd> polled;
    const auto add = [&polled](int fd) {
      if (fd >= 0) polled.push_back({fd, POLLIN, 0});
    };
    if (stop_ != nullptr) add(stop_->fd());
    for (const Child* child : children_) {
      add(child->stdout_.get());
      add(child->stderr_.get());
      add(child->pidfd_.get());
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    if (poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) throw_errno("poll", errno);
    for (Child* child : children_) {
      if (!child->running_) continue;
      child->drain();
      child->reap();
    }
  }

 private:
  const std::vector<Child*>& children_;
  StopSource* stop_;
};

WaitEnd wait_children(const std::vector<Child*>& children, Clock::time_point deadline, StopSource* stop,
                      const std::function<bool()>& satisfied) {
  ChildWaiter waiter(children, stop);
  while (!satisfied()) {
    if (stop != nullptr && stop->pending()) return WaitEnd::interrupted;
    if (Clock::now() >= deadline) return WaitEnd::timeout;
    waiter.wait_one(deadline);
  }
  return WaitEnd::satisfied;
}

WaitEnd wait_for_end(Child& child, Clock::time_point deadline, StopSource* stop) {
  return wait_children({&child}, deadline, stop, [&child] { return !child.running(); });
}

std::string with_last_line(const std::string& end, const std::vector<std::string>& tail) {
  return tail.empty() ? end : end + ": " + tail.back();
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + name;
    if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  fail("{} is not installed: not found in PATH", name);
}

}  // namespace verbscope
