#include "microbench/bench/options.hpp"

#include <algorithm>
#include <string_view>

#include "common/error.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "counters/sources.hpp"
#include "nic_sim/cluster.hpp"
#include "wire/packet.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kMaxDepth = 1u << 20;
constexpr std::uint64_t kMaxIters = 1ull << 50;
constexpr std::uint32_t kMaxThreads = 4096;
constexpr std::uint32_t kMaxClients = 40'000;  // a simulated node has a LID, of which InfiniBand has 49,151
constexpr int kMaxCore = 1 << 16;

void add_operation_options(OptionTable& table, Options& o) {
  table.group("The operation");
  table.choice<Transport>("-c,--connection", o.connection, names_and_values(kBenchmarkTransports), "transport");
  table.unsupported("--connection", {"DC", "XRC", "SRD", "RawEth"});
  table.bytes("-s,--size", o.size, 0u, kLongestMessage, "payload (default 64; 0 with --header_only)");
  table.flag("--header_only", o.header_only, "send a 4-byte immediate and no payload");
  table.integer("-l,--post_list", o.post_list, 1u, kMaxDepth, "work requests in one ibv_post_send");
  table.bytes("-I,--inline_size", o.inline_size, 0u, 1u << 16, "largest payload that is sent inline");
  table.integer("-Q,--cq_mod", o.cq_mod, 1u, kMaxDepth,
                "signal one of this many work requests (default: up to 64, at most half of --tx_depth)");
  table.integer("-q,--qp", o.qp, 1u, kMaxDepth, "QPs of each thread of the server");
  table.integer("-t,--tx_depth", o.tx_depth, 1u, kMaxDepth, "depth of a send queue");
  table.integer("-r,--rx_depth", o.rx_depth, 1u, kMaxDepth,
                "depth of a receive queue (default 512, or more if the requests of all clients need it)");
  table.integer("--threads", o.threads, 1u, kMaxThreads, "threads of the server, each pinned to a core");
  table.bytes("--inline_recv", o.inline_recv, 0u, 1u << 12,
              "receive payloads up to this size inside the CQE, if the device supports it");
  table.flag("--wr_api", o.wr_api, "post with the ibv_wr_* builder instead of ibv_post_send");
  table.text("--uars", o.uars, "default, exclusive or an even number from 8 to 512",
             "doorbell registers of a context: the driver's default, one per thread, or this number");
  table.flag("-e,--events", o.events, "sleep until a completion event when a poll finds nothing");
  table.flag(
      "--disable_pcie_relaxed", o.disable_pcie_relaxed,
      "register no memory with relaxed ordering (default: rate benchmarks use it for memory that no thread polls)");
  table.flag("--validate", o.validate, "check every byte, length and immediate that arrives");
}

void add_qp_options(OptionTable& table, QpSettings& qps) {
  table.group("QPs and paths");
  table.integer("--tclass", qps.traffic_class, 0u, 255u, "traffic class in the GRH, on RoCE in the IP header");
  table.integer("-S,--sl", qps.service_level, 0u, 15u, "service level");
  table.integer("--flow_label", qps.flow_label, 0u, (1u << 20) - 1, "flow label in the GRH");
  table.integer("--pkey_index", qps.pkey_index, 0u, 65535u, "entry of the port's table of partition keys");
  table.integer(
      "-u,--qp_timeout", qps.qp_timeout, 0u, 31u,
      "RC: resend if no ACK arrives within 4.096 us * 2^N; 0: never (default 14, or more if the device needs it)");
  table.integer("--retry_count", qps.retry_count, 0u, 7u,
                "RC: resend up to this many times before the QP fails (default 7)");
  table.integer(
      "--rnr_timer", qps.rnr_timer, 0u, 31u,
      "RC: delay that an RNR NAK asks for, as IBTA encodes it: 1 is 10 us, 12 is 640 us, 0 is 655 ms (default 12)");
  table.integer("--rnr_retry", qps.rnr_retry, 0u, 7u,
                "RC: resend up to this many times after RNR NAKs before the QP fails; 7: no limit (default 7)");
  table.integer("-T,--tos", qps.tos, 0u, 255u,
                "type of service: the same as --tclass if packets have a GRH, else no effect");
  table.flag("-R,--rdma_cm", qps.rdma_cm, "RC: connect the QPs with librdmacm, by the IP addresses of the ports");
  table.integer("-o,--outs", qps.outstanding, 1u, 255u,
                "outstanding READs and atomics per RC QP (default: the most that both devices allow)");
}

