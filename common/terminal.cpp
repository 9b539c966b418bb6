#include "common/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMaxWarnings = 10;
// Bytes per write: a writable pipe has room for this much, and usually a terminal too.
constexpr std::size_t kWriteBytes = 1024;
constexpr std::size_t kMinTerminalWidth = 40;
constexpr const char* kStandardOutput = "cannot write to standard output";

const char* program_name = "verbscope";
std::atomic<int> output_stop{-1};

// Waits until `fd` is writable or has an error. Throws if a stop arrives first.
void wait_for_room(int fd) {
  const int stop = output_stop.load();
  if (fd < 0 || stop < 0) return;
  std::array<pollfd, 2> descriptors{{{fd, POLLOUT, 0}, {stop, POLLIN, 0}}};
  while (poll(descriptors.data(), descriptors.size(), -1) < 0 && errno == EINTR) {
  }
  if (descriptors[0].revents == 0 && descriptors[1].revents != 0)
    throw InterruptedError("interrupted while waiting for the reader of the output");
}

// Attributes of ECMA-48 (SGR).
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kPlain = "\x1b[0m";

// The words to highlight, and their colours.
constexpr std::array<std::pair<std::string_view, const char*>, 2> kHighlights{
    {{"SIMULATED", kYellow}, {"FAILED", kRed}}};

std::string with_highlights(std::string text) {
  for (const auto& [word, colour] : kHighlights) {
    const std::string shown = fmt::format("{}{}{}", colour, word, kPlain);
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + shown.size())) {
      text.replace(at, word.size(), shown);
    }
  }
  return text;
}

void print_escaped(std::FILE* out, const std::string& text) {
  const std::size_t max_bytes = output_stop.load() < 0 ? text.size() : kWriteBytes;
  for (std::string_view left = text; !left.empty(); left.remove_prefix(std::min(left.size(), max_bytes))) {
    const std::string_view piece = left.substr(0, max_bytes);
    wait_for_room(fileno(out));
    if (std::fwrite(piece.data(), 1, piece.size(), out) != piece.size() || std::fflush(out) != 0) {
      if (errno == EPIPE && out == stdout) throw BrokenPipe(fmt::format("{}: {}", kStandardOutput, errno_text(errno)));
      throw_errno(kStandardOutput, errno);
    }
  }
}

// Prints `line` on standard error after `beginning` in `colour`.
void print_prefixed(const char* colour, const std::string& beginning, const std::string& line) {
  const bool in_colour = shows_colours(stderr);
  std::fputs(fmt::format("{}{}{} {}\n", in_colour ? colour : "", beginning, in_colour ? kPlain : "",
                         on_one_line(with_short_values(line)))
                 .c_str(),
             stderr);
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

std::size_t terminal_width(std::FILE* out) {
  winsize size{};
  if (isatty(fileno(out)) == 0 || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
  return std::max<std::size_t>(size.ws_col, kMinTerminalWidth);
}

bool shows_colours(std::FILE* out) {
  const auto is_set = [](const char* text) { return text != nullptr && *text != '\0'; };
  const char* const terminal = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && !is_set(std::getenv("NO_COLOR")) && is_set(terminal) &&
         std::string_view(terminal) != "dumb";
}

std::string emphasised(std::string_view text) {
  return fmt::format("{}{}{}", kBold, text, kPlain);
}

void print_text(std::FILE* out, std::string_view text) {
  print_escaped(out, shows_colours(out) ? with_highlights(for_terminal(text)) : for_terminal(text));
}

void print_own_text(std::FILE* out, std::string_view text) {
  print_escaped(out, std::string(text));
}

void rewrite_line(std::FILE* out, std::string_view line) {
  print_escaped(out, "\r" + on_one_line(line));
}

void check_standard_output() {
  if (std::fflush(stdout) != 0 || !std::cout.flush()) throw_errno(kStandardOutput, errno);
  if (std::ferror(stdout) != 0) fail("{}: some output was lost", kStandardOutput);
}

void drop_blocked_output() {
  pollfd descriptors{STDOUT_FILENO, POLLOUT, 0};
  if (poll(&descriptors, 1, 0) == 0) __fpurge(stdout);
}

void print_error(const std::string& line) {
  print_prefixed(kRed, fmt::format("{}:", program_name), line);
}

void warn(const std::string& line) {
  print_prefixed(kYellow, fmt::format("{}: warning:", program_name), line);
}

Warnings::~Warnings() {
  if (count_ > kMaxWarnings) warn(fmt::format("{}: in total {} {}", subject_, count_, what_));
}

void Warnings::add(const std::string& warning) {
  if (++count_ <= kMaxWarnings) warn(warning);
}

void set_output_stop(int fd) {
  output_stop.store(fd);
}

void write_all(int fd, std::string_view text, const std::string& what) {
  while (!text.empty()) {
    wait_for_room(fd);
    // A larger write could block in a pipe with less room.
    const std::size_t max_bytes = output_stop.load() < 0 ? text.size() : kWriteBytes;
    const ssize_t n = write(fd, text.data(), std::min(text.size(), max_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(what, errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace verbscope
