// Text: UTF-8 characters, suggestions for misspelt words, lists, line wrapping, numbers from and to text,
// secrets in command lines.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

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

// True for characters that are invisible, change the text direction, join text or break the line.
inline bool is_invisible(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code == 0xad || code == 0x61c || code == 0x180e || within(0x200b, 0x200f) || within(0x2028, 0x202e) ||
         within(0x2060, 0x206f) || code == 0xfeff || within(0xfff9, 0xfffb) || within(0xe0000, 0xe0fff);
}

// Returns "; did you mean X?" with the best match in `candidates`: one that begins with `word`, or differs by few
// wrong, missing, extra or swapped letters, ignoring case. Empty if none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "RC, UC or UD".
std::string or_list(const std::vector<std::string>& words);

// True if the words are equal, ignoring the case of ASCII letters.
bool same_word(std::string_view one, std::string_view other);

// Splits `text` into lines of at most `width` bytes, at blanks or within a longer word. At least one line; `width` 0 is
// no limit.
std::vector<std::string> wrap_words(std::string_view text, std::size_t width);

// Wraps each line of `text`; continuation lines are indented like the first. Ends with a newline if `text` does.
std::string wrap_lines(std::string_view text, std::size_t width);

// The parts of `text` between the separators: at least one, which may be empty.
std::vector<std::string> split(std::string_view text, char separator);

// `text` with '?' in place of each byte that is not printable ASCII, for text of other programs and machines.
std::string printable_ascii(std::string text);

// The strings in execve's format, with a null at the end. The pointers are valid as long as the strings.
std::vector<char*> c_strings(const std::vector<std::string>& strings);

// The number that the whole of `text` is; nothing if it is none, or none that a T can hold.
template <class T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// `value` with this many decimals, but at least three significant digits: 0.000123 also with three decimals.
std::string with_digits(double value, int decimals);

// `words` with "***" in place of each secret value: --secret VALUE, --secret=VALUE, --password, --token, and variables
// such as VERBSCOPE_SECRET=VALUE.
std::vector<std::string> without_secrets(std::vector<std::string> words);

// Overwrites each secret value in this process's command line, which other users can read.
void hide_secrets(int argc, char** argv);

}  // namespace verbscope
