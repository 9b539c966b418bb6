// What a traced program did with each queue, as JSON in a record, so that limits and findings can be computed later.
#pragma once

#include <string>

#include "common/json.hpp"
#include "drivers_patch/summary.hpp"

namespace verbscope {

Json program_json(const driver::Summary& program);

// Restores the parts of the summary that limits_of() and find_costs() read. Throws Error that names `where`.
driver::Summary program_from_json(const Json& json, const std::string& where);

}  // namespace verbscope
