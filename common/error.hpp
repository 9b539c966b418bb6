// verbscope fails by an Error, which carries one clear line for the person; `check` turns a failed system call into
// one.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace verbscope {

// `text` with control characters, those that turn or hide text, and bytes that are not UTF-8, escaped. It is the one
// place that says how.
std::string on_one_line(std::string_view text);

// A message in which each value in quotes has 60 bytes at most, each word 255, and which is 2000 long at most: "..."
// stands for what is left out.
std::string with_short_values(std::string_view text);

// One line for the person: names the option or the attempt, the value, what is allowed or offered. Text of a file or a
// peer may be a part of it: control characters are escaped here ("\n", "\x1b"), so that it stays one line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(on_one_line(with_short_values(text))) {}
};

// The person asked for something that cannot be: the program ends with exit code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

// The person asked the program to stop: it ends with exit code 130 instead of 1.
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

// Result of a system call that returns -1 and sets errno: passes a good result on, throws "<what>: <errno text>".
int check(const std::string& what, int result);

// `check` for verbs calls that return an errno value (0 is good) and for those that return a null pointer and set
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
