#include "harness/point/site.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.hpp"
#include "harness/cluster/launcher.hpp"
#include "harness/doctor/host_facts.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kLimit{60};

std::vector<std::string> own_command_line() {
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return without_secrets(std::move(words));
}

// Throws if no point can run on a host with these facts: it has no RDMA device, or not the one in the hosts file.
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

std::string zoned_time(Provenance::Time time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[40] = {};
  const std::size_t length = std::strftime(text, sizeof text, "%FT%T%z", &parts);  // ...+0100
  return std::string(text, length).insert(length - 2, ":");
}

}  // namespace

Json local_facts() {
  const char* path = std::getenv("PATH");
  return host_facts(SysTree(), std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/local/sbin");
}

Json read_host_facts(const Host& host, Launcher* launcher, const Deployment& deployment, StopSource* stop) {
  const std::string* verbscope = launcher == nullptr ? nullptr : deployment.path(host, "verbscope");
  if (verbscope == nullptr) return local_facts();
  const std::string what = "doctor";
  std::istringstream lines(remote_call(*launcher, host, what, {*verbscope, "doctor", "--json"}, kLimit, stop));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("{\"host\":")) continue;  // printed by a login script
    const Json answer = parse_json_text(line, fmt::format("host {}: {}", host.name, what));
    if (answer.contains("facts")) return answer.at("facts");
  }
  fail("host {}: {}: it returned no facts", host.name, what);
}

bool is_local(const Host& host) {
  return host.user.empty() && host.management.empty() && host.ssh_port == 0 && is_this_machine(host.name);
}

std::vector<Host> distinct_hosts(const std::vector<Host>& hosts) {
  std::vector<Host> out;
  for (const Host& host : hosts) {
    if (std::ranges::find(out, host.name, &Host::name) == out.end()) out.push_back(host);
  }
  return out;
}

std::unique_ptr<Launcher> launcher_for(const std::string& hosts, const std::vector<Host>& all, LauncherOptions options,
                                       StopSource* stop) {
  if (options.name.empty()) {
    options.name = hosts == "slurm" ? "slurm" : std::ranges::all_of(all, is_local) ? "local" : "ssh";
  }
  if (options.name == "ssh" && all.empty()) fail_usage("--launcher ssh: --hosts {} contains no host", hosts);
  return make_launcher(options, stop);
}

std::vector<Host> remote_hosts(std::vector<Host> hosts, const Launcher* launcher) {
  if (launcher == nullptr) return {};
  if (launcher->name() == std::string_view("ssh")) std::erase_if(hosts, is_local);
  return hosts;
}

bool try_each(const std::vector<Host>& hosts, const std::function<void(const Host&)>& action,
              const std::function<void(const std::string&)>& on_failure) {
  bool all = true;
  for (const Host& host : hosts) {
    try {
      action(host);
    } catch (const InterruptedError&) {
      throw;
    } catch (const Error& error) {
      on_failure(error.what());
      all = false;
    }
  }
  return all;
}

void deploy_if_needed(Deployment& deployment, Launcher* launcher, const std::vector<Host>& hosts,
                      const std::filesystem::path& folder, const std::vector<std::string>& benchmarks,
                      StopSource* stop) {
  const std::vector<Host> others = remote_hosts(hosts, launcher);
  if (others.empty()) return;
  std::vector<std::string> names = benchmarks;
  names.push_back("verbscope");
  launcher->prepare(others);
  const std::vector<Program> programs = hash_programs(folder, names, stop);
  std::vector<std::string> failures;
  try_each(
      others, [&](const Host& host) { deployment.deploy(*launcher, host, programs, stop); },
      [&failures](const std::string& failure) { failures.push_back(failure); });
  if (!failures.empty()) fail("{}", fmt::join(failures, "; "));
}

Site::Site(const std::string& hosts, const LauncherOptions& options, const std::filesystem::path& folder,
           const std::vector<std::string>& benchmarks, int port, StopSource* stop)
    : target_(parse_target(hosts)) {
  target_.port = port;
  const std::vector<Host> all = target_.roles ? distinct_hosts(target_.roles->all()) : std::vector<Host>();
  launcher_ = launcher_for(hosts, all, options, stop);
  if (!launcher_) require_local(target_, hosts);
  deploy_if_needed(deployment_, launcher_.get(), all, folder, benchmarks, stop);
  target_.launcher = launcher_.get();
  target_.deployment = launcher_ ? &deployment_ : nullptr;
  for (const Host& host : all) hosts_[host.name] = read_host_facts(host, launcher_.get(), deployment_, stop);
  if (all.empty()) hosts_["localhost"] = local_facts();
  if (!target_.roles) return;
  for (const Host& host : target_.roles->all()) require_device(host, hosts_.at(host.name));
}

Provenance::Provenance(const Site& site, const Sweep& sweep)
    : site_(site), sweep_(sweep), command_line_(own_command_line()) {}

void Provenance::add_to(Record& record, const Point& point, Time started) const {
  Json harness{{"launcher", site_.launcher_name()}, {"command_line", command_line_}};
  harness.update(sweep_properties(sweep_, point));
  harness["started"] = zoned_time(started);
  harness["ended"] = zoned_time(Time::clock::now());
  record.environment["harness"] = std::move(harness);
  record.environment["hosts"] = site_.host_facts();
}

}  // namespace verbscope
