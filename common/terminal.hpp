// Text on standard output and standard error. Text from records, files and peers is escaped here, so that it cannot
// move the cursor or change a title.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

// Prepares output at the start of a program. Opens closed descriptors 0 to 2 on /dev/null, so that no other file takes
// their number. A pipe without a reader and a file over its size limit become write errors instead of signals.
// `program` begins each line on standard error.
void begin_output(const char* program);

// `text` with all control characters escaped, except line ends, including those of CSV.
std::string for_terminal(std::string_view text);

// The number of columns of the terminal `out`, at least 40; 0 if it is not a terminal: lines are then not wrapped.
std::size_t terminal_width(std::FILE* out);
// True if `out` is a terminal that shows colours: not with NO_COLOR, nor with TERM unset or "dumb".
bool shows_colours(std::FILE* out);
// `text` formatted as a title for a terminal with colours.
std::string emphasised(std::string_view text);

// Standard output has no reader any more, as after `head`. run_main then exits without a message.
class BrokenPipe : public Error {
 public:
  using Error::Error;
};

// Escapes the text with for_terminal, prints it on `out` and flushes; highlights SIMULATED and FAILED if colours are
// shown. Throws Error if it cannot be written, BrokenPipe if standard output has no reader any more, and
// InterruptedError if a stop arrives while the reader does not read.
void print_text(std::FILE* out, std::string_view text);
template <class... Args>
void print_format(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  print_text(out, fmt::format(format, std::forward<Args>(args)...));
}
// Prints the program's own text, which may be emphasised, without escaping. Throws as print_text does.
void print_own_text(std::FILE* out, std::string_view text);
// Prints one line, without a line end, over the previous line.
void rewrite_line(std::FILE* out, std::string_view line);
// Throws Error if any output to standard output has failed so far.
void check_standard_output();
// Discards buffered standard output that the reader does not read, so that an interrupted program does not wait for it.
void drop_blocked_output();

// Prints "PROGRAM: line" or "PROGRAM: warning: line" on standard error, escaped, with a coloured beginning if colours
// are shown. Ignores write errors.
void print_error(const std::string& line);
void warn(const std::string& line);

// Limits warnings about one source, such as a file: prints the first ten, then their total.
class Warnings {
 public:
  // `subject`: the file; `what` follows the total: "lines are not records".
  Warnings(std::string subject, std::string what) : subject_(std::move(subject)), what_(std::move(what)) {}
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  ~Warnings();  // prints the total if there were more
  void add(const std::string& warning);

 private:
  std::string subject_, what_;
  std::size_t count_ = 0;
};

// Sets a descriptor that becomes readable at a stop, which ends waits for a blocked output. -1: none.
void set_output_stop(int fd);

// Writes the whole text. Errors begin with `what`. Throws as print_text does.
void write_all(int fd, std::string_view text, const std::string& what);

}  // namespace verbscope
