// `verbscope explain`: the limit of a point's rate, and the option changes that raise it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/advice.hpp"

namespace verbscope {

// A run with the capacity of these resources doubled. Each one stands for all resources with its capacity().
struct TriedTwice {
  std::vector<Resource> doubled;
  double gain = 1;  // relative to the unchanged run
};

// `explain --target`: the smallest set of option changes that reaches a rate or a latency.
struct TargetAnswer {
  std::string asked;  // "30 Mops"
  bool reached = false;
  double value = 0;          // of the best change found, in the target's unit
  Advice change;             // without options: the unchanged point
  std::string in_the_way{};  // the limit with the best change; empty if the target was reached
};

// Results of simulated runs of the point.
struct SimulatedAnswer {
  std::string cluster;               // the copied cluster: a name, or the path of a profile
  std::vector<std::string> assumed;  // parameters that set a limit, if all of their values are assumed
  double base_mops = 0;              // the unchanged point
  std::size_t runs = 0;              // distinct points simulated, now or for an earlier answer
  double seconds = 0;                // time that the runs took now
  std::vector<TriedTwice> tried;
  std::vector<std::string> failed;  // failed runs: the tried options and the error
  // Changes of a single option that the program accepts, and how many of them were simulated.
  std::size_t neighbours = 0, neighbours_run = 0;
  std::optional<TargetAnswer> target{};
};

// The complete answer. The text, the JSON and the tables all show these values.
struct Explanation {
  const Record* record = nullptr;
  Loads loads{};  // of the record
  // The resource whose doubling raises the rate most, or two that only help together. If empty, `undecided` has the
  // reason.
  std::vector<Limit> limits{};
  double gain_of_all = 1;
  // Options besides the limit that raise the rate when their value is doubled.
  std::vector<Limit> limiting_options{};
  std::string undecided{};
  std::vector<Advice> advice{};           // best first
  std::optional<SimulatedAnswer> runs{};  // if present, the limits and gains come from runs
  std::string not_run{};                  // why nothing was simulated, as a clause; empty if not requested

  // The answer in one sentence.
  std::string limit_sentence() const;
  // The limiting options, with a leading blank; empty if there are none.
  std::string options_sentence() const;
  // "requester units", "requester units and MMIO bandwidth"; empty if undecided.
  std::string limit_words() const;
  // The measured gain from doubling the resource; nothing if it was not tried alone.
  std::optional<double> gain_of(Resource resource) const;
  // True if doubling it together with others gained less than kWorthwhile, so it was not tried alone.
  bool brings_nothing(Resource resource) const;
};

// "the NIC's requester units of client3", "READs and atomics outstanding on a QP (--outs 1)".
std::string words_for(const Limit& limit);
// "+24 %", "x 12".
std::string gain_text(double factor);

// Closed-form explanation of a record that is ok, from its busy times, or else from rate and model. `record` must
// outlive the result.
Explanation explain(const Record& record);

// The answer as text. `width`: see TextTable::text. Ends with a newline.
std::string explain_text(const Explanation& it, std::size_t width = 0);
Json explain_json(const Explanation& it);
// For a record that failed: the error instead of an answer.
std::string failed_text(const Record& record);
Json failed_json(const Record& record);

}  // namespace verbscope
