// The rate of WRITEs, outbound or inbound.
#include "microbench/rate/one_sided.hpp"
#include "microbench/run/runner.hpp"

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::OneSidedRate>(
      argc, argv, verbscope::Verb::write,
      verbscope::Description{"write_rate",
                             "Rate of WRITEs over RC or UC, posted by the server or by the clients (--direction).",
                             "-c UC -s 32 -I 32 -l 16"});
}
