#include "systems/rpc_rate/rpc_benchmark.hpp"

#include <algorithm>
#include <chrono>

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "microbench/bench/options.hpp"
#include "systems/rpc_rate/rpc_worker.hpp"
#include "wire/cluster_wire.hpp"
#include "wire/packet.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kUsualInline = 60;  // bytes; eRPC's
// Simulated time for one request of each machine, at 20 Gb/s into the server, the slowest of the simulated clusters.
constexpr double kSlowestBytesPerSecond = 2.5e9;
constexpr Picos kLeastSimTime = std::chrono::milliseconds(1);
constexpr int kMeasuredRequests = 3;      // of each machine, at that rate
constexpr std::uint32_t kAnyDepth = ~0u;  // of a queue without --rx_depth

bool has_multi_packet_recv(const std::string& fabric) {
  if (!is_simulated(fabric)) return false;
  const auto path = find_config("clusters", fabric.substr(fabric.find(':') + 1));
  return read_cluster_wire(read_json_file(path), path.string()).multi_packet_recv();
}

}  // namespace

RpcBenchmark::RpcBenchmark(const RpcDefaults& defaults)
    : defaults_(defaults),
      load_(defaults.load),
      serving_(defaults.load.all_serve ? RpcServing::all : RpcServing::server),
      machines_(defaults.machines) {}

void RpcBenchmark::options(OptionTable& table) {
  table_ = &table;
  table.restate("--connection", "UD", "transport; RPCs use UD only");
  table.restate("--size", defaults_.request_bytes, "bytes of a request");
  table.restate("--inline_size", kUsualInline, "largest packet that is sent inline");
  table.restate("--threads", 1, "threads of each machine, each pinned to a core");
  add_load_options(table);
  add_handler_options(table);
  add_protocol_options(table);
}

void RpcBenchmark::add_load_options(OptionTable& table) {
  table.integer("--machines", machines_, 2u, 1u << 10, "number of machines: one server, the others clients");
  if (defaults_.incast) {
    table.bytes("--background", background_bytes_, kLeastMessage, kMaxMessageBytes,
                "the last thread of each client calls those of random other clients, one request at a time, with "
                "requests and responses of this size; --threads is then 2 by default");
  } else {
    table.choice<RpcServing>(
        "--serve", serving_, {{"all", RpcServing::all}, {"server", RpcServing::server}, {"peers", RpcServing::peers}},
        "machines that serve: all, which also call each other; only the server, which then calls none; or, on the null "
        "device, only the peers");
  }
  const std::string response =
      defaults_.response_bytes ? fmt::format("default {}", *defaults_.response_bytes) : "default: --size";
  table.integer("--response_size", response_bytes_, kLeastMessage, kMaxMessageBytes,
                fmt::format("bytes of a response ({})", response));
  table.integer("--batch", load_.batch, 1u, 1u << 12,
                "requests that a thread sends together; the next batch follows when all are answered");
  table.integer("--outstanding", load_.outstanding, 1u, 1u << 16,
                "outstanding requests of a thread, over all sessions");
}

