// The rate of READs, outbound or inbound.
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::OneSidedRate>(
      argc, argv, verbscope::Verb::read,
      verbscope::Description{"read_rate",
                             "Rate of READs over RC, posted by the server or by the clients (--direction).",
                             "-s 4k --threads 2"});
}
