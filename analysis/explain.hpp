// `verbscope explain`: why a point has the rate that it has.
#pragma once

#include <string>
#include <vector>

#include "analysis/advice.hpp"
#include "analysis/what_if.hpp"

namespace verbscope {

struct Explanation {
  const Record* record = nullptr;
  Diagnosis diagnosis;
  std::vector<Advice> advice;
  const WhatIf* what_if = nullptr;  // where runs were asked for

  // Limits and gains are those of runs.
  bool by_runs() const { return what_if != nullptr && what_if->not_run.empty(); }
  // The limit in one sentence, and what would be the next.
  std::string limit_sentence() const;
  std::string next_sentence() const;
};

// Explains a record that is ok: in closed form, or by what runs said. Both must outlive what is returned.
Explanation explain(const Record& record, const WhatIf* what_if = nullptr);

// The explanation as several lines of `width` columns (TextTable::text); ends with a newline. A failed record has its
// reason.
std::string explain_text(const Record& record, std::size_t width = 0, const WhatIf* what_if = nullptr);
Json explain_json(const Record& record, const WhatIf* what_if = nullptr);

}  // namespace verbscope
