#include "harness/point/point_runner.hpp"

#include <algorithm>
#include <random>
#include <tuple>

#include "common/paths.hpp"
#include "common/record.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {
namespace {

// 128 random bits for the exchange of one point. Passed in the environment, which other users cannot read.
std::string make_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// True for options that the hosts file overrides: clients, device, GID index, and cores.
bool set_by_hosts(const std::string& key, const Host& host) {
  return key == "clients" || (key == "ib_dev" && !host.device.empty()) || (key == "gid_index" && host.gid_index >= 0) ||
         (key == "cores" && (!host.cores.empty() || host.numa_node >= 0));
}

// Adds the command, the end and the last lines of the process to a failed record.
void add_process_end(Record& record, const Role& role) {
  record.result["command"] = role.command;
  if (!role.task) return;
  record.result["end"] = role.task->end_text();
  record.result["output_tail"] = role.task->tail();
}

}  // namespace

std::string fabric_of(const std::string& hosts) {
  return hosts == "null" || hosts == kHostFabric || is_simulated(hosts) ? hosts : "verbs";
}

void require_target(const std::string& hosts) {
  if (is_simulated(hosts)) {
    load_profile(hosts.substr(kSimulatedPrefix.size()));
  } else if (fabric_of(hosts) == "verbs" && hosts != "slurm" && hosts != kThisMachine && !is_host_list(hosts) &&
             !std::filesystem::is_regular_file(hosts)) {
    fail_usage(
        "--hosts: expected sim:NAME, null, host, slurm, localhost, a hosts file or hosts such as a,b, got \"{}\", "
        "which is not a file",
        hosts);
  }
}

RunTarget parse_target(const std::string& hosts) {
  require_target(hosts);
  RunTarget target{.fabric = fabric_of(hosts), .roles = {}};
  if (target.fabric == "verbs") target.roles = assign_roles(read_hosts(hosts), hosts);
  return target;
}

void require_local(const RunTarget& target, const std::string& hosts) {
  if (!target.roles) return;
  const auto require = [&hosts](const Host& host) {
    if (is_this_machine(host.name)) return;
    fail("{}:{}: host {} is not this machine: use --launcher ssh or slurm", hosts, host.line, host.name);
  };
  require(target.roles->server);
  std::ranges::for_each(target.roles->clients, require);
}

PointRunner::PointRunner(std::filesystem::path binary, BenchmarkSpec spec, RunTarget target, const RoleLimits& limits,
                         StopSource* stop)
    : binary_(std::move(binary)), spec_(std::move(spec)), target_(std::move(target)), limits_(limits), stop_(stop) {}

std::optional<Record> PointRunner::run(const Point& point) const {
  if (target_.programs != nullptr && is_simulated(target_.fabric)) {
    if (auto program = target_.programs->take(binary_)) {
      std::optional<Record> record = run(point, program.get());
      target_.programs->give_back(std::move(program));
      return record;
    }
  }
  return run(point, nullptr);
}

std::optional<Record> PointRunner::run(const Point& point, ServedProgram* program) const {
  RoleGroup group(limits_, stop_, target_.launcher);
  if (target_.roles) {
    start_roles(point, *target_.roles, group);
  } else {
    Role role = make_role(point, "", nullptr);
    role.program = program;
    group.start(std::move(role));
  }
  group.wait_all();
  group.end_all();
  if (group.interrupted()) return std::nullopt;
  if (!group.failure()) return combined(point, group.roles());
  const RoleGroup::Failure& failure = *group.failure();
  const Role& blamed = group.roles()[failure.role];
  Record record = failure.reason.empty() ? collect(point, blamed) : failed(point, blamed, failure.reason);
  record.reason += failure.others;
  add_others(point, group.roles(), failure.role, record);
  return record;
}

Role PointRunner::make_role(const Point& point, const std::string& name, const Host* host) const {
  Role role;
  role.name = name;
  if (host != nullptr) role.host = *host;
  std::tie(role.holder, role.command) = place(role.host);
  role.command.insert(role.command.end(),
                      {option_argument("fabric", target_.fabric), option_argument("seed", point.seed)});
  for (const auto& [key, value] : point.params.items()) {
    if (host == nullptr || !set_by_hosts(key, *host)) role.command.push_back(option_argument(key, value));
  }
  // The number of processors is given by --jobs, so that each simulation uses one thread.
  const bool simulated = host == nullptr && is_simulated(target_.fabric);
  if (simulated && spec_.find("sim_threads") != nullptr && !point.params.contains("sim_threads")) {
    role.command.push_back(option_argument("sim_threads", 1));
  }
  if (host == nullptr) return role;
  if (!host->device.empty()) {
    role.command.push_back("--ib_dev=" + host->device + (host->ib_port ? fmt::format(":{}", host->ib_port) : ""));
  }
  if (host->gid_index >= 0) role.command.push_back(fmt::format("--gid_index={}", host->gid_index));
  if (!host->cores.empty()) role.command.push_back("--cores=" + host->cores);
  return role;
}

