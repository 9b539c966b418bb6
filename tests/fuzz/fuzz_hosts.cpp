// The hosts file: parsed, and the roles given out; and the same text as a list of Slurm.
#include "harness/cluster/host_range.hpp"
#include "harness/cluster/hosts.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbscope::fuzz::expect_value_or_error([&] {
    const auto hosts = verbscope::parse_hosts(verbscope::fuzz::as_text(data, size), "hosts");
    if (hosts.empty() || hosts.size() > verbscope::kMaxHosts) {
      verbscope::fuzz::report("a hosts file names hosts, but not too many", std::to_string(hosts.size()));
    }
    verbscope::assign_roles(hosts, "hosts");
  });
  verbscope::fuzz::expect_value_or_error([&] {
    const std::string list(verbscope::fuzz::as_text(data, size));
    if (verbscope::slurm_hosts(list.c_str()).empty()) verbscope::fuzz::report("a list names hosts", list);
  });
  return 0;
}
