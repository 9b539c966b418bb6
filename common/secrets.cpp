#include "common/secrets.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace verbscope {
namespace {

// True if the name ends in a word for a secret, ignoring case.
bool is_secret_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEnds = {"secret", "password", "passwd", "token"};
  std::string low(name);
  std::ranges::transform(low, low.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
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

}  // namespace

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
