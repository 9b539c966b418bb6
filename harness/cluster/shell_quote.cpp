#include "harness/cluster/shell_quote.hpp"

#include "common/error.hpp"

namespace verbscope {

std::string shell_quote(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) fail("an argument has a null byte");
    if (!out.empty()) out += ' ';
    out += '\'';
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace verbscope
