// Quotes arguments for a shell. Needed only for OpenSSH, which passes one string to the remote login shell, and for
// sbatch, which takes a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"

namespace verbscope {

// Returns a string that a POSIX shell splits into exactly these words, whatever they contain. Throws for a word with a
// null byte, which no argument can contain.
inline std::string shell_quote(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@%+-=";
  std::string out;
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) fail("an argument contains a null byte");
    if (!out.empty()) out += ' ';
    // A word such as NAME=value would be an assignment.
    const bool assigns = !word.starts_with('-') && word.find('=') != std::string::npos;
    if (!word.empty() && !assigns && word.find_first_not_of(kPlain) == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace verbscope
