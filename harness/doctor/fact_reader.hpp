// Reads facts that may come from another machine. Accepts any content.
#pragma once

#include <string>

#include "common/json.hpp"

namespace verbscope {

// The value of `key`; null if `object` is not an object or has no such key.
const Json& fact_at(const Json& object, const char* key);
// The array in `key`; empty if there is none.
const Json& fact_list(const Json& object, const char* key);
// A string or a number as printable text of at most 200 characters. Empty for any other type.
std::string fact_text(const Json& value);

}  // namespace verbscope
