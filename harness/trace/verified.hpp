// What `--verify` found of the WQEs of a process.
#pragma once

#include <string>

#include "common/json.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

// A line for each context, and one for each kind of difference with its example; empty without --verify.
std::string verified_text(const driver::Summary& process);

// An object for each context: its device, and why it has no queue memory to look at, or how many WQEs were compared and
// how many not, and the differences by their kind.
Json verified_json(const driver::Summary& process);

}  // namespace verbscope
