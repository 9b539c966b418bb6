// Words of hosts files, and ranges of host names as in pdsh and Slurm.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// The text in quotes, for messages.
std::string in_quotes(std::string_view text);

// True if `text` consists of letters, digits and `others`, has at most 255 characters and does not begin with '-'. Such
// a word cannot be an option or a command.
bool is_plain(std::string_view text, std::string_view others);

// Throws "WHAT: expected a number from LOW to HIGH, got ...".
int parse_number(std::string_view text, int low, int high, const std::string& what);

// Maximum number of hosts in a file or list.
inline constexpr std::size_t kMaxHosts = 4096;

// "node[01-03,7]" gives node01 node02 node03 node7; "n[0-8/4]" gives n0 n4 n8. With several ranges the last varies
// fastest. Throws, before it allocates the names, for unbalanced or too many brackets, a descending range, or more than
// kMaxHosts names.
std::vector<std::string> expand_host_range(std::string_view pattern, const std::string& where);

// Splits a list at commas outside brackets: "node[01-03,7],me@login" has two patterns. Throws if one is empty.
std::vector<std::string> split_host_list(std::string_view list, const std::string& where);

}  // namespace verbscope
