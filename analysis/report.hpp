// `verbscope report`: records as a single page that works offline.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The whole page: style, scripts, chart library, the shown data, and the records themselves. Texts of records are
// embedded as data, never as markup. Omits records beyond `most_record_bytes`, with a note on the page.
std::string report_page(const std::vector<const Record*>& records, std::size_t most_record_bytes = 64u << 20);

}  // namespace verbscope
