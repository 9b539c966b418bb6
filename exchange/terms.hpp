// The properties of a run that both sides send, and on which they must agree.
#pragma once

#include <string>

#include "common/json.hpp"

namespace verbscope {

struct Terms {
  std::string benchmark;             // "send_rate"
  std::string version;               // the program's version
  std::string commit;                // commit of the sources it was built from
  bool any_build = false;            // this side accepts another version or commit
  Json parameters = Json::object();  // all other properties that must agree
};

Json to_json(const Terms& terms);
// Throws if members are missing, unknown or of a wrong type.
Terms parse_terms(const Json& body);

// Empty if the two agree; else each difference with both values, "post_list (here 16, there 4)". Another version or
// commit is a difference unless one side sets any_build.
std::string describe_mismatch(const Terms& here, const Terms& there);

}  // namespace verbscope
