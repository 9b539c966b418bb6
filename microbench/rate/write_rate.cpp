// The rate of WRITEs, outbound or inbound.
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  verbscope::OneSidedRate benchmark(
      verbscope::Verb::write,
      {"write_rate", "Rate of WRITEs over RC or UC, posted by the server or by the clients (--direction).",
       "-c UC -s 32 -I 32 -l 16"});
  return verbscope::benchmark_main(benchmark, argc, argv);
}
