// Decodes UTF-8, and classifies characters that control a terminal or are invisible.
#pragma once

#include <cstddef>
#include <string_view>

namespace verbscope {

struct Character {
  std::size_t bytes = 0;  // 0: not UTF-8; `code` is then the byte
  char32_t code = 0;
};

// The first character of `text`, which must not be empty.
inline Character first_character(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xc2 ? 0 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes == 0 || bytes > text.size() || byte(0) > 0xf4) return {0, byte(0)};
  char32_t code = bytes == 1 ? byte(0) : byte(0) & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, byte(0)};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  return {bytes, code};
}

// True for control characters (ASCII and C1).
inline bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

// True for characters that change the text direction, join text, break the line, or are invisible.
inline bool is_unseen(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code == 0xad || code == 0x61c || code == 0x180e || within(0x200b, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2060, 0x206f) || code == 0xfeff || within(0xfff9, 0xfffb) || within(0xe0000, 0xe0fff);
}

}  // namespace verbscope
