// The hosts file: parsed, and the roles given out.
#include "harness/hosts.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbscope::fuzz::expect_value_or_error([&] {
    const auto hosts = verbscope::parse_hosts(verbscope::fuzz::as_text(data, size), "hosts");
    if (hosts.empty() || hosts.size() > verbscope::kMaxHosts) {
      verbscope::fuzz::report("a hosts file names hosts, but not too many", std::to_string(hosts.size()));
    }
    verbscope::cast_roles(hosts, "hosts");
  });
  return 0;
}
