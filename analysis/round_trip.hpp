// What an operation takes on an idle machine, from its post to its completion, and how many the program keeps under
// way: together the load that latency is.
#pragma once

#include <limits>
#include <string>

#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// The READs and atomics that a QP has under way at most: --outs, or what adapters of Mellanox allow.
double most_reads(const Record& record);

struct RoundTrip {
  // The load that the unloaded round trip of as many operations as the program keeps outstanding would be.
  double load = 0;
  // The shares of that trip in which units of requesters and of responders work; 0 where no steps are known.
  double requester_share = 0, responder_share = 0;
  // What latency can be at most: a few times that, and the share of a window that is posted at once. Infinite where
  // that is not known.
  double most_latency = std::numeric_limits<double>::infinity();
  bool reads_are_full = false;  // the adapter keeps no more READs or atomics under way on a QP, whatever the options
  double operations = 0;        // outstanding on a machine that posts; 0 where that follows from no option
  bool returns = false;         // READs or atomics: WQEs wait for a response
  double burst = 0;             // the share of what is outstanding on a QP that it posts at once
  // The share of operations that wait for locks which others hold, the longer the more of them there are.
  double locked = 0;
  // What is outstanding is a thread's, over all its QPs, as a ring: more QPs bring no more of it.
  bool ring = false;
};

// `prediction` is the record's, null when it has none. From the steps that a simulator's record has (`steps_ps`), else
// from what a READ takes on the adapters of Kalia et al., ATC 2016.
RoundTrip round_trip(const Record& record, const Prediction* prediction);

// The option that says how many operations are outstanding.
std::string outstanding_option(const Record& record);

// The benchmark keeps one operation under way, whatever the options.
bool keeps_one_under_way(const Record& record);

// The threads of all clients in the record.
double threads_of_clients(const Record& record);

}  // namespace verbscope
