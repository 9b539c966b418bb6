// The rate of SENDs, inbound unless --direction says otherwise.
#include "microbench/rate/sends.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::Sends>(argc, argv, verbscope::Side::client);
}
