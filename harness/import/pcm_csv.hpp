// The CSV of Intel PCM's pcm-pcie and pcm-iio, kept in a file: a record for each interval.
#pragma once

#include <memory>
#include <string>

#include "counters/tool_format.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {

class PcmCsv final : public ToolOutput {
 public:
  // `tool` is "pcm-pcie" or "pcm-iio", which was asked for intervals of this length; the file may say another.
  PcmCsv(std::string tool, std::unique_ptr<ToolFormat> format, double interval_s);

  // Throws Error at a header whose columns are not known.
  bool take(std::string_view line, std::vector<Imported>& out) override;
  void finish(std::vector<Imported>& out) override;

 private:
  std::string tool_;
  std::unique_ptr<ToolFormat> format_;
  double interval_s_;
  Sums sums_;  // of the interval that is being read
  bool damaged_ = false;
  int interval_ = -1;  // counted from 0
};

}  // namespace verbscope
