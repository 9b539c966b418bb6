// The prediction of a machine that does several things for one operation: it is written to and answers, say.
#pragma once

#include <string>
#include <vector>

#include "pcie_model/predict.hpp"

namespace verbscope {

struct PredictedPart {
  Prediction prediction;
  double per_op = 1;  // one operation takes the part so many times
};

// Events and stores add up. A resource serves the parts one after the other, so that an operation takes it the sum of
// their times: its bound is 1 / sum(per_op / bound). Cluster, shape, WQE and method are those of the first part. Throws
// Error when there is no part, or one is not taken at least 0 times.
Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts);

// Returns `prediction` for a program that sleeps on `per_op` completion events for an operation. For each it arms its
// completion queue by a doorbell, and the adapter writes an entry of the event queue and an interrupt. What the kernel
// does for an event is not counted. The shape tells the events.
Prediction with_completion_events(const Prediction& prediction, double per_op);

}  // namespace verbscope
