#include "systems/service/service.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/cli.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/record_sink.hpp"
#include "systems/service/runs.hpp"

namespace verbscope {

namespace {

void add_options(OptionTable& table, ServiceOptions& o, std::optional<Picos>& timeout, std::optional<Picos>& rto) {
  table.group("Where it runs");
  table.text("--fabric", o.fabric, "verbs or sim:NAME",
             "run on a libibverbs device, or all roles on a simulated cluster");
  table.text("-d,--ib_dev", o.ib_dev, "a device", "device, such as mlx5_0 or mlx5_0:2 (default: the first)");
  table.integer("-x,--gid_index", o.gid_index, -1, 255, "GID index of the port (-1: choose)");
  table.integer("-p,--port", o.port, 1u, 65535u, "TCP port of a server");
  table.text("--secret", o.secret, "a text", "shared secret of all processes (default: VERBSCOPE_SECRET)", false);
  table.text("--cores", o.cores, "a list such as 0-3,8", "pin the threads to these cores (default: free ones)");
  table.integer("--threads", o.threads, 1u, 1024u, "threads of each process, each with its endpoint");
  table.integer("--workers", o.workers, 0u, 256u, "worker threads of each server, besides --threads");
  table.integer("--clients", o.clients, 1u, 1024u, "sim: client machines");
  table.integer("--seed", o.seed, std::uint64_t{0}, std::uint64_t{1} << 32, "sim: seed of the simulator");
  add_loss_option(table, o.loss);
  table.text("--out_json_file", o.out_json_file, "a file, or - for standard output", "append the record to this file",
             false);
  table.group("RPCs");
  table.duration("--timeout", timeout, "wait this long for a session to open (default 5 s)");
  table.integer("--packet_size", o.packet_bytes, 64u, 4096u, "largest packet in bytes: header of 16 and data");
  table.integer("--credits", o.rpc.credits, 1u, 256u, "packets of a session that may be on their way to the server");
  table.integer("--recvs", o.rpc.recvs, 32u, 1u << 16, "RECVs of an endpoint; each session needs --credits of them");
  add_control_option(table, o.rpc);
  table.duration("--rto", rto,
                 "resend packets without an answer after this long (default 5 ms); twice as long after each time-out "
                 "in a row, up to 8 times");
  table.integer("--most_timeouts", o.rpc.most_timeouts, 1u, 1000u,
                "time-outs of a call in a row after which its session fails");
}

// The host argument, which is empty at a server.
std::vector<std::string> servers_of(const Service& service, const std::string& hosts) {
  if (hosts.empty()) return {};
  std::vector<std::string> servers = split(hosts, ',');
  if (std::ranges::find(servers, "") != servers.end()) fail_usage("host {}: expected HOST[:PORT],...", hosts);
  if (servers.size() > 1 && service.servers() == 1) {
    fail_usage("host {}: {} has one server", hosts, service.describe().name);
  }
  return servers;
}

void check(const ServiceOptions& o) {
  if (o.fabric != "verbs" && !is_simulated(o.fabric)) {
    fail_usage("--fabric {}: expected verbs or sim:NAME", o.fabric);
  }
  if (o.fabric != "verbs" && !o.servers.empty()) {
    fail_usage("a host argument ({}) has no effect with --fabric {}: one process has all roles", o.servers.front(),
               o.fabric);
  }
  if (o.fabric == "verbs" && o.clients != 1) fail_usage("--clients {}: only with --fabric sim:NAME", o.clients);
  check_loss(o.loss, o.fabric);
  if (o.rpc.recvs % DatagramTransport::kRecvList != 0) {
    fail_usage("--recvs {}: expected a multiple of {}", o.rpc.recvs, DatagramTransport::kRecvList);
  }
  parse_cores(o.cores);
}

// Runs the service and writes its record, also if it fails.
void run_service(Service& service, ServiceOptions& options, const std::string& hosts, const OptionTable& table,
                 const std::vector<std::string>& command_line) {
  if (!is_simulated(options.fabric)) TscClock::calibrate();
  RecordSink sink(options.out_json_file);
  const Record record = run_recorded(sink, {options.name, options.fabric, table, command_line}, [&] {
    options.servers = servers_of(service, hosts);
    check(options);
    return options.fabric == "verbs" ? run_on_host(service, options) : run_simulated(service, options);
  });
  const std::string text = service.summary(record.result);
  if (text.empty() || sink.to_stdout()) return;
  print_text(stdout, text + (is_simulated(options.fabric) ? "simulated time\n" : ""));
}

int run_with_arguments(Service& service, int argc, char** argv) {
  const Description description = service.describe();
  CLI::App app(description.summary);
  ServiceOptions options;
  options.name = description.name;
  std::optional<Picos> timeout, rto;
  OptionTable table(app);
  add_options(table, options, timeout, rto);
  table.group("Options of this service");
  service.options(table);
  bool list_options = false;
  app.add_flag("--describe", list_options, "print the options as JSON and end")->group("Help");
  std::string hosts;
  app.add_option("host", hosts,
                 "name or address of the server (HOST[:PORT],... of several); without it, this process serves");
  app.footer(
      fmt::format("Examples:\n  {0} --fabric sim:cx4 {1}\n  {0} -d mlx5_0 {1}\n  {0} -d mlx5_0 {1} HOST\n"
                  "The first command simulates. For devices, run the second on HOST, then the third.",
                  description.name, description.example));
  parse_args(app, argc, argv);
  if (list_options) {
    print_text(stdout, dump_json(table.describe(description.name, description.summary, description.example)) + "\n");
    return 0;
  }
  options.timeout = timeout.value_or(options.timeout);
  options.rpc.rto = rto.value_or(options.rpc.rto);
  run_service(service, options, hosts, table, {argv, argv + argc});
  return 0;
}

}  // namespace

int service_main(Service& service, int argc, char** argv) {
  return run_main(service.describe().name.c_str(), argc, argv,
                  [&service](int count, char** arguments) { return run_with_arguments(service, count, arguments); });
}

}  // namespace verbscope