void RpcBenchmark::add_handler_options(OptionTable& table) {
  table.integer("--handler_ns", handler_ns_, 0u, 1'000'000'000u, "time that the handler of a slow request takes");
  table.integer("--slow_percent", slow_percent_, 1u, 100u,
                "share of slow requests (default 100 with --handler_ns or --handler worker, else none)");
  table.choice<bool>("--handler", by_workers_, {{"dispatch", false}, {"worker", true}},
                     "threads that handle slow requests: the one that received it, or worker threads");
  table.integer("--workers", workers_, 1u, 1u << 10,
                "worker threads of each machine, besides --threads (default 1 with --handler worker)");
}

void RpcBenchmark::add_protocol_options(OptionTable& table) {
  table.choice<bool>("--rpc", fasst_, {{"erpc", false}, {"fasst", true}},
                     "protocol: eRPC's, or FaSST's datagrams without sessions, congestion control or retransmission");
  table.integer("--packet_size", load_.packet_bytes, 64u, 4096u, "largest packet in bytes: header of 16 and data");
  table.integer("--credits", rpc_.credits, 1u, 256u, "packets of a session that may be on their way to the server");
  add_control_option(table, rpc_);
  table.duration("--rto", rto_, "resend packets without an answer after this long (default 5 ms)");
  add_loss_option(table, loss_);
  table.choice<bool>("--batched_stamps", rpc_.batched_stamps, {{"on", true}, {"off", false}},
                     "one time stamp per batch of packets, or one per packet");
  table.choice<bool>("--bypass_timely", rpc_.bypass_timely, {{"on", true}, {"off", false}},
                     "at link rate, no update while round trips are short (timely) or packets unmarked (dcqcn)");
  table.choice<bool>("--bypass_limiter", rpc_.bypass_limiter, {{"on", true}, {"off", false}},
                     "sessions at link rate send at once, without the rate limiter");
  table.choice<bool>(
      "--multi_packet_rq", multi_packet_rq_, {{"on", true}, {"off", false}},
      "one RECV descriptor for 512 packets: simulated mlx5 on Ethernet (default on there with --rpc erpc)");
  table.restate("--multi_packet_rq", nullptr);
  table.choice<bool>("--preallocate", rpc_.preallocate, {{"on", true}, {"off", false}},
                     "responses of one packet in preallocated buffers");
  table.choice<bool>("--zero_copy", rpc_.zero_copy, {{"on", true}, {"off", false}},
                     "handle requests of one packet where they arrived");
  table.flag(
      "--cpu_split", rpc_.time_work,
      "hosts: measure the CPU time of each kind of work by time stamps, 8 ns each; simulated machines always do");
}

void RpcBenchmark::adjust(Options& o) {
  check_common(o);
  o.connection = Transport::ud;
  if (!table_->given("--inline_size")) o.inline_size = kUsualInline;
  rto_ = rpc_.rto = rto_.value_or(rpc_.rto);
  if (!defaults_.incast) load_.all_serve = serving_ != RpcServing::server;
  settle_messages(o);
  settle_machines(o);
  settle_played(o);
  settle_handlers(o);
  settle_network(o);
  if (fasst_) check_fasst(o);
}

void RpcBenchmark::check_common(Options& o) const {
  if (o.header_only) fail_usage("--header_only: a request is checked by its bytes");
  if (o.events) fail_usage("--events: threads that serve and call poll");
  if (o.validate) fail_usage("--validate: every message is checked already");
  if (o.post_list != 1) fail_usage("--post_list {}: use --batch, whose packets share doorbells", o.post_list);
  if (o.connection != Transport::ud && table_->given("--connection")) {
    fail_usage("--connection {}: expected UD, over which RPCs go", to_string(o.connection));
  }
  if (o.qp != 1) fail_usage("--qp {}: a thread has one QP", o.qp);
}

void RpcBenchmark::settle_messages(Options& o) {
  o.size = o.size.value_or(defaults_.request_bytes);
  load_.response_bytes = response_bytes_.value_or(defaults_.response_bytes.value_or(*o.size));
  load_.background_bytes = background_bytes_.value_or(0);
  const PacketCut cut{load_.packet_bytes - kPacketHeaderBytes};
  for (const auto& [option, bytes] : {std::pair("--size", *o.size), std::pair("--response_size", load_.response_bytes),
                                      std::pair("--background", background_bytes_.value_or(kLeastMessage))}) {
    if (bytes < kLeastMessage || bytes > cut.most_bytes()) {
      fail_usage("{} {}: a message has from {} to {} bytes", option, bytes, kLeastMessage, cut.most_bytes());
    }
  }
  if (load_.outstanding % load_.batch != 0) {
    fail_usage("--outstanding {}: expected a multiple of --batch {}", load_.outstanding, load_.batch);
  }
}

// The largest number of sessions that a thread has.
std::uint32_t RpcBenchmark::sessions(const Options& o) const {
  const std::uint32_t clients = machines_ - 1;
  if (load_.all_serve) return 2 * clients * o.threads;
  const std::uint32_t background = load_.background_bytes > 0 ? 1 : 0;
  return std::max(clients * (o.threads - background), 2 * background * (clients - 1));
}

void RpcBenchmark::settle_machines(Options& o) {
  const std::uint32_t clients = machines_ - 1;
  if (load_.background_bytes > 0) {
    if (!table_->given("--threads")) o.threads = 2;
    if (o.threads < 2) fail_usage("--background {}: needs --threads 2 or more", load_.background_bytes);
    if (clients < 2) fail_usage("--background {}: needs --machines 3 or more", load_.background_bytes);
  }
  if (o.clients && *o.clients != clients) {
    fail_usage("--clients {}: leave it out, --machines {} sets it to {}", *o.clients, machines_, clients);
  }
  if (o.client_threads && *o.client_threads != o.threads) {
    fail_usage("--client_threads {}: every machine has --threads {}; leave out --client_threads", *o.client_threads,
               o.threads);
  }
  o.clients = clients;
  o.client_threads = o.threads;
  const std::uint32_t at_once = fasst_ ? (clients * o.threads + 1) * load_.outstanding : sessions(o) * rpc_.credits;
  settle_recv_queue(o, at_once);
  const Operation operation = draft().operation;
  const std::uint32_t recvs = at_once + unposted_recvs(operation);
  if (!o.rx_depth)
    o.rx_depth = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(kUsualRxDepth, round_up(recvs, DatagramTransport::recv_list(operation))));
  if (*o.rx_depth < recvs) {
    if (fasst_) {
      fail_usage("--rx_depth {}: {} other threads with --outstanding {} need {}", *o.rx_depth, clients * o.threads,
                 load_.outstanding, recvs);
    }
    fail_usage("--rx_depth {}: {} sessions with --credits {} need {}", *o.rx_depth, sessions(o), rpc_.credits, recvs);
  }
}

