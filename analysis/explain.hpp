// `verbscope explain`: why a point has the rate that it has.
#pragma once

#include <string>
#include <vector>

#include "analysis/advice.hpp"

namespace verbscope {

struct Explanation {
  const Record* record = nullptr;
  Diagnosis diagnosis;
  std::vector<Advice> advice;

  // The limit in one sentence, and what would be the next.
  std::string limit_sentence() const;
  std::string next_sentence() const;
};

// Explains a record that is ok.
Explanation explain(const Record& record);

// The explanation as several lines of `width` columns (TextTable::text); ends with a newline. A failed record has its
// reason.
std::string explain_text(const Record& record, std::size_t width = 0);
Json explain_json(const Record& record);

}  // namespace verbscope
