// The rate of SENDs, inbound unless --direction says otherwise.
#include "microbench/rate/sends.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  verbscope::Sends benchmark(verbscope::Side::client);
  return verbscope::benchmark_main(benchmark, argc, argv);
}
