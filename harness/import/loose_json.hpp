// JSON as perftest 4.5 writes it: names and words without quotes, a comma behind the last member.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/json.hpp"

namespace verbscope {

struct LooseJson {
  Json value;
  std::size_t length;  // of its text
};

// The object that `text` begins with; none when it is no object, or cut off. A word without quotes is a number, a truth
// value or a text. Of two members with one name the last counts.
std::optional<LooseJson> read_loose_json(std::string_view text);

}  // namespace verbscope
