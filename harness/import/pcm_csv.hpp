// Reads CSV files of Intel PCM's pcm-pcie and pcm-iio: one record per interval.
#pragma once

#include <memory>
#include <string>

#include "counters/tool_log.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {

class PcmCsv final : public ToolOutput {
 public:
  // `tool`: "pcm-pcie" or "pcm-iio". `interval_s`: length of the intervals, unless the file contains another.
  PcmCsv(std::string tool, std::unique_ptr<ToolFormat> format, double interval_s);

  // Throws Error for a header with unknown columns.
  bool take(std::string_view line, std::vector<Imported>& out) override;
  void finish(std::vector<Imported>& out) override;

 private:
  std::string tool_;
  std::unique_ptr<ToolFormat> format_;
  double interval_s_;
  Sums sums_;  // of the current interval
  bool damaged_ = false;
  int interval_ = -1;  // counted from 0
};

}  // namespace verbscope
