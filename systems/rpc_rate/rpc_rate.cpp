// Small RPCs: every machine calls threads of the others at random and serves their calls (eRPC, NSDI 2019, sections 6.2
// and 6.3).
#include "microbench/run/runner.hpp"
#include "systems/rpc_rate/echo_benchmark.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::EchoBenchmark>(
      argc, argv,
      verbscope::RpcDefaults{
          .description = {"rpc_rate", "Rate and latency of general RPCs over datagrams, with every message checked.",
                          "--machines 4 --batch 3 --outstanding 60"}});
}
