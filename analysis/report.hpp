// `verbscope report`: records as one page that opens offline.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The whole page: style, scripts, chart library, what is shown, and the records themselves. Texts of records are data
// in it, never markup. Records over `most_record_bytes` are left out of it, and the page says so.
std::string report_page(const std::vector<const Record*>& records, std::size_t most_record_bytes = 64u << 20);

}  // namespace verbscope
