// Formulas for integer options of a sweep, computed from other options: "clients / threads".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// True if the text contains an option name or an operator. "4k" is a plain value.
bool is_formula(std::string_view text);

// The options in the formula. Throws a line that begins with `where` if it contains anything but names, whole numbers,
// + - * / and parentheses.
std::vector<std::string> formula_names(std::string_view text, const std::string& where);

// Throws if a division has a remainder or is by 0, or if the result exceeds 64 bits; passes on what `value_of` throws.
std::int64_t formula_value(std::string_view text, const std::string& where,
                           const std::function<std::int64_t(const std::string& option)>& value_of);

}  // namespace verbscope
