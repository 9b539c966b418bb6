#include "harness/doctor/fact_reader.hpp"

#include <algorithm>

namespace verbscope {
namespace {

constexpr std::size_t kMaxText = 200;

}  // namespace

const Json& fact_at(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

const Json& fact_list(const Json& object, const char* key) {
  static const Json none = Json::array();
  const Json& value = fact_at(object, key);
  return value.is_array() ? value : none;
}

std::string fact_text(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.is_number() ? dump_json(value) : "";
  text.resize(std::min(text.size(), kMaxText));
  std::ranges::replace_if(
      text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

}  // namespace verbscope
