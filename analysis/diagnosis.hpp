// Why a point has the rate that it has, in closed form: the resource that is its limit, or two that only help together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

// A limit lifts the rate, and a change is worth naming, from this factor on.
constexpr double kWorthwhile = 1.03;

struct Limit {
  Load load;
  bool of_peer = false;  // a client's, not the machine's under test
  double gain = 1;       // the rate becomes so many times as high with twice of it alone, in every machine
  std::string option{};  // of the program that makes its capacity; empty: the cluster does
  double value = 0;      // of the option
};

struct Diagnosis {
  Loads loads;
  // The binding resource; two where neither alone lifts the rate, but both do. Empty when the evidence does not decide:
  // then `undecided` says why, a clause.
  std::vector<Limit> limits;
  double gain_of_all = 1;  // of all limits together
  // What may be the limit, each capacity() once, the most likely first: empty when the evidence does not decide.
  std::vector<Limit> candidates;
  std::string undecided;
  // The load that latency is: how much the program waits for its own operations, beside the fullest resource. 0 where
  // one is full.
  double latency = 0;

  // How sharply latency and the fullest resource limit the rate together: their powers by this add up.
  double knee = 5;

  // The load that latency must be if no resource is full.
  double rest_of_time() const;

  // What the loads become by a change: after(load, of_peer) of each, and what latency becomes.
  using After = std::function<double(const Load& load, bool of_peer)>;
  struct Outcome {
    double factor = 1;  // the rate becomes so many times as high
    Limit fullest;      // then
  };
  Outcome outcome(const After& after, double latency_after) const;

 private:
  template <class Visit>
  void each_bearing(Visit&& visit) const;
};

Diagnosis diagnose(const Loads& loads);

// The fullest of the resources that have this capacity(), by the name that fits best: "all units", not one of them. Of
// one that has no load there is the resource alone.
Limit fullest_of(const Diagnosis& diagnosis, Resource capacity);

}  // namespace verbscope
