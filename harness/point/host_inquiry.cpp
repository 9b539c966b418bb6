#include "harness/point/host_inquiry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "harness/cluster/launcher.hpp"
#include "harness/doctor/fact_reader.hpp"
#include "harness/doctor/host_facts.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kLimit{60};

}  // namespace

Json facts_here() {
  const char* path = std::getenv("PATH");
  return host_facts(SysTree(), std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/local/sbin");
}

Json facts_of(const Host& host, Launcher* launcher, const Deployment& deployment, StopSource* stop) {
  const std::string* verbscope = launcher == nullptr ? nullptr : deployment.path(host, "verbscope");
  if (verbscope == nullptr) return facts_here();
  const std::string what = "doctor";
  std::istringstream lines(remote_call(*launcher, host, what, {*verbscope, "doctor", "--json"}, kLimit, stop));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("{\"host\":")) continue;  // printed by a login script
    const Json answer = parse_json_text(line, fmt::format("host {}: {}", host.name, what));
    if (answer.contains("facts")) return answer.at("facts");
  }
  fail("host {}: {}: it gave no answer", host.name, what);
}

void require_device(const Host& host, const Json& facts) {
  std::vector<std::string> found;
  for (const Json& device : fact_list(facts, "devices")) found.push_back(fact_text(fact_at(device, "name")));
  if (found.empty()) {
    fail("host {}: no RDMA device: --hosts sim:cib runs on a simulated cluster, --hosts null without a device",
         host.name);
  }
  if (!host.device.empty() && std::ranges::find(found, host.device) == found.end()) {
    fail("host {}: no RDMA device {}: found {}", host.name, host.device, fmt::join(found, ", "));
  }
}

}  // namespace verbscope
