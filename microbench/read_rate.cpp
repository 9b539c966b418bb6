// READs, outbound or inbound.
#include "microbench/frame/runner.hpp"
#include "microbench/paths/one_sided.hpp"

int main(int argc, char** argv) {
  verbscope::OneSidedRate benchmark(verbscope::Verb::read,
                                    {"read_rate", "Rate of READs over RC, posted by the server (out) or to it (in)."});
  return verbscope::benchmark_main(benchmark, argc, argv);
}
