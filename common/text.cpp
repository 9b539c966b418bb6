#include "common/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace verbscope {
namespace {

std::string in_lower_case(std::string_view word) {
  std::string out(word);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return out;
}

// Edit distance: the number of letters to replace, remove, insert or swap with a neighbour (optimal string alignment).
std::size_t distance(std::string_view one, std::string_view other) {
  std::array<std::vector<std::size_t>, 3> rows;  // the row before the last, the last row, this row
  for (auto& row : rows) row.resize(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) rows[2][j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
    rows[2][0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = rows[1][j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      rows[2][j] = std::min({replaced, rows[1][j] + 1, rows[2][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) rows[2][j] = std::min(rows[2][j], rows[0][j - 2] + 1);
    }
  }
  return rows[2].back();
}

// True if the name ends in a word for a secret, ignoring case.
bool is_secret_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEnds = {"secret", "password", "passwd", "token"};
  const std::string low = in_lower_case(name);
  return std::ranges::any_of(kEnds, [&low](std::string_view end) { return low.ends_with(end); });
}

// Calls visit(word, offset) for each secret value, which extends to the end of its word.
template <class Words, class Visit>
void each_secret(const Words& words, Visit&& visit) {
  bool next = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (next) visit(i, std::size_t{0});
    const std::size_t equals = word.find('=');
    const bool named = !next && is_secret_name(word.substr(0, equals));
    next = named && equals == word.npos && word.starts_with("--");
    if (named && equals != word.npos) visit(i, equals + 1);
  }
}

constexpr std::size_t kMaxWordLength = 64;
constexpr std::size_t kMinPrefix = 3;

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxWordLength) return "";
  const std::string given = in_lower_case(word);
  const std::string* best = nullptr;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::string lower = in_lower_case(candidate);
    const bool is_prefix = given.size() >= kMinPrefix && lower.starts_with(given);
    const std::size_t wrong = is_prefix ? 1 : distance(given, lower);
    const std::size_t allowed = std::max<std::size_t>(1, std::min(given.size(), lower.size()) / 3);
    if (wrong <= allowed && wrong < smallest) best = &candidate, smallest = wrong;
  }
  return best == nullptr ? "" : "; did you mean " + *best + "?";
}

std::string or_list(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

bool same_word(std::string_view one, std::string_view other) {
  return in_lower_case(one) == in_lower_case(other);
}

std::vector<std::string> wrap_words(std::string_view text, std::size_t width) {
  if (width == 0) return {std::string(text)};
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t end = text.substr(0, width + 1).rfind(' ');
    if (end == text.npos || end == 0) end = width;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::string wrap_lines(std::string_view text, std::size_t width) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::string indent(std::min(line.size(), line.find_first_not_of(' ')), ' ');
    bool begun = false;
    const std::size_t room = width == 0 ? 0 : std::max(width, indent.size() + 1) - indent.size();
    for (const std::string& part : wrap_words(line.substr(indent.size()), room)) {
      out += (begun ? "\n" : "") + indent + part;
      begun = true;
    }
    if (end == text.npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string printable_ascii(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& each : strings) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

std::string with_digits(double value, int decimals) {
  constexpr int kMaxDecimals = 15;
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.{}f}", value, decimals);
  const int needed = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(needed, decimals, std::max(decimals, kMaxDecimals)));
}

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  const std::vector<std::string> as_given = words;
  each_secret(as_given,
              [&words](std::size_t i, std::size_t offset) { words[i].replace(offset, words[i].npos, "***"); });
  return words;
}

void hide_secrets(int argc, char** argv) {
  const std::vector<std::string> as_given(argv, argv + argc);
  each_secret(as_given, [argv](std::size_t i, std::size_t offset) {
    std::memset(argv[i] + offset, '*', std::strlen(argv[i] + offset));
  });
}

}  // namespace verbscope
