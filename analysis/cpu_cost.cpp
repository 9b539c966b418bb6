#include "analysis/cpu_cost.hpp"

#include <algorithm>

#include "analysis/points.hpp"

namespace verbscope {

CpuCosts cpu_costs(const Json& extra) {
  CpuCosts out;
  const auto told = extra.find("cpu_costs_ps");
  if (told == extra.end()) return out;
  const auto take = [&told](double& cost, const char* name) {
    if (const auto ps = number_at(*told, name)) cost = *ps / 1e3;
  };
  take(out.post_call, "post_call");
  take(out.post_wqe, "post_wqe");
  take(out.wc_line, "wc_line");
  take(out.doorbell, "doorbell");
  take(out.poll_call, "poll_call");
  take(out.poll_cqe, "poll_cqe");
  take(out.post_recv_wqe, "post_recv_wqe");
  return out;
}

double cpu_cost_ns(const Prediction& prediction, const CpuCosts& costs) {
  const VerbShape& shape = prediction.shape;
  const double list = std::max(shape.post_list, 1);
  const double poll = costs.poll_call + costs.poll_cqe;
  if (prediction.role == "receiver") return costs.post_call / list + costs.post_recv_wqe + poll;
  return costs.post_call / list + costs.post_wqe + prediction.pcie.mmio_wc_lines * costs.wc_line +
         prediction.pcie.mmio_doorbells * costs.doorbell + poll / std::max(shape.signal_every, 1);
}

}  // namespace verbscope
