// Parser for the JSON of perftest 4.5: names and words without quotes, a comma after the last member.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "common/json.hpp"

namespace verbscope {

struct LooseJson {
  Json value;
  std::size_t length;  // length of its text
};

// Parses the object at the beginning of `text`. Empty if there is none or it is truncated. A word without quotes is a
// number, a Boolean or a string. The last of several members with one name counts.
std::optional<LooseJson> read_loose_json(std::string_view text);

}  // namespace verbscope
