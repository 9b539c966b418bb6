#include "harness/evidence/calibrated_parameters.hpp"

#include <algorithm>
#include <cmath>

namespace verbscope {
namespace {

using Pointer = nlohmann::json_pointer<std::string>;

void collect(const Json& node, const Pointer& at, const std::string& name, const std::string& where,
             std::vector<CalibratedParameter>& out) {
  if (!node.is_object()) return;
  if (node.contains("value") && node.value("source", Json()) == "calibrated") {
    const std::string what = where + ": " + name;
    JsonFields fields(node, what);
    const Json& value = fields.at("value");
    if (value.is_string()) return;  // a choice between mechanisms, which no fit moves
    if (!value.is_number() || !(value.get<double>() > 0)) fields.fail_key("value", "expected a number above 0 to fit");
    out.push_back({.pointer = at,
                   .name = name,
                   .row = fields.require<std::string>("row"),
                   .integer = value.is_number_integer(),
                   .value = value.get<double>()});
    return;
  }
  for (const auto& [key, child] : node.items()) {
    collect(child, at / key, name.empty() ? key : name + "." + key, where, out);
  }
}

// The place in `text` of what stands behind the keys of `path` ("section.key.value"), one after the other.
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

bool CalibratedParameter::is_share() const {
  return name.ends_with("_share") || name.ends_with("_probability");
}

std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where) {
  std::vector<CalibratedParameter> out;
  collect(profile, Pointer(), "", where, out);
  return out;
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

std::string rewritten(std::string text, const std::vector<CalibratedParameter>& parameters, Json profile,
                      const std::string& row, const std::string& where) {
  for (const CalibratedParameter& parameter : parameters) {
    profile[parameter.pointer / "row"] = row;
    for (const char* key : {"value", "row"}) {
      replace_value(text, parameter.name + "." + key, profile.at(parameter.pointer / key), where);
    }
  }
  if (parse_json_text(text, where) != profile) fail("{}: cannot place the new values in the text", where);
  return text;
}

}  // namespace verbscope
