#include "harness/perftest/options.hpp"

#include "common/error.hpp"
#include "common/record.hpp"
#include "microbench/bench/options.hpp"

namespace verbscope {
namespace {

// perftest has its own limits below these.
constexpr std::uint32_t kMost = 1u << 20;
constexpr std::uint32_t kLongestPayload = 1u << 31;
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 50;

std::vector<std::pair<std::string, std::string>> words(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& name : names) pairs.emplace_back(name, name);
  return pairs;
}

void add_operation_options(OptionTable& table, PerftestOptions& o) {
  table.group("The operation");
  table.choice<std::string>("--tool", o.tool,
                            words({"ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat", "ib_send_bw",
                                   "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat"}),
                            "program of perftest");
  table.choice<std::string>("-c,--connection", o.connection, words({"RC", "UC", "UD", "XRC", "DC", "SRD"}),
                            "transport");
  table.bytes("-s,--size", o.size, 1u, kLongestPayload, "payload (default 65536; 2 in latency tests)");
  table.integer("-l,--post_list", o.post_list, 1u, kMost, "work requests in one ibv_post_send (default 1)");
  table.bytes("-I,--inline_size", o.inline_size, 0u, 1u << 16,
              "largest payload that is sent inline (default 0; more in latency tests)");
  table.integer("-Q,--cq_mod", o.cq_mod, 1u, kMost, "signal one of this many work requests (default up to 100)");
  table.integer("-q,--qp", o.qp, 1u, kMost, "QPs (default 1)");
  table.integer("-t,--tx_depth", o.tx_depth, 1u, kMost, "depth of a send queue (default 128; 1 in latency tests)");
  table.integer("-r,--rx_depth", o.rx_depth, 1u, kMost, "depth of a receive queue of SENDs (default 512)");
  table.integer("-o,--outs", o.outstanding, 1u, 255u,
                "outstanding READs and atomics per QP (default: the most that the device allows)");
  table.choice<std::string>("-A,--atomic_type", o.atomic_type, words({"FETCH_AND_ADD", "CMP_AND_SWAP"}),
                            "atomic of ib_atomic_bw and ib_atomic_lat");
  table.flag("-e,--events", o.events, "sleep until a completion event when a poll finds nothing");
  table.flag("-b,--bidirectional", o.bidirectional, "post on both sides");
  table.flag("-N,--noPeak", o.no_peak, "compute no peak bandwidth, for which perftest reads the clock at each post");
  table.bytes("-m,--mtu", o.mtu, 256u, 4096u, "path MTU (default: the port's)");
  table.group("Measurement");
  table.duration("-D,--duration", o.duration, "measure for this many whole seconds, instead of --iters");
  table.integer("-n,--iters", o.iters, std::uint64_t{1}, kMostIterations,
                "operations of each QP (default 5000; 1000 in tests of READs and atomics)");
}

void add_place_options(OptionTable& table, PerftestOptions& o) {
  table.group("Where it runs");
  table.text("--fabric", o.fabric, "verbs or sim:NAME", "run on a libibverbs device, or on a simulated cluster");
  table.text("-d,--ib_dev", o.ib_dev, "a device", "device, such as mlx5_0 or mlx5_0:1 (default: the first)");
  table.integer("-x,--gid_index", o.gid_index, -1, 255, "entry of the GID table; -1: perftest chooses");
  table.integer("--clients", o.clients, 1u, 1u << 16, "client machines: 1, because perftest runs between two machines");
  table.integer("--seed", o.seed, std::uint64_t{0}, std::uint64_t{1} << 53, "sim: seed of the simulator");
  table.integer("-p,--port", o.port, 0u, 65535u,
                "TCP port of the exchange between server and client; 0: any free port");
  table.text("--listen", o.listen, "an address or a name of this machine",
             "address on which the server listens (default: all)", false);
  table.text("--secret", o.secret, "any text", "shared secret of the run (default: the variable VERBSCOPE_SECRET)",
             false);
  table.text("--cores", o.cores, "a list such as 0-3,8",
             "verbs: pin perftest to the first of these cores that no other run holds (default: the allowed cores)");
  table.duration("--timeout", o.timeout, "longest wait for the other side");
  table.duration("--time_limit", o.time_limit, "end perftest after this real time");
  table.text("--out_json_file", o.out_json_file, "a file, or - for standard output", "append the record to this file",
             false);
}

}  // namespace

void add_perftest_options(OptionTable& table, PerftestOptions& options) {
  add_operation_options(table, options);
  add_place_options(table, options);
}

void check_perftest_options(const PerftestOptions& o) {
  if (o.fabric != "verbs" && !is_simulated(o.fabric)) fail_usage("--fabric {}: expected verbs or sim:NAME", o.fabric);
  if (o.fabric != "verbs" && !o.host.empty()) {
    fail_usage("a host argument ({}) has no effect with --fabric {}: one process runs both sides", o.host, o.fabric);
  }
  if (!o.listen.empty() && (o.fabric != "verbs" || !o.host.empty())) {
    fail_usage("--listen {}: only for a server with --fabric verbs", o.listen);
  }
  if (o.clients != 1) fail_usage("--clients {}: expected 1, perftest runs between two machines", o.clients);
  if (o.iters && o.duration) fail_usage("--iters and --duration exclude each other");
  if (o.duration && *o.duration % std::chrono::seconds(1) != Picos(0)) {
    fail_usage("--duration {:g}: expected whole seconds", to_seconds(*o.duration));
  }
  parse_cores(o.cores);
}

std::vector<std::string> perftest_command(const PerftestOptions& o) {
  const PerftestOptions defaults;
  std::vector<std::string> command{o.tool, "-F"};  // no warning about CPU frequencies
  const auto add = [&command](const char* flag, const auto& value) {
    command.insert(command.end(), {flag, fmt::format("{}", value)});
  };
  const auto add_given = [&add](const char* flag, const auto& value) {
    if (value) add(flag, *value);
  };
  const auto add_flag = [&command](const char* flag, bool given) {
    if (given) command.emplace_back(flag);
  };
  // Some programs do not accept the option, even with its default.
  if (o.connection != defaults.connection) add("-c", o.connection);
  if (o.atomic_type != defaults.atomic_type) add("-A", o.atomic_type);
  add_given("-s", o.size);
  add_given("-l", o.post_list);
  add_given("-I", o.inline_size);
  add_given("-Q", o.cq_mod);
  add_given("-q", o.qp);
  add_given("-t", o.tx_depth);
  add_given("-r", o.rx_depth);
  add_given("-o", o.outstanding);
  add_given("-m", o.mtu);
  add_given("-n", o.iters);
  if (o.duration) add("-D", std::chrono::floor<std::chrono::seconds>(*o.duration).count());
  add_flag("-e", o.events);
  add_flag("-b", o.bidirectional);
  add_flag("-N", o.no_peak);
  if (o.gid_index >= 0) add("-x", o.gid_index);
  const std::size_t colon = o.ib_dev.find(':');
  if (!o.ib_dev.empty()) add("-d", o.ib_dev.substr(0, colon));
  if (colon != std::string::npos) add("-i", o.ib_dev.substr(colon + 1));
  return command;
}

}  // namespace verbscope
