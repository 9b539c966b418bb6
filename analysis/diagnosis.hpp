// Why a point has the rate that it has: the resource that is its limit, or two that are near each other, and the one
// that would be the next.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

struct Limit {
  Load load;
  bool of_peer = false;  // a client's, not the machine's under test
  double gain = 1;       // the rate becomes so many times as high with twice of it alone, in every machine
};

struct Diagnosis {
  Loads loads;
  // The binding resource; absent when the evidence does not decide. Then `undecided` says why, in one sentence.
  std::optional<Limit> binding;
  // Another one so near that both together bring clearly more than the binding one alone, and what both bring.
  std::optional<Limit> second;
  double gain_of_both = 1;
  // What may be the limit, each capacity() once, the most likely first: empty when the evidence does not decide.
  std::vector<Limit> candidates;
  std::string undecided;
  // The resource that would bind when the binding one were lifted, and how many times the rate would then be possible;
  // absent when nothing else is known to be used.
  std::optional<Limit> next;
  double lifted_factor = 0;
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

// What twice of a resource, in every machine, makes of the rate.
struct GainOfTwice {
  Resource resource;  // a capacity()
  double gain = 1;
};

// Makes `first`, and `second` where there is one, the limits, whatever the loads say: others know what they bring.
// Words and loads are those of the fullest resource of that capacity.
void name_limits(Diagnosis& diagnosis, const GainOfTwice& first, const std::optional<GainOfTwice>& second,
                 double gain_of_both);

// The rest of a load when the binding resource is lifted: all of it elsewhere; on the link to the NIC what is not
// MMIO when that is the limit; of a unit the mean of all when one QP's is.
double load_without(const Diagnosis& diagnosis, const Load& load, bool of_peer);

}  // namespace verbscope
