// Splits lines of text.
#pragma once

#include <algorithm>
#include <string_view>

namespace verbscope {

// `text` without the characters of `blank` at both ends.
inline std::string_view trimmed(std::string_view text, std::string_view blank) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

// Removes the first word from `text` and returns it. A word ends at one of `blank`. Empty at the end.
inline std::string_view take_word(std::string_view& text, std::string_view blank) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(blank)));
  const std::string_view word = text.substr(0, text.find_first_of(blank));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace verbscope
