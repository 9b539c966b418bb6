// Values of options: numbers, numbers of bytes, words, each refused in one line that says what is allowed. As functions
// they throw UsageError; as validators they make of what was given the form that CLI11 reads (for Option::transform).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class Validator;
}

namespace verbscope {

// A number of bytes: "64", "4k", "2M", "1G", in either case; k is 1024 bytes, as message sizes are chosen, M is 1024 k
// and G 1024 M.
std::uint64_t parse_bytes(std::string_view text, const std::string& option, std::uint64_t low, std::uint64_t high);
// The same the other way: 4096 is "4k", 4097 itself.
std::string bytes_text(std::uint64_t bytes);

// The one of `words` that `text` is, whatever its case.
std::string parse_word(std::string_view text, const std::string& option, const std::vector<std::string>& words);

CLI::Validator bytes_between(std::uint64_t low, std::uint64_t high);
// A whole number in decimal digits.
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
// A number that is one: "nan" is in no range.
CLI::Validator number_between(double low, double high);
CLI::Validator one_of(const std::vector<std::string>& words);

}  // namespace verbscope
