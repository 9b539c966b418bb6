// Errors are exceptions of type Error, which carry one line for the user. `check` converts a failed system call to one.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace verbscope {

// Escapes control characters, characters that change the text direction or are invisible, and bytes that are not UTF-8.
std::string on_one_line(std::string_view text);

// Shortens a message: a value in quotes to 60 bytes, a word longer than 255 bytes, and the whole to 2000. "..."
// replaces the omitted part.
std::string with_short_values(std::string_view text);

// One line for the user. It names the option or operation, the value, and the allowed values. It may contain parts of
// files or peers' messages: control characters are escaped ("\n", "\x1b"), so that it stays one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(on_one_line(with_short_values(text))) {}
};

// The user requested something impossible: the program exits with code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// The user interrupted the program: it exits with code 130 instead of 1.
class InterruptedError : public Error {
 public:
  using Error::Error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

// Checks the result of a system call that returns -1 and sets errno. Returns a good result, else throws "<what>: <errno
// text>".
int check(const std::string& what, int result);

// The same for verbs calls that return an errno value (0 is success), and for those that return a null pointer and set
// errno.
void check_errno(const std::string& what, int error_number);
template <class T>
T* check_pointer(const std::string& what, T* pointer);

std::string errno_text(int error_number);
[[noreturn]] void throw_errno(const std::string& what, int error_number);

template <class T>
T* check_pointer(const std::string& what, T* pointer) {
  if (pointer == nullptr) throw_errno(what, errno);
  return pointer;
}

}  // namespace verbscope
