// A copy of a profile with other values.
#pragma once

#include <fstream>
#include <map>
#include <string>

#include "common/json.hpp"
#include "common/paths.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope::test {

// Written into `folder`, as the name of a fabric; keys are such as "/nic/atomic_slots".
inline std::string changed_cluster(const TempDir& folder, const std::map<std::string, Json>& values,
                                   const std::string& name = "cib") {
  Json profile = read_json_file(find_config("clusters", name));
  for (const auto& [key, value] : values) profile.at(Json::json_pointer(key + "/value")) = value;
  const auto path = folder / (name + ".json");
  std::ofstream(path) << profile.dump();
  return "sim:" + path.string();
}

}  // namespace verbscope::test