void add_time_options(OptionTable& table, Options& o) {
  table.group("Measurement");
  table.duration("-D,--duration", o.duration,
                 "measure for this long (default 3 s; null 1 s; sim 1 ms of simulated time)");
  table.integer("-n,--iters", o.iters, std::uint64_t{1}, kMaxIters,
                "measure exactly this many operations per QP, instead of --duration");
  table.flag("--run_infinitely", o.run_infinitely, "measure until Ctrl-C, and print the rate of each --duration");
  table.duration("--warmup", o.warmup, "warm up for this long (default 500 ms; sim 1 ms of simulated time)",
                 OptionTable::Zero::allowed);
  table.duration("--longest", o.longest,
                 "if the rate is not steady, repeat with twice the duration, up to this total (default 10 times "
                 "--warmup plus --duration, at least 30 s; sim 100 times, at least 20 ms)");
  table.integer("--seed", o.seed, std::uint64_t{0}, std::uint64_t{1} << 53, "seed of payloads and of the simulator");
}

void add_place_options(OptionTable& table, Options& o) {
  table.group("Where it runs");
  table.text("--fabric", o.fabric, "verbs, sim:NAME or null",
             "run on libibverbs devices, on a simulated cluster, or on the null device");
  table.integer("--sim_threads", o.sim_threads, 1u, SimWork::kMaxPartitions,
                "sim: threads of this machine that run the simulation, one for the server and the others for the "
                "clients; results do not depend on it (default 1; on InfiniBand 2 for 16 machines and more)",
                false);
  auto flow_controls = names_and_values(kFlowControls);
  std::erase_if(flow_controls, [](const auto& each) { return each.second == FlowControl::credits; });  // InfiniBand's
  table.optional_choice<FlowControl>(
      "--flow_control", o.flow_control, flow_controls,
      "sim, Ethernet: full switches drop packets (none) or pause senders (pfc) (default: the profile's)");
  table.optional_choice<CongestionControl>(
      "--congestion_control", o.congestion_control, names_and_values(kCongestionControls),
      "sim, Ethernet: adapters ignore ECN marks (none) or slow down (dcqcn) (default: the profile's)");
  table.integer("--clients", o.clients, 1u, kMaxClients,
                "client machines (default 1; sim: enough that they are not the limit)");
  table.integer("--client_threads", o.client_threads, 1u, kMaxThreads,
                "threads of each client (default 1; sim: 1 if clients receive, one per core if they send)");
  table.text("-d,--ib_dev", o.ib_dev, "a device", "device, such as mlx5_0 or mlx5_0:1 (default: the first)");
  table.text("-i,--ib_port", o.ib_port, "a port number, or all",
             "port of the device; all: deal the QPs to all active ports");
  table.integer("-x,--gid_index", o.gid_index, -1, 255,
                "entry of the GID table; -1: select one automatically and report it");
  table.bytes("-m,--mtu", o.mtu, 256u, 4096u, "path MTU (default: the smaller MTU of both ports)");
  table.integer("-p,--port", o.port, 0u, 65535u,
                "TCP port of the exchange between server and clients; 0: any free port");
  table.text("--listen", o.listen, "an address or a name of this machine",
             "address on which the server listens (default: all)", false);
  table.duration("--timeout", o.timeout, "longest wait for a peer (default 10 s)");
  table.text("--secret", o.secret, "any text", "shared secret of the run (default: the variable VERBSCOPE_SECRET)",
             false);
  table.flag("--any_build", o.any_build, "accept a peer that was built from other sources");
  table.text("--cores", o.cores, "a list such as 0-3,8",
             "cores of the threads, in this order (default: the allowed cores)");
  table.text(
      "--counter_sources", o.counter_sources,
      "auto, none or a list of " + fmt::format("{}", fmt::join(counter_sources(), ", ")),
      "sources that count PCIe, CPU and NIC events during the measurement (auto: on verbs all but driver, else none)");
  table.flag("--require_counters", o.require_counters, "fail if one of --counter_sources cannot count");
  table.text("--out_json_file", o.out_json_file, "a file, or - for standard output", "append the record to this file",
             false);
  table.flag("--out_json", o.out_json, "append the record to --out_json_file, or to perftest_out.json without it",
             false);
  table.optional_choice<Figure>(
      "--output", o.output,
      {{"bandwidth", Figure::bandwidth}, {"message_rate", Figure::message_rate}, {"latency", Figure::latency}},
      "print only this figure: MiB/s (Gb/s with --report_gbits), Mops, or the mean latency in us");
}

