#include "tools/calibrate/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/error.hpp"
#include "harness/evidence/evidence.hpp"

namespace verbscope {
namespace {

// Begin and end in `text` of the value under `path` ("section.key.value").
std::pair<std::size_t, std::size_t> find_value(const std::string& text, const std::string& path,
                                               const std::string& where) {
  std::size_t at = 0;
  std::string rest = path;
  while (!rest.empty()) {
    const std::string key = '"' + rest.substr(0, rest.find('.')) + '"';
    rest.erase(0, std::min(rest.find('.'), rest.size() - 1) + 1);
    while (true) {
      at = text.find(key, at);
      if (at == std::string::npos) fail("{}: cannot find {} in the text", where, path);
      at += key.size();
      const std::size_t colon = text.find_first_not_of(" \t\r\n", at);
      if (colon != std::string::npos && text[colon] == ':') {
        at = colon + 1;
        break;
      }
    }
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
  const std::size_t end = text[begin] == '"' ? text.find('"', begin + 1) + 1 : text.find_first_of(",} \t\r\n", begin);
  return {begin, std::min(end, text.size())};
}

void replace_value(std::string& text, const std::string& path, const Json& value, const std::string& where) {
  const auto [begin, end] = find_value(text, path, where);
  text.replace(begin, end - begin, dump_json(value));
}

Json parameter_json(const CalibratedParameter& parameter, double value) {
  return parameter.integer ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

}  // namespace

bool is_share(const CalibratedParameter& parameter) {
  return parameter.name.ends_with("_share") || parameter.name.ends_with("_probability");
}

double rounded_value(const CalibratedParameter& parameter, double value) {
  return parameter.integer ? std::max(1.0, std::round(value)) : std::stod(fmt::format("{:.5g}", value));
}

Json with_values(Json profile, const std::vector<CalibratedParameter>& parameters, const std::vector<double>& values) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    profile[parameters[i].pointer / "value"] = parameter_json(parameters[i], rounded_value(parameters[i], values[i]));
  }
  return profile;
}

std::string replace_parameters(std::string text, const std::vector<CalibratedParameter>& parameters, Json profile,
                               const std::string& row, const std::string& where) {
  for (const CalibratedParameter& parameter : parameters) {
    profile[parameter.pointer / "row"] = row;
    for (const char* key : {"value", "row"}) {
      replace_value(text, parameter.name + "." + key, profile.at(parameter.pointer / key), where);
    }
  }
  if (parse_json_text(text, where) != profile) fail("{}: the text with the new values does not match them", where);
  return text;
}

std::vector<std::vector<std::size_t>> folds(std::size_t size, std::size_t count, std::uint64_t seed) {
  const std::vector<std::size_t> all = shuffled(size, size, seed);
  std::vector<std::vector<std::size_t>> out(count);
  for (std::size_t i = 0; i < size; ++i) out[i % count].push_back(all[i]);
  for (auto& fold : out) std::ranges::sort(fold);
  return out;
}

}  // namespace verbscope
