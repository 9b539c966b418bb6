// Words for the person: which one was meant, a list of them, lines of a width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// "; did you mean X?" with the one of `candidates` that `word` was probably meant to be: it begins so, or few letters
// are wrong, missing, too many or swapped, whatever their case. Nothing when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "RC, UC or UD".
std::string any_of(const std::vector<std::string>& words);

// Whether two words are the same but for the case of ASCII letters.
bool same_word(std::string_view one, std::string_view other);

// `text` in lines of at most `width` bytes, broken at blanks, and inside of a word that is longer by itself. At least
// one line; a `width` of 0 is no limit.
std::vector<std::string> wrap_words(std::string_view text, std::size_t width);

// Each line of `text` so; those that follow are indented like the first. Ends with a newline where `text` does.
std::string wrap_lines(std::string_view text, std::size_t width);

}  // namespace verbscope