void add_limit_options(OptionTable& table, Options& o) {
  table.group("Limits");
  table.number("-w,--limit_bw", o.limit_bw, "fail if the bandwidth is below this number of MiB/s (2^20 bytes)");
  table.flag("--report_gbits", o.report_gbits,
             "use Gb/s (10^9 bits) for --limit_bw and for exported bandwidth; a run always prints both units");
  table.number("-y,--limit_msgrate", o.limit_msgrate, "fail if the rate is below this number of Mops");
}

// Command lines of perftest run unchanged.
void add_idle_options(OptionTable& table, Options& o) {
  table.group("Accepted as in perftest, without effect");
  table.flag("-F,--CPU_freq", o.cpu_freq, "no effect: verbscope prints no warning about CPU frequencies");
  table.flag("-N,--noPeak", o.no_peak, "no effect: verbscope computes no peak");
  table.flag("--perform_warm_up", o.perform_warm_up, "no effect: every run warms up (--warmup)", false);
  table.flag("-z,--comm_rdma_cm", o.comm_rdma_cm, "no effect: server and clients exchange their QPs over TCP", false);
}

int parse_int(std::string_view text, const std::string& option, int low, int high) {
  const std::optional<int> value = number_from<int>(text);
  if (!value || *value < low || *value > high) {
    fail_usage("{}: expected a number from {} to {}, got \"{}\"", option, low, high, text);
  }
  return *value;
}

}  // namespace

void add_common_options(OptionTable& table, Options& options) {
  add_operation_options(table, options);
  add_qp_options(table, options.qps);
  add_time_options(table, options);
  add_place_options(table, options);
  add_limit_options(table, options);
  add_idle_options(table, options);
}

void add_local_options(OptionTable& table, Options& o) {
  o.fabric = kHostFabric;
  o.counter_sources = "papi";
  table.integer("--threads", o.threads, 1u, kMaxThreads, "threads, each pinned to a core");
  table.duration("-D,--duration", o.duration, "measure for this long (default 1 s)");
  table.duration("--warmup", o.warmup, "warm up for this long (default 200 ms)", OptionTable::Zero::allowed);
  table.duration("--longest", o.longest,
                 "if the rate is not steady, repeat with twice the duration, up to this total (default 10 times "
                 "--warmup plus --duration, at least 30 s)");
  table.integer("--seed", o.seed, std::uint64_t{0}, std::uint64_t{1} << 53, "seed of the random numbers");
  table.text("--fabric", o.fabric, "host", "this machine; the benchmark has no peers");
  table.text("--cores", o.cores, "a list such as 0-3,8",
             "cores of the threads, in this order (default: the allowed cores)");
  table.text("--counter_sources", o.counter_sources, "none, or papi",
             "count the threads' instructions and cycles during the measurement, if this machine allows it");
  table.flag("--require_counters", o.require_counters, "fail if one of --counter_sources cannot count");
  table.text("--out_json_file", o.out_json_file, "a file, or - for standard output", "append the record to this file",
             false);
}

