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

constexpr double kMaxFactor = 4;  // between a parameter and its value in the profile, up or down

// The group of a parameter, as the table of learnable ones has it.
ParameterGroup group_of(const std::string& name) {
  const auto known = learnable_parameters();
  const auto found = std::ranges::find(known, name, &LearnableParameter::name);
  return found != known.end() ? found->group : ParameterGroup::cpu;
}

}  // namespace

std::vector<FitParameter> fit_parameters(const std::vector<CalibratedParameter>& parameters) {
  std::vector<FitParameter> out;
  for (const CalibratedParameter& each : parameters) {
    const bool share = each.name.ends_with("_share") || each.name.ends_with("_probability");
    const double low = each.value / kMaxFactor, high = each.value * kMaxFactor;
    out.push_back({.name = each.name,
                   .start = each.value,
                   .low = each.integer ? std::max(1.0, std::ceil(low)) : low,
                   .high = share ? std::min(1.0, high) : high,
                   .integer = each.integer,
                   .group = group_of(each.name)});
  }
  return out;
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
