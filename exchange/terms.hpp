// What each side of a run tells of itself, and on what both must agree.
#pragma once

#include <string>

#include "common/json.hpp"

namespace verbscope {

struct Terms {
  std::string benchmark;             // "send_rate"
  std::string version;               // the program's version
  std::string commit;                // of the sources that it was built from
  bool any_build = false;            // this side runs with one of another version or commit
  Json parameters = Json::object();  // everything else on which both sides must agree
};

Json to_json(const Terms& terms);
// Throws when members are missing, unknown or of a wrong type.
Terms parse_terms(const Json& body);

// Empty when the two agree; otherwise each differing item with both values, "post_list (here 16, there 4)". Builds
// differ in version or commit, unless one of the two runs with any.
std::string describe_mismatch(const Terms& here, const Terms& there);

}  // namespace verbscope
