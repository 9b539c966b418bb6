// CSV output of Intel PCM's pcm-pcie: cache lines and MMIO lines of PCIe traffic, counted in the CPU's caching agents,
// summed over the sockets. The columns and their meaning depend on the CPU generation (docs/counters.md).
#pragma once

#include "counters/tool_format.hpp"

namespace verbscope {

struct PcmPcieGeneration {
  std::string cpus;                  // "Haswell to Cascade Lake"
  std::vector<std::string> columns;  // in any order, among others
  std::uint32_t groups;              // event groups that take turns within an interval
  std::vector<EventRule> rules;
  std::string blind;
};

// All generations that pcm-pcie supports, oldest first.
const std::vector<PcmPcieGeneration>& pcm_pcie_generations();

class PcmPcieFormat final : public ToolFormat {
 public:
  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override;
  std::string blind() const override;
  // pcm-pcie divides an interval among its event groups, each for a whole number of milliseconds, and multiplies a
  // group's counts by the number of groups. Releases that sleep twice round the milliseconds up.
  double counted_s(std::uint32_t asked_ms, bool sleeps_twice) const override;
  // The CPU generation, from the header; null before the first header.
  const PcmPcieGeneration* generation() const { return generation_; }

 private:
  void take_header(const Fields& fields);

  const PcmPcieGeneration* generation_ = nullptr;
  std::size_t socket_field_ = 0;
  std::vector<std::string> names_;  // of the count in each field; empty: not counted
};

}  // namespace verbscope
