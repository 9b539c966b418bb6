#include "common/error.hpp"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include "common/text.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxQuotedBytes = 60, kMaxWordBytes = 255, kMaxMessageBytes = 2000;

// The first `bytes` bytes of a longer text, without a partial character, and "...".
std::string cut(std::string_view text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes)) + "...";
}

}  // namespace

std::string on_one_line(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f; };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string line;
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    if (code == '\n') {
      line += "\\n";
    } else if (bytes == 0 || is_control(code)) {
      line += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(code));
    } else if (is_invisible(code)) {
      line += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
    } else {
      line += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return line;
}

std::string with_short_values(std::string_view text) {
  std::string out;
  bool quoted = false;
  while (!text.empty()) {
    // A value in quotes, or a word outside quotes.
    const std::size_t end = std::min(text.find_first_of(quoted ? "\"" : "\" \n"), text.size());
    const std::string_view part = text.substr(0, end);
    out += part.size() <= (quoted ? kMaxQuotedBytes : kMaxWordBytes) ? std::string(part) : cut(part, kMaxQuotedBytes);
    if (end < text.size()) {
      if (text[end] == '"') quoted = !quoted && text.find('"', end + 1) != text.npos;
      out += text[end];
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (out.size() <= kMaxMessageBytes) return out;
  constexpr std::size_t kTail = kMaxMessageBytes / 4;  // the end has the reason
  std::string_view tail = std::string_view(out).substr(out.size() - kTail);
  while ((static_cast<unsigned char>(tail.front()) & 0xc0) == 0x80) tail.remove_prefix(1);
  return cut(out, kMaxMessageBytes - kTail) + std::string(tail);
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
