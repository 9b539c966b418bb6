#include "microbench/bench/all_sizes.hpp"

#include "common/error.hpp"

namespace verbscope {

void add_all_sizes(OptionTable& table, bool& all, const std::string& last) {
  table.flag("-a,--all", all,
             fmt::format("run payloads of 2, 4, 8 ... bytes up to --size (default {}), with one record each", last));
}

std::vector<std::uint32_t> all_sizes(const Options& o, std::uint32_t last) {
  if (o.header_only) fail_usage("--all: with --header_only there is one size, 0");
  if (o.run_infinitely) fail_usage("--all: with --run_infinitely the first size would never end");
  if (!o.size && facts(o.connection).one_packet) {
    fail_usage("--all: over {} give the last --size, at most the MTU", to_string(o.connection));
  }
  last = o.size.value_or(last);
  if (last < 2) fail_usage("--size {}: --all begins with 2 bytes", last);
  if (o.fabric == "verbs" && o.port == 0) fail_usage("--port 0: with --all the two sides meet again for each size");
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 2; size < last; size *= 2) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

}  // namespace verbscope
