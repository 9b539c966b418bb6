#include "counters/tool_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxErrorLine = 300;  // bytes; the line becomes part of the record

// File actions and attributes of posix_spawn for the child.
class SpawnActions {
 public:
  SpawnActions() {
    check_errno("posix_spawn_file_actions_init", posix_spawn_file_actions_init(&files));
    check_errno("posix_spawnattr_init", posix_spawnattr_init(&attributes));
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// The other end of a pseudo-terminal, in raw mode. Stays open until the child has it.
Fd open_raw_terminal(int master, std::string& name) {
  check("grantpt", grantpt(master));
  check("unlockpt", unlockpt(master));
  std::array<char, 64> buffer{};
  check_errno("ptsname_r", ptsname_r(master, buffer.data(), buffer.size()));
  name = buffer.data();
  Fd terminal(check("open " + name, open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC)));
  termios settings{};
  check("tcgetattr", tcgetattr(terminal.get(), &settings));
  cfmakeraw(&settings);
  check("tcsetattr", tcsetattr(terminal.get(), TCSANOW, &settings));
  return terminal;
}

}  // namespace

ToolProcess::ToolProcess(const std::vector<std::string>& arguments) : buffer_(1 << 16, '\0') {
  terminal_ = Fd(check("open a pseudo-terminal", posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)));
  std::string name;
  const Fd far_end = open_raw_terminal(terminal_.get(), name);
  int ends[2];
  check("pipe2", pipe2(ends, O_CLOEXEC));
  errors_ = Fd(ends[0]);
  const Fd errors_write(ends[1]);
  check("fcntl", fcntl(errors_.get(), F_SETFL, O_NONBLOCK));
  check("fcntl", fcntl(terminal_.get(), F_SETFL, O_NONBLOCK));
  start(arguments, name, errors_write.get());
}

void ToolProcess::start(const std::vector<std::string>& arguments, const std::string& terminal, int errors) {
  SpawnActions actions;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  // A session leader without a terminal that opens one for reading and writing gets it as its controlling terminal.
  // When the terminal closes, the leader gets SIGHUP.
  posix_spawn_file_actions_addopen(&actions.files, STDOUT_FILENO, terminal.c_str(), O_RDWR, 0);
  posix_spawn_file_actions_addopen(&actions.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.files, errors, STDERR_FILENO);
  std::vector<char*> argv = c_strings(arguments);
  int error = ENOENT;
  // Debian installs the tools in /usr/sbin, which is not in every PATH. NEO-Host installs its tools in no PATH.
  for (const char* folder : {"", "/usr/sbin/", "/usr/local/sbin/", "/opt/neohost/sdk/"}) {
    if (error != ENOENT) break;
    error =
        posix_spawnp(&pid_, (folder + arguments[0]).c_str(), &actions.files, &actions.attributes, argv.data(), environ);
  }
  if (error == ENOENT) fail("{} is not installed (not in PATH, /usr/sbin or /usr/local/sbin)", arguments[0]);
  if (error != 0) fail("cannot start {}: {}", arguments[0], errno_text(error));
  running_ = true;
  handle_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (handle_.get() < 0) {
    const int reason = errno;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    running_ = false;
    throw_errno("pidfd_open", reason);
  }
}

ToolProcess::~ToolProcess() {
  if (running_) end(std::chrono::milliseconds(0));
}

std::string_view ToolProcess::read(int wake, std::chrono::milliseconds limit) {
  if (!running_) return {};
  std::array<pollfd, 4> descriptors{
      {{terminal_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}, {handle_.get(), POLLIN, 0}, {wake, POLLIN, 0}}};
  if (poll(descriptors.data(), descriptors.size(), static_cast<int>(limit.count())) < 0 && errno != EINTR) {
    throw_errno("poll", errno);
  }
  take_errors();
  const ssize_t got = ::read(terminal_.get(), buffer_.data(), buffer_.size());
  if (got > 0) return {buffer_.data(), static_cast<std::size_t>(got)};
  if (got < 0 && errno == EIO) terminal_ = Fd();       // the tool has closed its end
  if ((descriptors[2].revents & POLLIN) != 0) reap();  // only after reading all of its output
  return {};
}

void ToolProcess::take_errors() {
  if (errors_.get() < 0) return;
  std::array<char, 4096> piece;
  const ssize_t got = ::read(errors_.get(), piece.data(), piece.size());
  if (got == 0) errors_ = Fd();
  for (ssize_t i = 0; i < got; ++i) {
    const char c = piece[static_cast<std::size_t>(i)];
    if (c == '\n') {
      if (error_line_.find_first_not_of(" \t\r") != error_line_.npos) last_line_ = error_line_;
      error_line_.clear();
    } else if (error_line_.size() < kMaxErrorLine) {
      error_line_ += c >= 0x20 && c < 0x7f ? c : '?';
    }
  }
}

void ToolProcess::reap() {
  siginfo_t info{};
  rusage usage{};
  // The system call, because the library's waitid does not return the times.
  check("waitid", static_cast<int>(syscall(SYS_waitid, P_PIDFD, handle_.get(), &info, WEXITED, &usage)));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  code_ = info.si_code;
  status_ = info.si_status;
  cpu_s_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  running_ = false;
  take_errors();
  if (!error_line_.empty()) last_line_ = error_line_;
}

bool ToolProcess::ended_well() const {
  return !running_ && code_ == CLD_EXITED && status_ == 0;
}

std::string ToolProcess::end_text() const {
  const std::string how = code_ == CLD_EXITED ? fmt::format("exit status {}", status_)
                                              : fmt::format("killed by signal {} ({})", status_, strsignal(status_));
  return last_line_.empty() ? how : how + ": " + last_line_;
}

void ToolProcess::end(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto signal = [this](int number) { syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0); };
  if (running_) signal(SIGTERM);
  const auto deadline = Clock::now() + patience;
  while (running_ && Clock::now() < deadline) {
    read(-1, std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
  }
  if (!running_) return;
  signal(SIGKILL);
  while (running_) read(-1, std::chrono::milliseconds(100));
}

std::string output_of(const std::vector<std::string>& arguments) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLimit = std::chrono::seconds(5);
  constexpr std::size_t kMaxOutput = 16u << 20;  // bytes
  ToolProcess process(arguments);
  std::string output;
  const auto deadline = Clock::now() + kLimit;
  while (process.running()) {
    output += process.read(-1, std::chrono::milliseconds(100));
    if (Clock::now() > deadline) fail("{} does not end within {} s", arguments[0], kLimit.count());
    if (output.size() > kMaxOutput) fail("{} printed more than {} bytes", arguments[0], kMaxOutput);
  }
  if (!process.ended_well()) fail("{} ended with {}", arguments[0], process.end_text());
  return output;
}

}  // namespace verbscope
