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
  double counted_s(std::uint32_t) const override { return 1; }

 private:
  bool take_header(const Fields& fields);
  LineKind take_row(const Fields& fields, Sums& sums) const;

  std::string root_port_;
  std::optional<std::size_t> root_port_field_;
  std::size_t first_number_ = 0;     // field; 0: no header yet
  std::vector<std::string> counts_;  // names of the numbers
};

}  // namespace verbscope
