// A profile with two calibrated parameters.
#pragma once

#include "harness/evidence/calibration.hpp"

namespace verbscope {

inline constexpr const char* kProfile = R"({
  "name": "toy",
  "nic": {
    "units": {"value": 4, "source": "assumed", "cite": "none"},
    "send_ns":   {"value": 100, "source": "calibrated", "row": "send", "cite": "c"},
    "recv": {"recv_ns": {"value": 50.5, "source": "calibrated", "row": "recv", "cite": "c"}}
  }
})";

inline std::vector<CalibratedParameter> toy_parameters() {
  return calibrated_parameters(Json::parse(kProfile), "toy.json");
}

}  // namespace verbscope
