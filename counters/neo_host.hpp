// The text that NVIDIA NEO-Host prints of a ConnectX-5 or later (get_device_performance_counters.py): a table whose
// left half are counters of the adapter, hits and misses of its caches among them, and whose right half is what
// NEO-Host makes of them, such as the bandwidth and latency of PCIe.
#pragma once

#include "counters/tool_format.hpp"

namespace verbscope {

class NeoHostFormat final : public ToolFormat {
 public:
  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override { return {}; }
  std::string blind() const override;
  // Its numbers are taken for those of a second.
  double counted_s(std::uint32_t, bool) const override { return 1; }
  // The right half, of the last table: {"PCIe Avg Latency [NS]": 403}.
  Json extra() const override { return {{"analysis", analysis_}}; }

 private:
  bool seen_ = false;  // the first header
  Json analysis_ = Json::object();
};

}  // namespace verbscope
