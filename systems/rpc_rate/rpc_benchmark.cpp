#include "systems/rpc_rate/rpc_benchmark.hpp"

#include <algorithm>
#include <chrono>

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "microbench/bench/options.hpp"
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

void RpcBenchmark::begin_options(OptionTable& table, std::uint32_t request_bytes) {
  table_ = &table;
  table.restate("--connection", "UD", "transport; RPCs use UD only");
  table.restate("--size", request_bytes, "bytes of a request");
  table.restate("--inline_size", kUsualInline, "largest packet that is sent inline");
}

void RpcBenchmark::add_batch_options(OptionTable& table) {
  table.integer("--batch", load_.batch, 1u, 1u << 12,
                "requests that a thread sends together; the next batch follows when all are answered");
  table.integer("--outstanding", load_.outstanding, 1u, 1u << 16,
                "outstanding requests of a thread, over all sessions");
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

void RpcBenchmark::begin_adjust(Options& o) {
  if (o.header_only) fail_usage("--header_only: a request is checked by its bytes");
  if (o.events) fail_usage("--events: threads that serve and call poll");
  if (o.validate) fail_usage("--validate: every message is checked already");
  if (o.post_list != 1) fail_usage("--post_list {}: use --batch, whose packets share doorbells", o.post_list);
  if (o.connection != Transport::ud && table_->given("--connection")) {
    fail_usage("--connection {}: expected UD, over which RPCs go", to_string(o.connection));
  }
  if (o.qp != 1) fail_usage("--qp {}: a thread has one QP", o.qp);
  if (load_.outstanding % load_.batch != 0) {
    fail_usage("--outstanding {}: expected a multiple of --batch {}", load_.outstanding, load_.batch);
  }
  o.connection = Transport::ud;
  if (!table_->given("--inline_size")) o.inline_size = kUsualInline;
  rto_ = rpc_.rto = rto_.value_or(rpc_.rto);
}

void RpcBenchmark::check_message(const char* option, std::uint32_t bytes) const {
  const PacketCut cut{load_.packet_bytes - kPacketHeaderBytes};
  if (bytes < kLeastMessage || bytes > cut.most_bytes()) {
    fail_usage("{} {}: a message has from {} to {} bytes", option, bytes, kLeastMessage, cut.most_bytes());
  }
  if (fasst_ && bytes > cut.data) {
    fail_usage("{} {}: with --rpc fasst a message is one packet, at most {} bytes", option, bytes, cut.data);
  }
}

std::uint32_t RpcBenchmark::sessions() const {
  const std::uint32_t clients = machines_ - 1;
  if (load_.all_serve) return 2 * clients * endpoints_;
  const std::uint32_t background = load_.background_bytes > 0 ? 1 : 0;
  return std::max({clients * (client_endpoints_ - background), endpoints_, 2 * background * (clients - 1)});
}

// Before the workers are added to the threads.
void RpcBenchmark::settle_recvs(Options& o) {
  const std::uint32_t others = std::max((machines_ - 1) * client_endpoints_, endpoints_);
  const std::uint32_t at_once = fasst_ ? (others + 1) * load_.outstanding : sessions() * rpc_.credits;
  settle_recv_queue(o, at_once);
  const Operation operation = draft().operation;
  const std::uint32_t recvs = at_once + unposted_recvs(operation);
  if (!o.rx_depth)
    o.rx_depth = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(kUsualRxDepth, round_up(recvs, DatagramTransport::recv_list(operation))));
  if (*o.rx_depth < recvs) {
    if (fasst_) {
      fail_usage("--rx_depth {}: {} other threads with --outstanding {} need {}", *o.rx_depth, others,
                 load_.outstanding, recvs);
    }
    fail_usage("--rx_depth {}: {} sessions with --credits {} need {}", *o.rx_depth, sessions(), rpc_.credits, recvs);
  }
  if (fasst_ && rpc_.control != RpcControl::none) {
    fail_usage("--cc: --rpc fasst has no congestion control; leave it out");
  }
  if (fasst_ && o.fabric == "null")
    fail_usage("--rpc fasst: not with --fabric null, where the played peers are eRPC's");
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
