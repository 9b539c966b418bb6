#include "common/error.hpp"

#include <system_error>

namespace verbscope {

std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += c;
    }
  }
  return line;
}

std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

void throw_errno(const std::string& what, int error_number) {
  fail("{}: {}", what, errno_text(error_number));
}

int check(const std::string& what, int result) {
  if (result == -1) throw_errno(what, errno);
  return result;
}

void check_errno(const std::string& what, int error_number) {
  if (error_number != 0) throw_errno(what, error_number);
}

}  // namespace verbscope