void offer_transports(OptionTable& table, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const auto& [name, transport] : names_and_values(kBenchmarkTransports)) {
    const auto has = [&own = facts(transport).verbs](Verb verb) { return own.has(verb); };
    if (std::ranges::any_of(verbs, has)) names.push_back(name);
  }
  table.offer("--connection", names);
}

namespace {

// Refuses settings that the transport or the fabric does not have.
void check_qp_settings(const Options& o) {
  if (o.qps.rdma_cm && o.fabric != "verbs") fail_usage("--rdma_cm: only with --fabric verbs, not {}", o.fabric);
  if (o.qps.rdma_cm && o.connection != Transport::rc) {
    fail_usage("--rdma_cm: only with --connection RC, not {}", to_string(o.connection));
  }
  if (o.qps.tos != 0 && o.qps.traffic_class != 0) fail_usage("--tos and --tclass set the same field: give one of them");
  if (o.qps.rdma_cm && (o.qps.rnr_timer || o.qps.rnr_retry)) {
    fail_usage("--rdma_cm: librdmacm sets the RNR timer and retries; leave out --rnr_timer and --rnr_retry");
  }
  if (facts(o.connection).reliable) return;
  const auto refuse = [&o](const char* option, const std::optional<std::uint32_t>& value) {
    if (value)
      fail_usage("{} {}: only with --connection RC, {} does not retransmit", option, *value, to_string(o.connection));
  };
  refuse("--qp_timeout", o.qps.qp_timeout);
  refuse("--retry_count", o.qps.retry_count);
  refuse("--rnr_timer", o.qps.rnr_timer);
  refuse("--rnr_retry", o.qps.rnr_retry);
  if (o.qps.outstanding) {
    fail_usage("--outs {}: only with --connection RC, {} has neither READs nor atomics", *o.qps.outstanding,
               to_string(o.connection));
  }
}

}  // namespace

const char* network_option(const Options& o) {
  if (o.flow_control) return "--flow_control";
  return o.congestion_control ? "--congestion_control" : nullptr;
}

namespace {

void check_local_options(const Options& o) {
  if (o.fabric != kHostFabric) fail_usage("--fabric {}: expected host, this benchmark has no peers", o.fabric);
  for (const std::string& name : parse_counters(o.counter_sources, "--counter_sources", false)) {
    if (name != "papi") fail_usage("--counter_sources {}: expected papi or none, this benchmark uses no NIC", name);
  }
  parse_cores(o.cores);
}

}  // namespace

