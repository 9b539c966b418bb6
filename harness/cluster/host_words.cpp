#include "harness/cluster/host_words.hpp"

#include <algorithm>
#include <charconv>

#include "common/error.hpp"

namespace verbscope {

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

bool is_plain(std::string_view text, std::string_view others) {
  const auto plain = [others](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && text.size() <= 255 && std::ranges::all_of(text, plain);
}

int parse_number(std::string_view text, int low, int high, const std::string& what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    fail("{}: expected a number from {} to {}, got {}", what, low, high, in_quotes(text));
  }
  return value;
}

}  // namespace verbscope
