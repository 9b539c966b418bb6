// CSV output of Intel PCM's pcm-iio (Skylake or later): bytes per second through each root port, by direction and
// initiator. The events count 4-byte units; the tool multiplies them by 4 (its opCode-*.txt), so the numbers are bytes.
#pragma once

#include <optional>

#include "counters/tool_format.hpp"

namespace verbscope {

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

}  // namespace verbscope
