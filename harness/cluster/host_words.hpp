// Checks words of a hosts file, and quotes them in messages.
#pragma once

#include <string>
#include <string_view>

namespace verbscope {

// The text in quotes, for messages.
std::string in_quotes(std::string_view text);

// True if `text` consists of letters, digits and `others`, has at most 255 characters and does not begin with '-'. Such
// a word cannot be an option or a command.
bool is_plain(std::string_view text, std::string_view others);

// Throws "WHAT: expected a number from LOW to HIGH, got ...".
int parse_number(std::string_view text, int low, int high, const std::string& what);

}  // namespace verbscope