std::pair<std::string, std::vector<std::string>> PointRunner::place(const Host& host) const {
  if (target_.launcher == nullptr) return {"", {binary_.string()}};
  if (host.name.empty()) return {binary_.parent_path() / "verbscope", {binary_.string()}};
  const std::string* holder = target_.deployment->path(host, "verbscope");
  if (holder == nullptr) return {"", {binary_.string()}};
  return {*holder, {*target_.deployment->path(host, binary_.filename().string())}};
}

void PointRunner::start_roles(const Point& point, const RoleAssignment& roles, RoleGroup& group) const {
  const std::vector<std::string> environment{"VERBSCOPE_SECRET=" + make_secret()};
  const auto start = [&](const std::string& name, const Host& host, const std::vector<std::string>& arguments) {
    Role role = make_role(point, name, &host);
    role.environment = environment;
    role.command.push_back(fmt::format("--clients={}", roles.clients.size()));
    role.command.insert(role.command.end(), arguments.begin(), arguments.end());
    group.start(std::move(role));
  };
  start("server", roles.server, {fmt::format("--port={}", target_.port), "--listen=" + roles.server.data_address()});
  const int port = group.wait_for_port();
  for (std::size_t i = 0; i < roles.clients.size(); ++i) {
    start(fmt::format("client {}", i), roles.clients[i], {fmt::format("--port={}", port), roles.server.data_address()});
  }
}

Record PointRunner::collect(const Point& point, const Role& role) const {
  const std::string end = role.task->end_text();
  std::vector<Record> records;
  std::string broken;
  if (std::filesystem::exists(role.record_file())) {
    try {
      Results results = read_results(role.record_file());
      records = std::move(results.records);
      if (!results.warnings.empty()) broken = "its record is broken: " + results.warnings.front();
    } catch (const Error& error) {
      broken = std::string("its record cannot be read: ") + error.what();
    }
  }
  if (records.size() == 1 && broken.empty()) {
    Record record = std::move(records.front());
    record.config["point"] = point_identity(point, target_.fabric);
    if (record.status == RecordStatus::failed) {
      record.reason = role.prefix() + record.reason;
      add_process_end(record, role);
    }
    if (record.status == RecordStatus::failed || role.task->succeeded()) return record;
  }
  if (!role.task->succeeded()) return failed(point, role, with_last_line(end, role.task->tail()));
  if (broken.empty()) broken = fmt::format("it wrote {} records instead of one", records.size());
  return failed(point, role, fmt::format("{}, but {}", end, broken));
}

Record PointRunner::failed(const Point& point, const Role& role, const std::string& reason) const {
  Record record;
  record.benchmark = spec_.name;
  record.status = RecordStatus::failed;
  record.reason = role.prefix() + reason;
  record.config = point.params;
  record.config["point"] = point_identity(point, target_.fabric);
  add_process_end(record, role);
  record.environment = make_environment(target_.fabric, role.command);
  return record;
}

void PointRunner::add_others(const Point& point, const std::vector<Role>& roles, std::size_t blamed,
                             Record& record) const {
  Json others = Json::array();
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const Role& role = roles[i];
    if (i == blamed || !role.task) continue;
    const bool failed = !role.cut_short && role.ended_badly();
    others.push_back(failed ? collect(point, role).reason
                            : role.prefix() + (role.cut_short ? "ended by verbscope" : role.task->end_text()));
  }
  if (!others.empty()) record.result["others"] = std::move(others);
}

Record PointRunner::combined(const Point& point, const std::vector<Role>& roles) const {
  Record record = collect(point, roles.front());
  if (roles.size() == 1 || record.status == RecordStatus::failed) return record;
  Json clients = Json::array(), environments = Json::array();
  for (std::size_t i = 1; i < roles.size(); ++i) {
    Record client = collect(point, roles[i]);
    if (client.status == RecordStatus::failed) return client;
    clients.push_back(Json{{"host", roles[i].host.name}, {"result", client.result}});
    environments.push_back(std::move(client.environment));
    for (CounterReport& report : client.counters) record.counters.push_back(std::move(report));
  }
  record.result["clients"] = clients;
  record.environment["clients"] = environments;
  return record;
}

}  // namespace verbscope
