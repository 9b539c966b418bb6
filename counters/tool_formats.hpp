// Output formats of the counting tools: Intel PCM's pcm-pcie and pcm-iio, and NVIDIA NEO-Host.
#pragma once

#include <optional>

#include "counters/tool_log.hpp"

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

// CSV output of pcm-pcie: cache lines and MMIO lines of PCIe traffic, counted in the CPU's caching agents, summed over
// the sockets. The columns and their meaning depend on the CPU generation (docs/counters.md).
class PcmPcieFormat final : public ToolFormat {
 public:
  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override;
  std::string blind() const override;
  // pcm-pcie divides an interval among its event groups, each for a whole number of milliseconds, and multiplies a
  // group's counts by the number of groups. Releases that sleep twice round the milliseconds up.
  double counted_s(std::uint32_t asked_ms, bool sleeps_twice) const override;

 private:
  void take_header(const Fields& fields);

  const PcmPcieGeneration* generation_ = nullptr;  // from the header; null before the first header
  std::size_t socket_field_ = 0;
  std::vector<std::string> names_;  // of the count in each field; empty: not counted
};

// CSV output of pcm-iio (Skylake or later): bytes per second through each root port, by direction and
// initiator. The events count 4-byte units; the tool multiplies them by 4 (its opCode-*.txt), so the numbers are bytes.
class PcmIioFormat final : public ToolFormat {
 public:
  // Counts only rows of `root_port` ("3a:00.0", as printed with -root-port); if empty, all rows.
  explicit PcmIioFormat(std::string root_port = "") : root_port_(std::move(root_port)) {}

  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override;
  std::string blind() const override;
  // The tool prints rates per second.
  double counted_s(std::uint32_t, bool) const override { return 1; }

 private:
  void take_header(const Fields& fields);
  LineKind take_row(const Fields& fields, Sums& sums) const;

  std::string root_port_;
  std::optional<std::size_t> root_port_field_;
  std::size_t socket_field_ = 0;
  std::vector<std::string> names_;  // of the number in each field; "" for texts; empty before the first header
};

// Output of NEO-Host for a ConnectX-5 or later (get_device_performance_counters.py): a table with two halves. On the
// left are counters of the adapter, such as hits and misses of its caches. On the right are values derived from them,
// such as bandwidth and latency of PCIe.
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
  bool header_seen_ = false;
  Json analysis_ = Json::object();
};

}  // namespace verbscope
