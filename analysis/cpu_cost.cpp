#include "analysis/cpu_cost.hpp"

#include <algorithm>

namespace verbscope {
namespace {

// configs/clusters/cib.json, `host`: calibrated on the single-core figures of Kalia et al., USENIX ATC 2016, or assumed
// there.
constexpr double kPostCall = 10;
constexpr double kPostWqe = 26.6;
constexpr double kWcLine = 39.5;
constexpr double kDoorbell = 40;
constexpr double kPollCqe = 25;  // a call and a completion
constexpr double kPostRecvWqe = 4;

}  // namespace

double cpu_cost_ns(const Prediction& prediction) {
  const VerbShape& shape = prediction.shape;
  const double list = std::max(shape.post_list, 1);
  if (prediction.role == "receiver") return kPostCall / list + kPostRecvWqe + kPollCqe;
  return kPostCall / list + kPostWqe + prediction.pcie.mmio_wc_lines * kWcLine +
         prediction.pcie.mmio_doorbells * kDoorbell + kPollCqe / std::max(shape.signal_every, 1);
}

}  // namespace verbscope
