// Output of NVIDIA NEO-Host for a ConnectX-5 or later (get_device_performance_counters.py): a table with two halves. On
// the left are counters of the adapter, such as hits and misses of its caches; on the right are values derived from
// them, such as bandwidth and latency of PCIe.
#pragma once

#include "counters/tool_format.hpp"

namespace verbscope {

class NeoHostFormat final : public ToolFormat {
 public:
  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override { return {}; }
  std::string blind() const override;
  // The numbers are assumed to be per second.
  double counted_s(std::uint32_t, bool) const override { return 1; }
  // The right half of the last table: {"PCIe Avg Latency [NS]": 403}.
  Json extra() const override { return {{"analysis", analysis_}}; }

 private:
  bool seen_ = false;  // the first header was read
  Json analysis_ = Json::object();
};

}  // namespace verbscope
