// `verbscope explain` for a record of `verbscope trace`: the first limits of the program on a cluster, and the rate
// after each finding's change.
#pragma once

#include <string>

#include "common/record.hpp"

namespace verbscope {

bool is_trace(const Record& record);

// `cluster`: a name or path for find_config("clusters", cluster); if empty, the cluster that the record names. Throws
// UsageError if the record names none, and Error if it does not contain the program's requests.
Json explain_trace_json(const Record& record, const std::string& cluster);
// The same as text, wrapped at `width` columns. Ends with a newline.
std::string explain_trace_text(const Record& record, const std::string& cluster, std::size_t width);

}  // namespace verbscope
