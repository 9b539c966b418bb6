// The rate of SENDs, outbound unless --direction says otherwise.
#include "microbench/rate/sends.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  verbscope::Sends benchmark(verbscope::Side::server);
  return verbscope::benchmark_main(benchmark, argc, argv);
}
