// The CSV output of Intel PCM's pcm-iio (Skylake on): bytes a second through each root port, both ways, by who asked
// for them. Numbers are bytes: the events count 4-byte units, which the tool multiplies by 4 (its opCode-*.txt).
#pragma once

#include <optional>

#include "counters/tool_format.hpp"

namespace verbscope {

class PcmIioFormat final : public ToolFormat {
 public:
  // Counts rows of `root_port` only ("3a:00.0", as -root-port prints it); empty: those of all.
  explicit PcmIioFormat(std::string root_port = "") : root_port_(std::move(root_port)) {}

  LineKind take(const Fields& fields, Sums& sums) override;
  std::vector<EventRule> rules() const override;
  std::string blind() const override;
  // The tool gives rates, per second.
  double counted_s(std::uint32_t, bool) const override { return 1; }

 private:
  void take_header(const Fields& fields);
  LineKind take_row(const Fields& fields, Sums& sums) const;

  std::string root_port_;
  std::optional<std::size_t> root_port_field_;
  std::size_t socket_field_ = 0;
  std::vector<std::string> names_;  // of the numbers in each field; empty: a text. None before the first header
};

}  // namespace verbscope
