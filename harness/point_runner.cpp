#include "harness/point_runner.hpp"

#include <random>

#include "common/environment.hpp"
#include "common/paths.hpp"
#include "pcie_model/wire/cluster_wire.hpp"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kDescribeTimeout{10};
constexpr std::size_t kMaxDescription = 1 << 20;

// 128 random bits for the exchange of one point; passed in the environment, which other users cannot read.
std::string make_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// The hosts file has the last word on who takes part and with which device.
bool set_by_hosts(const std::string& key, const Host& host) {
  return key == "clients" || (key == "ib_dev" && !host.device.empty()) || (key == "gid_index" && host.gid_index >= 0);
}

}  // namespace

RunTarget parse_target(const std::string& hosts) {
  if (hosts == "null") return {.fabric = hosts, .cast = {}};
  if (hosts.starts_with("sim:")) {
    const std::filesystem::path profile = find_config("clusters", hosts.substr(4));
    read_cluster_wire(read_json_file(profile), profile.string());
    return {.fabric = hosts, .cast = {}};
  }
  const std::filesystem::path path = hosts;
  if (!std::filesystem::is_regular_file(path)) {
    fail("--hosts: expected sim:NAME, null or a hosts file, got \"{}\", which is no file", hosts);
  }
  const std::vector<Host> parsed = read_hosts_file(path);
  for (const Host& host : parsed) {
    if (!is_this_machine(host.name)) {
      fail("{}:{}: host {} is not this machine: there is no launcher for other machines yet", hosts, host.line,
           host.name);
    }
  }
  return {.fabric = "verbs", .cast = cast_roles(parsed, hosts)};
}

BenchmarkSpec describe_benchmark(const std::filesystem::path& binary) {
  std::string output;
  Child child({binary.string(), "--describe"}, [&output](std::string_view chunk) {
    output.append(chunk.substr(0, kMaxDescription - std::min(kMaxDescription, output.size())));
  });
  const std::string what = binary.filename().string() + " --describe";
  const auto ended = [&child] { return !child.running(); };
  if (wait_children({&child}, std::chrono::steady_clock::now() + kDescribeTimeout, nullptr, ended) !=
      WaitEnd::satisfied) {
    fail("{}: no answer after {} s", what, kDescribeTimeout.count());
  }
  if (!child.succeeded()) {
    const std::vector<std::string> tail = child.tail();
    fail("{}: {}{}", what, child.end_text(), tail.empty() ? "" : ": " + tail.back());
  }
  return parse_benchmark_spec(output, what);
}

PointRunner::PointRunner(std::filesystem::path binary, BenchmarkSpec spec, RunTarget target,
                         std::chrono::milliseconds timeout, Interrupt* interrupt)
    : binary_(std::move(binary)),
      spec_(std::move(spec)),
      target_(std::move(target)),
      timeout_(timeout),
      interrupt_(interrupt) {}

std::optional<Record> PointRunner::run(const Point& point) const {
  RoleGroup group(timeout_, interrupt_);
  if (target_.cast) {
    start_cast(point, *target_.cast, group);
  } else {
    group.start(make_role(point, "", nullptr), {});
  }
  group.wait_all();
  group.end_all();
  if (group.interrupted()) return std::nullopt;
  if (!group.failure()) return joined(point, group.roles());
  const Role& blamed = group.roles()[group.failure()->role];
  return group.failure()->reason.empty() ? collect(point, blamed) : failed(point, blamed, group.failure()->reason);
}

Json PointRunner::identity(const Point& point) const {
  return Json{{"benchmark", spec_.name},
              {"params", point.params},
              {"repetition", point.repetition},
              {"seed", point.seed},
              {"fabric", target_.fabric}};
}

Role PointRunner::make_role(const Point& point, const std::string& name, const Host* host) const {
  Role role;
  role.name = name;
  role.command = {binary_.string(), option_argument("fabric", target_.fabric), option_argument("seed", point.seed)};
  for (const auto& [key, value] : point.params.items()) {
    if (host == nullptr || !set_by_hosts(key, *host)) role.command.push_back(option_argument(key, value));
  }
  role.command.push_back("--out_json_file=" + role.record_file());
  if (host == nullptr) return role;
  role.host = host->name;
  if (!host->device.empty()) {
    role.command.push_back("--ib_dev=" + host->device + (host->ib_port ? fmt::format(":{}", host->ib_port) : ""));
  }
  if (host->gid_index >= 0) role.command.push_back(fmt::format("--gid_index={}", host->gid_index));
  return role;
}

void PointRunner::start_cast(const Point& point, const Cast& cast, RoleGroup& group) const {
  const std::vector<std::string> environment{"VERBSCOPE_SECRET=" + make_secret()};
  const std::string clients = fmt::format("--clients={}", cast.clients.size());
  Role server = make_role(point, "server", &cast.server);
  server.command.insert(server.command.end(), {clients, "--port=0"});
  group.start(std::move(server), environment);
  const int port = group.wait_for_port();
  const std::string address = cast.server.address.empty() ? cast.server.name : cast.server.address;
  for (std::size_t i = 0; i < cast.clients.size(); ++i) {
    Role client = make_role(point, fmt::format("client {}", i), &cast.clients[i]);
    client.command.insert(client.command.end(), {clients, fmt::format("--port={}", port), address});
    group.start(std::move(client), environment);
  }
}

Record PointRunner::collect(const Point& point, const Role& role) const {
  const std::string end = role.child->end_text();
  const std::vector<std::string> tail = role.child->tail();
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
    record.config["point"] = identity(point);
    if (record.status == RecordStatus::failed) record.reason = role.prefix() + record.reason;
    if (record.status == RecordStatus::failed || role.child->succeeded()) return record;
  }
  if (!role.child->succeeded()) {
    return failed(point, role, end + (tail.empty() ? "" : ": " + tail.back()));
  }
  if (broken.empty()) broken = fmt::format("it wrote {} records instead of one", records.size());
  return failed(point, role, fmt::format("{}, but {}", end, broken));
}

Record PointRunner::failed(const Point& point, const Role& role, const std::string& reason) const {
  Record record;
  record.benchmark = spec_.name;
  record.status = RecordStatus::failed;
  record.reason = role.prefix() + reason;
  record.config = point.params;
  record.config["point"] = identity(point);
  record.result = Json{{"command", role.command}};
  if (role.child) {
    record.result["end"] = role.child->end_text();
    record.result["output_tail"] = role.child->tail();
  }
  record.environment = make_environment(target_.fabric, role.command);
  return record;
}

Record PointRunner::joined(const Point& point, const std::vector<Role>& roles) const {
  Record record = collect(point, roles.front());
  if (roles.size() == 1 || record.status == RecordStatus::failed) return record;
  Json clients = Json::array();
  for (std::size_t i = 1; i < roles.size(); ++i) {
    Record client = collect(point, roles[i]);
    if (client.status == RecordStatus::failed) return client;
    clients.push_back(Json{{"host", roles[i].host}, {"result", client.result}});
    for (CounterReport& report : client.counters) record.counters.push_back(std::move(report));
  }
  record.result["clients"] = clients;
  return record;
}

}  // namespace verbscope
