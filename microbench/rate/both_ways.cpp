#include "microbench/rate/both_ways.hpp"

#include "common/error.hpp"
#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

void add_direction(OptionTable& table, Side& driver) {
  table.choice<Side>("--direction", driver, {{"out", Side::server}, {"in", Side::client}},
                     "out: the server posts; in: the clients post to the server");
}

void add_both_ways(OptionTable& table, bool& both_ways) {
  table.flag("-b,--bidirectional", both_ways, "post from both sides at once; the rate is the sum of both directions");
}

void adjust_both_ways(Options& options) {
  if (options.fabric == "null") fail_usage("--bidirectional: --fabric null has no clients");
  if (is_simulated(options.fabric)) options.clients = options.clients.value_or(1);
  options.client_threads = options.client_threads.value_or(options.threads);
}

Prediction predict_both_ways(const Prediction& out, const Prediction& in, const Json& result) {
  const double rate_out = result.value("rate_out_mops", 1.0), rate_in = result.value("rate_in_mops", 1.0);
  const double both = rate_out + rate_in;
  if (!(both > 0)) fail("nothing was posted either way");
  return predict_together("both ways", {{out, rate_out / both}, {in, rate_in / both}});
}

}  // namespace verbscope
