// An integer option of a sweep that follows from other options: "clients / threads".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

// True for text with an option's name or an operator; "4k" is a value.
bool is_formula(std::string_view text);

// The options that the formula names. Throws a line that begins with `where` unless it consists of names, whole
// numbers,
// + - * / and parentheses.
std::vector<std::string> formula_names(std::string_view text, const std::string& where);

// Throws for a division that leaves a remainder or is by 0, for a result that 64 bits do not hold, and what `value_of`
// throws.
std::int64_t formula_value(std::string_view text, const std::string& where,
                           const std::function<std::int64_t(const std::string& option)>& value_of);

}  // namespace verbscope
