#include "harness/cluster/shell_quote.hpp"

#include "common/error.hpp"

namespace verbscope {
namespace {

// True if the word needs no quotes. A word with '=' needs them if it looks like an assignment.
bool is_plain(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,@%+-=";
  const bool assigns = !word.starts_with('-') && word.find('=') != std::string::npos;
  return !word.empty() && !assigns && word.find_first_not_of(kPlain) == std::string::npos;
}

}  // namespace

std::string shell_quote(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) fail("an argument has a null byte");
    if (!out.empty()) out += ' ';
    if (is_plain(word)) {
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
