// The rate of READs, outbound or inbound.
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  verbscope::OneSidedRate benchmark(
      verbscope::Verb::read,
      {"read_rate", "Rate of READs over RC, posted by the server or by the clients (--direction).",
       "-s 4k --threads 2"});
  return verbscope::benchmark_main(benchmark, argc, argv);
}
