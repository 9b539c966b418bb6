// The CSV output of Intel PCM's pcm-pcie: lines of cache and of MMIO that PCIe traffic moves, counted in the CPU's
// caching agents, summed over the sockets. Columns and their meaning differ by generation of the CPU
// (docs/counters.md).
#pragma once

#include "counters/tool_format.hpp"

namespace verbscope {

struct PcmPcieGeneration {
  std::string cpus;                  // "Haswell to Cascade Lake"
  std::vector<std::string> columns;  // in whatever order, among others
  std::uint32_t groups;              // groups of events that take turns in an interval
  std::vector<EventRule> rules;
  std::string blind;
};

// Every generation that pcm-pcie knows, oldest first.
const std::vector<PcmPcieGeneration>& pcm_pcie_generations();

class PcmPcieFormat final : public ToolFormat {
 public:
  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override;
  std::string blind() const override;
  // pcm-pcie divides an interval among its groups of events, each for a whole number of milliseconds, and multiplies a
  // group's counts by the number of groups. Releases that sleep twice round the milliseconds up.
  double counted_s(std::uint32_t asked_ms, bool sleeps_twice) const override;
  // The generation of CPUs that the header shows; null before the first header.
  const PcmPcieGeneration* generation() const { return generation_; }

 private:
  void take_header(const Fields& fields);

  const PcmPcieGeneration* generation_ = nullptr;
  std::size_t socket_field_ = 0;
  std::vector<std::string> names_;  // of the counts in each field; empty: not counted
};

}  // namespace verbscope
