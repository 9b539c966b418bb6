// Text helpers: suggestions for misspelt words, lists, line wrapping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// Returns "; did you mean X?" with the best match in `candidates`: one that begins with `word`, or differs by few
// wrong, missing, extra or swapped letters, ignoring case. Empty if none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "RC, UC or UD".
std::string any_of(const std::vector<std::string>& words);

// True if the words are equal, ignoring the case of ASCII letters.
bool same_word(std::string_view one, std::string_view other);

// Splits `text` into lines of at most `width` bytes, at blanks or within a longer word. At least one line; `width` 0 is
// no limit.
std::vector<std::string> wrap_words(std::string_view text, std::size_t width);

// Wraps each line of `text`; continuation lines are indented like the first. Ends with a newline if `text` does.
std::string wrap_lines(std::string_view text, std::size_t width);

}  // namespace verbscope
