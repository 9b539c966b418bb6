#include "harness/what_if/twice.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

namespace verbscope {
namespace {

// The value of "section.key" in the profile; null if it has none.
Json* value_in(Json& profile, std::string_view name) {
  const std::string section(name.substr(0, name.find('.'))), key(name.substr(name.find('.') + 1));
  if (!profile.contains(section) || !profile[section].contains(key)) return nullptr;
  Json& value = profile[section][key]["value"];
  return value.is_number() ? &value : nullptr;
}

void halve(Json& value) {
  value = value.get<double>() / 2;
}

void twice_of(Json& value) {
  if (value.is_number_integer()) {
    value = value.get<std::int64_t>() * 2;
  } else {
    value = value.get<double>() * 2;
  }
}

}  // namespace

bool can_double(const Json& profile, Resource resource) {
  Json copy = profile;
  const auto counts = [&copy](std::string_view name) {
    const Json* value = value_in(copy, name);
    return value != nullptr && value->get<double>() > 0;
  };
  const ResourceFacts& of = facts(resource);
  return std::ranges::any_of(of.halved, counts) || std::ranges::any_of(of.doubled, counts);
}

Json profile_with_twice(Json profile, const std::vector<Resource>& resources) {
  std::set<std::string_view> halved, doubled;
  for (const Resource resource : resources) {
    const ResourceFacts& of = facts(resource);
    halved.insert(of.halved.begin(), of.halved.end());
    doubled.insert(of.doubled.begin(), of.doubled.end());
  }
  for (const std::string_view name : halved) {
    if (Json* value = value_in(profile, name)) halve(*value);
  }
  for (const std::string_view name : doubled) {
    if (Json* value = value_in(profile, name)) twice_of(*value);
  }
  return profile;
}

Json twice_as_fast(Json profile) {
  for (const char* section : {"host", "link", "nic", "fabric"}) {
    if (!profile.contains(section)) continue;
    for (auto& [key, parameter] : profile[section].items()) {
      if (!key.ends_with("_ns")) continue;
      if (Json* value = value_in(profile, std::string(section) + "." + key)) halve(*value);
    }
  }
  for (const char* name : {"wire.pcie_lanes", "wire.port_gbit_per_s"}) {
    if (Json* value = value_in(profile, name)) twice_of(*value);
  }
  return profile;
}

std::vector<std::string> assumed_parameters(const Json& profile, const std::vector<Resource>& resources) {
  std::set<std::string> out;
  for (const Resource resource : resources) {
    std::vector<std::string> names;
    bool all = true;
    for (const auto* parameters : {&facts(resource).halved, &facts(resource).doubled}) {
      for (const std::string_view name : *parameters) {
        const std::string section(name.substr(0, name.find('.'))), key(name.substr(name.find('.') + 1));
        if (!profile.contains(section) || !profile[section].contains(key)) continue;
        all = all && profile[section][key].value("source", "") == "assumed";
        names.emplace_back(name);
      }
    }
    if (all) out.insert(names.begin(), names.end());
  }
  return {out.begin(), out.end()};
}

}  // namespace verbscope
