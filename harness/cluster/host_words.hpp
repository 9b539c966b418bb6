// The words of a hosts file: which are harmless, and how they stand in a message.
#pragma once

#include <string>
#include <string_view>

namespace verbscope {

// The text of a host in quotes.
std::string in_quotes(std::string_view text);

// Letters, digits and `others`, at most 255, not beginning with '-': such a word can be no option and no command.
bool is_plain(std::string_view text, std::string_view others);

// Throws "WHAT: expected a number from LOW to HIGH, got ...".
int parse_number(std::string_view text, int low, int high, const std::string& what);

}  // namespace verbscope
