// Reads the table of ucx_perftest, and its CSV (-v).
#pragma once

#include <string>

#include "harness/import/tool_output.hpp"

namespace verbscope {

class UcxOutput final : public ToolOutput {
 public:
  bool take(std::string_view line, std::vector<Imported>& out) override;

 private:
  bool take_fact(std::string_view line);
  bool take_row(const std::vector<double>& numbers, std::vector<Imported>& out) const;

  Json facts_ = Json::object();
  bool in_table_ = false, in_csv_ = false;
  bool latency_ = false;  // the times are latencies; else times per post
  double percentile_ = 50;
};

}  // namespace verbscope
