// Residuals: differences between the PCIe traffic of an adapter and the closed-form model, and their meaning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

struct Residual {
  std::string event;      // "reads", "writes", "MMIO lines"
  double per_op = 0;      // counted minus modelled, cache lines per operation
  double per_second = 0;  // the same per second
  std::string meaning;    // one sentence
  bool decided = false;   // true if the evidence names one cause
};

// The records of a comparison, indexed so that each can be compared with those that differ in one kind of option only.
// Finds the option with which the extra reads grow. It indicates what the adapter reads.
class Residuals {
 public:
  explicit Residuals(const std::vector<const Record*>& records);

  // The residuals of a record above counting noise; empty if nothing was counted or modelled.
  std::vector<Residual> of(const Record& record) const;

 private:
  struct Sample {
    double knob = 0;
    double extra_reads = 0;
  };
  enum class Growth { unknown, grows, does_not };

  Growth growth(const Record& record, std::size_t kind) const;
  Residual extra_reads(const Record& record, double per_op) const;

  std::vector<std::map<std::string, std::vector<Sample>>> samples_;  // by kind of option, then by all other options
};

}  // namespace verbscope
