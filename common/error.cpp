#include "common/error.hpp"

#include <algorithm>
#include <system_error>

namespace verbscope {

namespace {

// The bytes of the character of UTF-8 that `text` begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes == 0 || bytes > text.size() || byte(0) > 0xf4) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

}  // namespace

std::string on_one_line(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string line;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const auto code = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009f are control characters as well, of two bytes.
    const bool is_high_control = bytes == 2 && code == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (code == '\n') {
      line += "\\n";
    } else if (is_high_control) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[1]));
    } else if (bytes == 0 || code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", code);
    } else {
      line += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
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