void check_options(const Options& o, bool local) {
  if (local) return check_local_options(o);
  if (o.header_only && o.size.value_or(0) != 0) {
    fail_usage("--header_only sends no payload: leave out --size {}", *o.size);
  }
  if (o.post_list > o.tx_depth) {
    fail_usage("--post_list {} is more than the send queue holds (--tx_depth {})", o.post_list, o.tx_depth);
  }
  if (o.cq_mod && *o.cq_mod + o.post_list > o.tx_depth + 1) {
    fail_usage(
        "--cq_mod {} with --post_list {} can wait for ever on a send queue of --tx_depth {}: cq_mod + post_list may be "
        "at most tx_depth + 1",
        *o.cq_mod, o.post_list, o.tx_depth);
  }
  if (o.run_infinitely && o.iters) fail_usage("--run_infinitely and --iters exclude each other");
  if (o.run_infinitely && !o.out_json_file.empty()) {
    fail_usage("--run_infinitely: a run without an end has no record; leave out --out_json_file {}", o.out_json_file);
  }
  if (o.run_infinitely && (o.longest || o.limit_bw || o.limit_msgrate)) {
    fail_usage("--run_infinitely: --longest, --limit_bw and --limit_msgrate need a run that ends");
  }
  if (o.iters && o.duration) fail_usage("--iters and --duration exclude each other");
  if (!is_fabric(o.fabric) || o.fabric == kHostFabric) {
    fail_usage("--fabric: expected verbs, sim:NAME or null, got \"{}\"", o.fabric);
  }
  if (o.sim_threads && !is_simulated(o.fabric)) {
    fail_usage("--sim_threads {}: only with --fabric sim:NAME, not {}", *o.sim_threads, o.fabric);
  }
  if (const char* option = network_option(o); option != nullptr && !is_simulated(o.fabric)) {
    fail_usage("{}: only with --fabric sim:NAME, not {}", option, o.fabric);
  }
  if (o.fabric != "verbs" && !o.host.empty()) {
    fail_usage("a host argument ({}) has no effect with --fabric {}: one process has all roles", o.host, o.fabric);
  }
  if (!o.listen.empty() && (o.fabric != "verbs" || !o.host.empty())) {
    fail_usage("--listen {}: only for a server with --fabric verbs, {} does not listen", o.listen,
               o.host.empty() ? "--fabric " + o.fabric : "a client");
  }
  if (o.mtu && std::ranges::count(std::array{256u, 512u, 1024u, 2048u, 4096u}, *o.mtu) == 0) {
    fail_usage("--mtu: expected 256, 512, 1024, 2048 or 4096, got {}", *o.mtu);
  }
  check_qp_settings(o);
  parse_uars(o.uars);
  selected_port(o);
  parse_cores(o.cores);
  const std::vector<std::string> counters = parse_counters(o.counter_sources, "--counter_sources", o.fabric == "verbs");
  if (is_simulated(o.fabric) && !counters.empty() && counters != std::vector<std::string>{"driver"}) {
    fail_usage("--counter_sources {}: with --fabric {} expected none or driver, the simulator has counters of its own",
               o.counter_sources, o.fabric);
  }
}

std::vector<int> parse_cores(const std::string& text) {
  std::vector<int> cores;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const int first = parse_int(item.substr(0, dash), "--cores", 0, kMaxCore);
    const int last = dash == item.npos ? first : parse_int(item.substr(dash + 1), "--cores", first, kMaxCore);
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

UarChoice parse_uars(const std::string& text) {
  if (text == "default") return UarChoice{};
  if (text == "exclusive") return UarChoice{.exclusive = true};
  const auto number = number_from<std::uint32_t>(text);
  if (!number || *number < 8 || *number > 512 || *number % 2 != 0) {
    fail_usage("--uars: expected default, exclusive or an even number from 8 to 512, got \"{}\"", text);
  }
  return UarChoice{.shared = *number};
}

int selected_port(const Options& o) {
  const int port = o.ib_port == "all" ? 0 : parse_int(o.ib_port, "--ib_port", 1, 255);
  const std::size_t colon = o.ib_dev.find(':');
  if (colon == std::string::npos) return port;
  const int of_device = parse_int(o.ib_dev.substr(colon + 1), "--ib_dev: port", 1, 255);
  if (port != 0 && port != of_device) fail_usage("--ib_port {}: --ib_dev {} selects another port", port, o.ib_dev);
  return of_device;
}

void add_all_sizes(OptionTable& table, bool& all, const std::string& last) {
  table.flag("-a,--all", all,
             fmt::format("run payloads of 2, 4, 8 ... bytes up to --size (default {}), with one record each", last));
}

std::vector<std::uint32_t> all_sizes(const Options& o, std::uint32_t last) {
  if (o.header_only) fail_usage("--all: with --header_only there is one size, 0");
  if (o.run_infinitely) fail_usage("--all: with --run_infinitely the first size would never end");
  if (!o.size && facts(o.connection).one_packet) {
    fail_usage("--all: with --connection {} also give --size, at most the MTU", to_string(o.connection));
  }
  last = o.size.value_or(last);
  if (last < 2) fail_usage("--size {}: --all begins with 2 bytes", last);
  if (o.fabric == "verbs" && o.port == 0)
    fail_usage("--port 0: with --all expected a fixed port, the two sides connect again for each size");
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 2; size < last; size *= 2) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

}  // namespace verbscope
