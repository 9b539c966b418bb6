// Many machines send large requests to one at the same time, and small or large RPCs between the others run beside them
// (eRPC, NSDI 2019, section 6.5).
#include "microbench/run/runner.hpp"
#include "systems/rpc_rate/echo_benchmark.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::EchoBenchmark>(
      argc, argv,
      verbscope::RpcDefaults{
          .description = {"rpc_incast", "Round trips and bandwidth when many machines send large RPCs to one.",
                          "--machines 6 -s 200000 --cc timely"},
          .incast = true,
          .machines = 3,
          .request_bytes = verbscope::kLargeRequest,
          .response_bytes = verbscope::kSmallResponse,
          .load = {.all_serve = false, .batch = 1, .outstanding = 1}});
}
