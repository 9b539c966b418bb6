// Results of `--verify`: the WQEs of a process compared with the computed ones.
#pragma once

#include <string>

#include "common/json.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

// One line per context, and one per kind of difference with an example. Empty without --verify.
std::string verified_text(const driver::Summary& process);

// One object per context: its device, and either why its queue memory is not readable, or the numbers of WQEs compared
// and skipped and the differences by kind.
Json verified_json(const driver::Summary& process);

}  // namespace verbscope
