#include "common/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "common/clock.hpp"
#include "common/secrets.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kSimulatedPrefix = "sim:";

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto start = line.find(": ");
    if (start != std::string::npos) return line.substr(start + 2);
  }
  return "unknown";
}

// The current time as ISO 8601 with the zone: "2026-11-20T10:52:10Z".
std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

bool is_simulated(const std::string& fabric) {
  return fabric.starts_with(kSimulatedPrefix);
}

bool is_fabric(const std::string& fabric) {
  return fabric == "verbs" || fabric == "null" || fabric == kHostFabric ||
         (is_simulated(fabric) && fabric.size() > kSimulatedPrefix.size());
}

Json make_environment(const std::string& fabric, const std::vector<std::string>& command_line) {
  if (!is_fabric(fabric)) fail_usage("fabric: expected verbs, sim:NAME, null or host, got \"{}\"", fabric);
  utsname host{};
  check("uname", ::uname(&host));
  const BuildInfo build = build_info();
  Json out = Json::object();
  out["fabric"] = fabric;
  out["simulated"] = is_simulated(fabric);
  out["hostname"] = host.nodename;
  out["kernel"] = fmt::format("{} {}", host.sysname, host.release);
  out["cpu_model"] = cpu_model();
  out["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  out["clock"] = TscClock::describe();
  out["version"] = build.version;
  out["git_revision"] = build.git_revision;
  out["build_type"] = build.build_type;
  out["compiler"] = build.compiler;
  out["build_flags"] = build.flags;
  out["time_utc"] = utc_time();
  out["command_line"] = without_secrets(command_line);
  return out;
}

}  // namespace verbscope
