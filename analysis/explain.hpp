// `verbscope explain`: the limit of a point's rate, and the option changes that raise it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diagnosis.hpp"
#include "analysis/rate_changes.hpp"
#include "common/json.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

struct ShapeChange {
  std::string text;  // "post lists of 16 instead of 1"
  Json options;      // benchmark options for it, {"post_list": 16}
  Prediction after;  // with the changed shape, for the same role
};

// True for the model of a requester, a receiver or a responder; false for several roles together.
bool has_one_role(const Prediction& prediction);
// Predicts another shape with the wire, the role and the completion events of `before`. Precondition: has_one_role.
Prediction predict_like(const Prediction& before, const VerbShape& shape);

// All changes that the adapter and the transport allow and that the operation does not use yet: batching, inlining or
// not, a WQE shorter by one cache line, header-only, fewer signals, UC instead of RC, inline receive. `outstanding`:
// operations that may be outstanding on a QP, the maximum for a post list and for the operations between two signals.
std::vector<ShapeChange> shape_changes(const Prediction& before, int outstanding);

struct Advice {
  std::string change;             // "post lists of 16 instead of 1"
  double factor = 1;              // new rate / present rate
  bool at_least = false;          // closed form: possibly more, because the next limit eases too
  Json options = Json::object();  // benchmark options that make the change; empty if no option does
  bool by_run = false;            // the factor comes from a simulated run
  // The change alters the payload, so only the program's author can judge whether the operation still does its job.
  bool other_payload = false;
  std::string command{};  // complete command line with the change; empty if there is none
};

// Payload of an immediate, in bytes.
constexpr double kImmediateBytes = 4;

// Closed-form advice, for records whose cluster has no profile. Returns the changes that raise the rate by kWorthwhile
// or more, best first; empty if the diagnosis has no limit. Assumes that the time per operation of the adapter's units
// and of the peers stays as measured, because no public model of it exists.
std::vector<Advice> advise(const Record& record, const std::optional<Prediction>& prediction,
                           const Diagnosis& diagnosis);

// A run with the capacity of these resources doubled. Each one stands for all resources with its capacity().
struct DoublingRun {
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
  std::vector<DoublingRun> tried;
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

  double rate_mops() const;  // of the record; 0 if it has none
  bool simulated() const;    // true if the record is
  // How the gains were found: "simulated" or "closed form".
  const char* gain_source() const;
  // Stalls in the adapters' counters that no load covers.
  std::vector<CountedStall> stalls() const;

  // The answer in one sentence.
  std::string limit_sentence() const;
  // The limiting options, with a leading blank; empty if there are none.
  std::string options_sentence() const;
  // "requester units", "requester units and MMIO bandwidth", or "not decided".
  std::string limit_words() const;
  // The measured gain from doubling the resource; nothing if it was not tried alone.
  std::optional<double> gain_of(Resource resource) const;
  // True if doubling it together with others gained less than kWorthwhile, so it was not tried alone.
  bool is_ruled_out(Resource resource) const;
};

// "the NIC's requester units of client3", "READs and atomics outstanding on a QP (--outs 1)".
std::string words_for(const Limit& limit);
// "+24 %", "x 12".
std::string gain_text(double factor);
// "12.5 %" for 0.125.
std::string share_text(double share);

// Closed-form explanation of a record that is ok, from its busy times, or else from rate and model. `record` must
// outlive the result.
Explanation explain(const Record& record);

// The limit that `explain` finds for the record in closed form: "NIC responder units", or "not decided".
std::string closed_form_limit(const Record& record);

// Smaller loads are not shown.
inline constexpr double kMinShownLoad = 0.005;

// The answer as text. `width`: see TextTable::text. Ends with a newline.
std::string explain_text(const Explanation& it, std::size_t width = 0);
Json explain_json(const Explanation& it);
// For a record that failed: the error instead of an answer.
std::string failed_text(const Record& record);
Json failed_json(const Record& record);

// Points that differ in one option only, sorted by its value.
struct Series {
  std::string option;
  std::vector<const Explanation*> points;
};

// For each option with several values: all series of at least two points.
std::vector<Series> series_of(const std::vector<Explanation>& points);

// The limits along a series: "size: to 64: the NIC's responder units; from 128: wire bandwidth, outbound". A drop of
// the rate is a cliff: "cliff at 48 threads, 30 after 60 Mops: WQE cache, 0.7 re-reads per operation".
std::string changes_along(const Series& series);

// The table of all points, then each series in which the limit changes or the rate drops. `width`: see TextTable::text.
std::string overview_text(const std::vector<Explanation>& points, std::size_t width);

}  // namespace verbscope
