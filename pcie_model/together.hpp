// Prediction for a machine that does several things per operation, e.g. receives a WRITE and sends a response.
#pragma once

#include <string>
#include <vector>

#include "pcie_model/predict.hpp"

namespace verbscope {

struct PredictedPart {
  Prediction prediction;
  double per_op = 1;  // how often the part occurs per operation
};

// Adds up events and stores. A resource serves the parts one after another, so their times add up: its bound is 1 /
// sum(per_op / bound). Cluster, shape, WQE and method are those of the first part. Throws Error if `parts` is empty or
// a `per_op` is negative.
Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts);

// Returns `prediction` for a program that sleeps for `per_op` completion events per operation. For each event it arms
// its completion queue with a doorbell, and the adapter writes an event queue entry and an interrupt. Excludes the
// kernel's work for an event. Stores `per_op` in the shape.
Prediction with_completion_events(const Prediction& prediction, double per_op);

}  // namespace verbscope
