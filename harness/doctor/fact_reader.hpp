// Reading facts that may come from another machine: whatever is in them, there is an answer.
#pragma once

#include <string>

#include "common/json.hpp"

namespace verbscope {

// The value under `key`; null when `object` is no object or has none.
const Json& fact_at(const Json& object, const char* key);
// The array under `key`; an empty one when there is none.
const Json& fact_list(const Json& object, const char* key);
// A string or a number as text that is safe to print: at most 200 printable characters. Empty for anything else.
std::string fact_text(const Json& value);

}  // namespace verbscope
