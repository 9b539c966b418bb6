// Large RPCs: one thread sends a message of megabytes to another, one at a time (eRPC, NSDI 2019, section 6.4).
#include "microbench/run/runner.hpp"
#include "systems/rpc_rate/echo_benchmark.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::EchoBenchmark>(
      argc, argv,
      verbscope::RpcDefaults{.description = {"rpc_large", "Bandwidth of large requests by general RPCs, one at a time.",
                                             "--packet_size 3840 -s 1000000"},
                             .request_bytes = verbscope::kLargeRequest,
                             .response_bytes = verbscope::kSmallResponse,
                             .load = {.all_serve = false, .batch = 1, .outstanding = 1}});
}
