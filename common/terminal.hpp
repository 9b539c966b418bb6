// Text for the person, on standard output and error. What comes of records, files and peers is escaped here, so that it
// cannot move a cursor or change a title.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

// What a program begins with: descriptors 0 to 2 that are closed are opened on /dev/null, so that no other file takes
// their place; a pipe that nobody reads and a file over its limit are errors of the write, not signals; `program`
// begins each line on standard error.
void begin_output(const char* program);

// `text` with all control characters but line ends, which may be those of CSV, escaped.
std::string for_terminal(std::string_view text);

// The columns of the terminal that `out` is, at least 40; 0 when it is none: what is no terminal gets whole lines.
std::size_t terminal_width(std::FILE* out);
// Whether `out` is a terminal that shows colours: not with NO_COLOR set, nor with TERM=dumb or none.
bool shows_colours(std::FILE* out);
// `text` as a title on a terminal that shows colours.
std::string emphasised(std::string_view text);

// The reader of standard output has gone, as `head` does: nothing is left to say to it.
class BrokenPipe : public Error {
 public:
  using Error::Error;
};

// Prints it on `out` as for_terminal has it, and flushes; SIMULATED and FAILED stand out where colours are shown.
// Throws Error when it could not be written, BrokenPipe when nobody reads standard output any more, and
// InterruptedError when the stop comes while nobody takes it.
void print_text(std::FILE* out, std::string_view text);
// The same for a format and its arguments.
template <class... Args>
void print_format(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  print_text(out, fmt::format(format, std::forward<Args>(args)...));
}
// Prints text of the program itself, which may be emphasised, as it is. Throws as print_text does.
void print_own_text(std::FILE* out, std::string_view text);
// Prints one line, without its end, over the line that was printed last.
void rewrite_line(std::FILE* out, std::string_view line);
// Throws Error when something printed on standard output, now or before, could not be written.
void check_standard_output();
// Drops what nobody takes from standard output at this moment: a program that was interrupted does not wait for it.
void drop_blocked_output();

// Prints a line "PROGRAM: line", "PROGRAM: warning: line" on standard error, escaped, its beginning in colour where
// colours are shown. Where it cannot be written
// nothing can be said, and nothing is done.
void tell_error(const std::string& line);
void warn(const std::string& line);

// Warnings about one file, or another source of many: the first ten are printed, then their number.
class Warnings {
 public:
  // `subject` is the file, `what` follows their number: "lines in all are not records".
  Warnings(std::string subject, std::string what) : subject_(std::move(subject)), what_(std::move(what)) {}
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  ~Warnings();  // prints the number when there were more
  void add(const std::string& warning);

 private:
  std::string subject_, what_;
  std::size_t count_ = 0;
};

// A descriptor that becomes readable when the program is to stop: it ends waits for output that nobody takes. -1: none.
void set_output_stop(int fd);

// Writes all of it; errors begin with `what`. Throws as print_text does.
void write_all(int fd, std::string_view text, const std::string& what);

}  // namespace verbscope
