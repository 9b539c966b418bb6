#include "common/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <iostream>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMostWarnings = 10;
// A pipe that can be written to has room for this much, and a terminal mostly has.
constexpr std::size_t kPiece = 1024;
constexpr const char* kStandardOutput = "cannot write to standard output";

const char* program_name = "verbscope";
std::atomic<int> output_stop{-1};

// Waits until `fd` takes something, or says by itself why not. Throws when the stop comes first.
void wait_for_room(int fd) {
  const int stop = output_stop.load();
  if (fd < 0 || stop < 0) return;
  std::array<pollfd, 2> polled{{{fd, POLLOUT, 0}, {stop, POLLIN, 0}}};
  while (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
  if (polled[0].revents == 0 && polled[1].revents != 0) throw InterruptedError("interrupted: nobody takes the output");
}

void print_escaped(std::FILE* out, const std::string& text) {
  const std::size_t most = output_stop.load() < 0 ? text.size() : kPiece;
  for (std::string_view left = text; !left.empty(); left.remove_prefix(std::min(left.size(), most))) {
    const std::string_view piece = left.substr(0, most);
    wait_for_room(fileno(out));
    if (std::fwrite(piece.data(), 1, piece.size(), out) != piece.size() || std::fflush(out) != 0) {
      throw_errno(kStandardOutput, errno);
    }
  }
}

void print_error_line(const std::string& line) {
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

void begin_output(const char* program) {
  program_name = program;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) check("open /dev/null", open("/dev/null", O_RDWR));
  }
}

std::string for_terminal(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    const bool is_last = end == text.npos;
    const bool ends_in_return = !is_last && end > 0 && text[end - 1] == '\r';
    out += on_one_line(text.substr(0, ends_in_return ? end - 1 : end));
    if (is_last) return out;
    out += ends_in_return ? "\r\n" : "\n";
    text.remove_prefix(end + 1);
  }
}

void print_text(std::FILE* out, std::string_view text) {
  print_escaped(out, for_terminal(text));
}

void rewrite_line(std::FILE* out, std::string_view line) {
  print_escaped(out, "\r" + on_one_line(line));
}

void check_standard_output() {
  if (std::fflush(stdout) != 0 || !std::cout.flush()) throw_errno(kStandardOutput, errno);
  if (std::ferror(stdout) != 0) fail("{}: a part of it is lost", kStandardOutput);
}

void drop_blocked_output() {
  pollfd polled{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&polled, 1, 0) == 0) __fpurge(stdout);
}

void tell_error(const std::string& line) {
  print_error_line(fmt::format("{}: {}\n", program_name, on_one_line(line)));
}

void warn(const std::string& line) {
  tell_error("warning: " + line);
}

Warnings::~Warnings() {
  if (count_ > kMostWarnings) warn(fmt::format("{}: {} {}", subject_, count_, what_));
}

void Warnings::add(const std::string& warning) {
  if (++count_ <= kMostWarnings) warn(warning);
}

void set_output_stop(int fd) {
  output_stop.store(fd);
}

void write_all(int fd, std::string_view text, const std::string& what) {
  while (!text.empty()) {
    wait_for_room(fd);
    // More than a piece at a time could block in a pipe that has room for less.
    const std::size_t most = output_stop.load() < 0 ? text.size() : kPiece;
    const ssize_t n = write(fd, text.data(), std::min(text.size(), most));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(what, errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace verbscope
