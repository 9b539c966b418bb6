// `verbscope explain` of a traced program: which resource of a cluster it would meet first, and what each finding would
// lift it to.
#pragma once

#include <string>

#include "common/record.hpp"

namespace verbscope {

// Whether the record is one of `verbscope trace`.
bool is_trace(const Record& record);

// `cluster`: as find_config("clusters", cluster) takes it; empty: the one that the record names. Throws UsageError when
// it names none, and Error when the record does not say what its program did.
Json explain_trace_json(const Record& record, const std::string& cluster);
// The same as several lines of `width` columns; ends with a newline.
std::string explain_trace_text(const Record& record, const std::string& cluster, std::size_t width);

}  // namespace verbscope
