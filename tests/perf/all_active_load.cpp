// all_active_load NODES OPERATIONS [QPS WINDOW [PARTITIONS THREADS]]: the load of all_active.hpp with so many READs in
// all, for callgrind and the clock.
#include <cstdio>
#include <cstdlib>

#include "common/error.hpp"
#include "tests/perf/all_active.hpp"

int main(int argc, char** argv) {
  using namespace verbscope;
  if (argc != 3 && argc != 5 && argc != 7) {
    std::fputs("usage: all_active_load NODES OPERATIONS [QPS WINDOW [PARTITIONS THREADS]]\n", stderr);
    return 2;
  }
  try {
    test::AllActiveLoad load{.nodes = std::atoi(argv[1])};
    load.operations = std::strtoull(argv[2], nullptr, 10) / static_cast<std::uint64_t>(load.nodes * load.threads);
    if (argc == 7) {
      const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
      load.work = test::shared_out(load.nodes, number(5), number(6));
    }
    if (argc >= 5) {
      load.qps = std::atoi(argv[3]);
      load.window = std::atoi(argv[4]);
    }
    test::AllActive all(load);
    std::printf("%llu operations\n", static_cast<unsigned long long>(all.run()));
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
