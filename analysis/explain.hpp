// `verbscope explain`: why a point has the rate that it has, what lifts its limit, and which change of options helps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/advice.hpp"

namespace verbscope {

// What one run brought: twice of these resources, of which each stands for its capacity().
struct TriedTwice {
  std::vector<Resource> doubled;
  double gain = 1;  // against the base run
};

// `explain --target`: the fewest changes of options that reach a rate or a latency.
struct TargetAnswer {
  std::string asked;  // "30 Mops"
  bool reached = false;
  double value = 0;          // with the best change found, in the target's unit
  Advice change;             // no options: the point as it is
  std::string in_the_way{};  // what limits the best one; empty when it was reached
};

// What simulated runs of the point showed.
struct SimulatedAnswer {
  std::string cluster;               // that was copied: a name, or the path of a profile
  std::vector<std::string> assumed;  // the parameters of a limit, where all of their values are assumed
  double base_mops = 0;              // the point as it is
  std::size_t runs = 0;              // different points that were simulated, now or for an earlier answer
  double seconds = 0;                // that they took now
  std::vector<TriedTwice> tried;
  std::vector<std::string> failed;  // runs that failed: what was tried, and why
  // Single changes of an option that the program takes, and how many of them were run.
  std::size_t neighbours = 0, neighbours_run = 0;
  std::optional<TargetAnswer> target{};
};

// The answer: what is printed, what is in JSON and what tables show are these values.
struct Explanation {
  const Record* record = nullptr;
  Loads loads{};  // of the record
  // The resource that lifts the rate most, or two of which neither does alone; empty: `undecided` says why.
  std::vector<Limit> limits{};
  double gain_of_all = 1;
  // Options beside the limit of which twice the value lifts the rate, too.
  std::vector<Limit> limiting_options{};
  std::string undecided{};
  std::vector<Advice> advice{};           // the best first
  std::optional<SimulatedAnswer> runs{};  // limits and gains are those of runs
  std::string not_run{};                  // why they are those of the closed form, a clause; empty where nobody asked

  // The answer in one sentence.
  std::string limit_sentence() const;
  // The options beside it, with a blank before it; empty where there are none.
  std::string options_sentence() const;
  // "requester units", "requester units and MMIO bandwidth"; empty where nothing is known.
  std::string limit_words() const;
  // What twice of the resource was seen to bring; none where it was not tried by itself.
  std::optional<double> gain_of(Resource resource) const;
  // Twice of it and of others together brought less than kWorthwhile, so that it alone was not tried.
  bool brings_nothing(Resource resource) const;
};

// "the NIC's requester units of client3", "READs and atomics outstanding on a QP (--outs 1)".
std::string words_for(const Limit& limit);
// "+24 %", "x 12".
std::string gain_text(double factor);

// Explains a record that is ok in closed form: by its busy times, or by rate and model. It must outlive the answer.
Explanation explain(const Record& record);

// The answer as lines of `width` columns (TextTable::text); ends with a newline.
std::string explain_text(const Explanation& it, std::size_t width = 0);
Json explain_json(const Explanation& it);
// A record that failed has its reason in place of an answer.
std::string failed_text(const Record& record);
Json failed_json(const Record& record);

}  // namespace verbscope
