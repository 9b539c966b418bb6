// What a traced program did with each queue, as a record keeps it for whoever reckons with it later.
#pragma once

#include <string>

#include "common/json.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

Json program_json(const driver::Summary& program);

// Of the summary that limits_of() and find_costs() read. Throws Error with `where`.
driver::Summary program_from_json(const Json& json, const std::string& where);

}  // namespace verbscope
