// Closed-form diagnosis of a point: the resource that limits its rate, or two that must both be relieved.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

// Smallest factor on the rate for which a resource is called the limit, or a change is recommended.
constexpr double kWorthwhile = 1.03;

struct Limit {
  Load load;
  bool of_peer = false;  // a client's resource, not one of the machine under test
  double gain = 1;       // new rate / present rate when this resource alone is doubled in every machine
  std::string option{};  // program option that sets its capacity; empty: the cluster sets it
  double value = 0;      // value of the option
};

struct Diagnosis {
  Loads loads;
  // The limiting resource; two if only doubling both raises the rate. Empty if the evidence does not decide; then
  // `undecided` holds the reason as a clause.
  std::vector<Limit> limits;
  double gain_of_all = 1;  // when all limits are doubled together
  // Possible limits, one per capacity(), most likely first. Empty if the evidence does not decide.
  std::vector<Limit> candidates;
  std::string undecided;
  // Latency expressed as a load: how much the program waits for its own operations, besides the fullest resource. 0 if
  // a resource is full.
  double latency = 0;

  // Sharpness of the transition between latency and the fullest resource: load = (latency^knee +
  // fullest^knee)^(1/knee).
  double knee = 5;

  // The latency load that explains the rest of the time, if no resource is full.
  double remaining_latency() const;

  // Result of a change. `after` returns the new value of each load, `latency_after` is the new latency load.
  using After = std::function<double(const Load& load, bool of_peer)>;
  struct Outcome {
    double factor = 1;  // new rate / present rate
    Limit fullest;      // the fullest resource after the change
  };
  Outcome outcome(const After& after, double latency_after) const;

 private:
  template <class Visit>
  void for_each_limiting_load(Visit&& visit) const;
};

Diagnosis diagnose(const Loads& loads);

// The fullest resource with this capacity(), under the most fitting name ("all units" rather than one unit). If none of
// them has a load, the Limit contains only the resource.
Limit fullest_limit(const Diagnosis& diagnosis, Resource capacity);

}  // namespace verbscope
