// Rows of a measured set in a small form, and their outcomes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope::test {

inline constexpr const char* kForms = R"({"schema": "verbscope.measured/1", "forms": [
  {"set": "toy", "file": "toy.csv", "cluster": "$cluster", "value": "mops", "ignored": ["spread"],
   "columns": ["cluster", "verb", "window", "batch", "mops", "spread", "source"],
   "curves": [{"along": "window", "with": ["batch"]}],
   "runs": [
     {"benchmark": "send_rate", "metric": "rate_mops", "options": {"size": "$window", "connection": "RC"}},
     {"when": {"verb": ["WRITE"]}, "options": {"post_list": 1}},
     {"when": {"source": ["~uc_"]}, "options": {"connection": "UC"}},
     {"when": {"source": ["~abc"]}, "by_shape": true},
     {"when": {"source": ["elsewhere"]}, "cluster": "cx3", "options": {"window": "$window/4"}},
     {"when": {"verb": ["LATENCY"]}, "metric": "lat_p50_ns", "scale": 1000, "profile": {"wire.mtu_bytes": "$batch"}},
     {"when": {"verb": ["CAS"]}, "not_modelled": "not modelled: no CAS"}]}]})";

inline std::vector<EvidenceRow> rows_of(const std::string& lines) {
  return MeasuredForms(Json::parse(kForms), "forms")
      .rows("cluster,verb,window,batch,mops,spread,source\n" + lines, "t.csv");
}

// Outcomes whose figures are ours; the rows must outlive them.
inline std::vector<EvidenceOutcome> outcomes_of(const std::vector<EvidenceRow>& rows, const std::vector<double>& ours) {
  std::map<std::string, Record> records;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Record record = fake_record("sim:cib");
    record.result["rate_mops"] = ours[i];
    records.emplace(runs_of(rows[i].point).at(0).identity(), record);
  }
  return evidence_outcomes(rows, records);
}

}  // namespace verbscope::test