// `at_once`: packets that may be on their way to a thread.
void RpcBenchmark::settle_recv_queue(const Options& o, std::uint32_t at_once) {
  const bool offered = has_multi_packet_recv(o.fabric);
  if (!table_->given("--multi_packet_rq")) {
    const bool fits = o.rx_depth.value_or(kAnyDepth) >= at_once + DatagramTransport::kMultiPacketRecvs - 1;
    multi_packet_rq_ = offered && fits && !fasst_;
  } else if (multi_packet_rq_ && !offered) {
    fail_usage(
        "--multi_packet_rq on: only simulated mlx5 adapters on Ethernet have such queues here; libibverbs has them for "
        "raw "
        "Ethernet");
  }
}

void RpcBenchmark::settle_handlers(Options& o) {
  if (workers_ && !by_workers_) fail_usage("--workers {}: only with --handler worker", *workers_);
  if (slow_percent_ && handler_ns_ == 0 && !by_workers_) {
    fail_usage("--slow_percent {}: give --handler_ns or --handler worker", *slow_percent_);
  }
  load_.handler_time = Nanos(handler_ns_);
  load_.slow_percent = slow_percent_.value_or(handler_ns_ > 0 || by_workers_ ? 100 : 0);
  load_.worker_queues = {};
  if (!by_workers_) return;
  load_.worker_queues = {
      .endpoints = o.threads, .workers = workers_.value_or(1), .requests = sessions(o) * kSessionSlots};
  o.threads += load_.worker_queues.workers;
  o.client_threads = o.threads;
}

// What FaSST's protocol does not have.
void RpcBenchmark::check_fasst(const Options& o) const {
  const std::uint32_t most = load_.packet_bytes - kPacketHeaderBytes;
  for (const auto& [option, bytes] :
       {std::pair("--size", *o.size), std::pair("--response_size", load_.response_bytes)}) {
    if (bytes > most)
      fail_usage("{} {}: with --rpc fasst a message is one packet, at most {} bytes", option, bytes, most);
  }
  if (rpc_.control != RpcControl::none) fail_usage("--cc: --rpc fasst has no congestion control; leave it out");
  if (by_workers_) fail_usage("--handler worker: with --rpc fasst the threads that receive requests handle them");
  if (load_.background_bytes > 0) fail_usage("--background {}: only with --rpc erpc", load_.background_bytes);
}

// On the null device, which has no network, each thread plays its peers.
void RpcBenchmark::settle_played(const Options& o) {
  const bool null = o.fabric == "null";
  load_.serves = serving_ != RpcServing::peers;
  load_.played = null ? *o.clients * o.threads : 0;
  if (!load_.serves && !null) {
    fail_usage("--serve peers: only with --fabric null, where a thread plays its peers");
  }
  if (null && load_.background_bytes > 0) {
    fail_usage("--background {}: not with --fabric null, which has no clients", load_.background_bytes);
  }
  if (null && fasst_) fail_usage("--rpc fasst: not with --fabric null, where the played peers are eRPC's");
  if (null && by_workers_) fail_usage("--handler worker: not with --fabric null");
  const std::uint32_t most = load_.packet_bytes - kPacketHeaderBytes;
  if (null && std::max(*o.size, load_.response_bytes) > most) {
    fail_usage("--fabric null: messages have one packet, at most {} bytes with --packet_size {}", most,
               load_.packet_bytes);
  }
}

// On simulated clusters: the losses, and long enough times for large requests.
void RpcBenchmark::settle_network(Options& o) const {
  check_loss(loss_, o.fabric);
  if (!is_simulated(o.fabric)) return;
  o.loss = loss_;
  const double bytes = static_cast<double>(*o.size) * load_.outstanding * (load_.all_serve ? 1 : *o.clients);
  const Picos each(static_cast<std::int64_t>(1e12 * bytes / kSlowestBytesPerSecond));
  o.warmup = o.warmup.value_or(std::max(kLeastSimTime, each));
  if (!o.iters) o.duration = o.duration.value_or(std::max(kLeastSimTime, kMeasuredRequests * each));
}

std::unique_ptr<Workload> RpcBenchmark::setup(const ThreadSetup& setup) const {
  const std::uint32_t endpoints = setup.topology.threads - load_.worker_queues.workers;
  if (setup.thread >= endpoints) return std::make_unique<RpcWorker>(setup, load_, setup.thread - endpoints);
  if (fasst_) return std::make_unique<FasstThread>(setup, load_, rpc_);
  return std::make_unique<ErpcThread>(setup, load_, rpc_);
}

Plan RpcBenchmark::draft() const {
  Plan plan;
  plan.topology.qps_per_pair = 1;
  plan.topology.any_thread = true;
  const Side counted = load_.all_serve || load_.played > 0 ? Side::server : Side::client;
  plan.operation = {.verb = Verb::send,
                    .driver = counted,
                    .counted = counted,
                    .recvs_per_descriptor = multi_packet_rq_ ? DatagramTransport::kMultiPacketRecvs : 1,
                    .label = "RPCs"};
  return plan;
}

QueueNeeds RpcBenchmark::needs(const Operation& op, Side) const {
  return {.send_depth = op.tx_depth,
          .recv_depth = op.rx_depth,
          .send_sge = DatagramTransport::kSegments,
          .inline_bytes = op.inline_limit,
          .completions = op.tx_depth + op.rx_depth};
}

}  // namespace verbscope
