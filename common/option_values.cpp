#include "common/option_values.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr std::array<std::pair<char, int>, 3> kSuffixes{{{'g', 30}, {'m', 20}, {'k', 10}}};

std::optional<std::uint64_t> bytes_of(std::string_view text) {
  int shift = 0;
  for (const auto& [letter, bits] : kSuffixes) {
    if (text.empty() || (text.back() | 0x20) != letter) continue;
    shift = bits;
    text.remove_suffix(1);
    break;
  }
  const std::optional<std::uint64_t> number = number_from<std::uint64_t>(text);
  if (!number || *number > UINT64_MAX >> shift) return std::nullopt;
  return *number << shift;
}

std::string bytes_range(std::uint64_t low, std::uint64_t high) {
  return fmt::format("{} to {}", bytes_text(low), bytes_text(high));
}

// Why `text` is not a valid number of bytes; empty if it is.
std::string bytes_refusal(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const std::optional<std::uint64_t> bytes = bytes_of(text);
  if (bytes && *bytes >= low && *bytes <= high) return "";
  return fmt::format("expected bytes, {}, as 64, 4k, 2M or 1G, got \"{}\"", bytes_range(low, high), text);
}

std::string word_refusal(std::string_view text, const std::vector<std::string>& words) {
  if (std::ranges::any_of(words, [&text](const std::string& word) { return same_word(word, text); })) return "";
  return fmt::format("expected {}, got \"{}\"{}", or_list(words), text, did_you_mean(text, words));
}

std::string word_meant(std::string_view text, const std::vector<std::string>& words) {
  return *std::ranges::find_if(words, [&text](const std::string& word) { return same_word(word, text); });
}

// `refuse` returns the reason for refusing a text, or "". `rewrite` is called for accepted texts.
CLI::Validator validator(const std::string& description, const std::function<std::string(const std::string&)>& refuse,
                         const std::function<std::string(const std::string&)>& rewrite) {
  const auto step = [refuse, rewrite](std::string& text) {
    std::string reason = refuse(text);
    if (reason.empty()) text = rewrite(text);
    return reason;
  };
  return {step, description};
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, const std::string& option, std::uint64_t low, std::uint64_t high) {
  const std::string refusal = bytes_refusal(text, low, high);
  if (!refusal.empty()) fail_usage("{}: {}", option, refusal);
  return *bytes_of(text);
}

std::string bytes_text(std::uint64_t bytes) {
  for (const auto& [letter, bits] : kSuffixes) {
    const std::uint64_t unit = std::uint64_t{1} << bits;
    const char shown = letter == 'k' ? 'k' : static_cast<char>(letter - 'a' + 'A');
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes >> bits, shown);
  }
  return std::to_string(bytes);
}

std::string parse_word(std::string_view text, const std::string& option, const std::vector<std::string>& words) {
  const std::string refusal = word_refusal(text, words);
  if (!refusal.empty()) fail_usage("{}: {}", option, refusal);
  return word_meant(text, words);
}

CLI::Validator bytes_between(std::uint64_t low, std::uint64_t high) {
  return validator(
      bytes_range(low, high), [low, high](const std::string& text) { return bytes_refusal(text, low, high); },
      [](const std::string& text) { return std::to_string(*bytes_of(text)); });
}

CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const auto refuse = [low, high](const std::string& text) {
    const std::optional<std::int64_t> number = number_from<std::int64_t>(text);
    if (number && *number >= low && *number <= high) return std::string();
    return fmt::format("expected a whole number, {} to {}, got \"{}\"", low, high, text);
  };
  return validator(fmt::format("{} to {}", low, high), refuse,
                   [](const std::string& text) { return std::to_string(*number_from<std::int64_t>(text)); });
}

CLI::Validator number_between(double low, double high) {
  const auto refuse = [low, high](const std::string& text) {
    const std::optional<double> number = number_from<double>(text);
    if (number && *number >= low && *number <= high) return std::string();
    return fmt::format("expected a number from {:g} to {:g}, got \"{}\"", low, high, text);
  };
  return validator(fmt::format("{:g} to {:g}", low, high), refuse, [](const std::string& text) { return text; });
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return validator(
      or_list(words), [words](const std::string& text) { return word_refusal(text, words); },
      [words](const std::string& text) { return word_meant(text, words); });
}

}  // namespace verbscope
