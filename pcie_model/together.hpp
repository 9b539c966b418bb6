// One machine that does several things for one operation: it is written to and answers, say.
#pragma once

#include <string>
#include <vector>

#include "pcie_model/predict.hpp"

namespace verbscope {

struct PredictedPart {
  Prediction prediction;
  double per_op = 1;  // so many of it for one operation
};

// Events and stores add up. A resource serves the parts one after the other, so that an operation takes it the sum of
// their times: its bound is 1 / sum(per_op / bound). Cluster, shape, WQE and method are those of the first part. Throws
// Error when there is no part, or one is not taken at least 0 times.
Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts);

// `prediction` of a program that sleeps on completion events, so many for an operation. For each it arms its completion
// queue by a doorbell, and the adapter writes an entry of the event queue and an interrupt. What the kernel does for an
// event is not counted. Its shape says so.
Prediction with_completion_events(const Prediction& prediction, double per_op);

}  // namespace verbscope
