// Parses values of options: numbers, numbers of bytes, words. Errors are one line with the allowed values. The
// functions throw UsageError. The validators rewrite the text to the form that CLI11 parses (for Option::transform).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class Validator;
}

namespace verbscope {

// A number of bytes: "64", "4k", "2M", "1G", in either case. As usual for message sizes, k is 1024 bytes, M is 1024 k
// and G is 1024 M.
std::uint64_t parse_bytes(std::string_view text, const std::string& option, std::uint64_t low, std::uint64_t high);
// The reverse: 4096 gives "4k", 4097 gives "4097".
std::string bytes_text(std::uint64_t bytes);

// The word that equals `text`, ignoring case.
std::string parse_word(std::string_view text, const std::string& option, const std::vector<std::string>& words);

CLI::Validator bytes_between(std::uint64_t low, std::uint64_t high);
// A whole number in decimal digits.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
// A number; "nan" is in no range.
CLI::Validator number_between(double low, double high);
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace verbscope
