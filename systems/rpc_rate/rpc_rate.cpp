// General RPCs: every machine calls threads of the others at random and serves their calls. After eRPC (Kalia, Kaminsky
// and Andersen, "Datacenter RPCs can be General and Fast", NSDI 2019), sections 6.2 and 6.3.
#include <algorithm>

#include "common/error.hpp"
#include "common/record.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/machine_rates.hpp"
#include "microbench/run/report.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"
#include "systems/rpc_rate/rpc_thread.hpp"

namespace verbscope {

namespace {

constexpr const char* kPackedLatency = "lat_packed";  // of a client, for the server
constexpr const char* kPackedRoundTrips = "rtt_packed";
constexpr std::uint32_t kDefaultMessage = 32;  // bytes
constexpr std::uint32_t kUsualInline = 60;     // bytes; eRPC's

class RpcRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"rpc_rate", "Rate and latency of general RPCs over datagrams, with every message checked.",
            "--machines 4 --batch 3 --outstanding 60"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--connection", "UD", "transport; RPCs use UD only");
    table.restate("--size", kDefaultMessage, "bytes of a request");
    table.restate("--inline_size", kUsualInline, "largest packet that is sent inline");
    table.restate("--threads", 1, "threads of each machine, each pinned to a core");
    table.integer("--machines", machines_, 2u, 1u << 10, "number of machines: one server, the others clients");
    table.choice<bool>(
        "--serve", load_.all_serve, {{"all", true}, {"server", false}},
        "machines that serve: all, which also call each other, or only the server, which then calls none");
    table.integer("--response_size", response_bytes_, kLeastMessage, kMaxMessageBytes,
                  "bytes of a response (default: --size)");
    table.integer("--batch", load_.batch, 1u, 1u << 12,
                  "requests that a thread sends together; the next batch follows when all are answered");
    table.integer("--outstanding", load_.outstanding, 1u, 1u << 16,
                  "outstanding requests of a thread, over all sessions");
    table.integer("--packet_size", load_.packet_bytes, 64u, 4096u, "largest packet in bytes: header of 16 and data");
    table.integer("--credits", rpc_.credits, 1u, 256u, "packets of a session that may be on their way to the server");
    table.choice<RpcControl>("--cc", rpc_.control, {{"none", RpcControl::none}, {"timely", RpcControl::timely}},
                             "congestion control of the callers");
    table.duration("--rto", rto_, "resend packets without an answer after this long (default 5 ms)");
    table.choice<bool>("--batched_stamps", rpc_.batched_stamps, {{"on", true}, {"off", false}},
                       "one time stamp per batch of packets, or one per packet");
    table.choice<bool>("--bypass_timely", rpc_.bypass_timely, {{"on", true}, {"off", false}},
                       "timely: no update at link rate while round trips are short");
    table.choice<bool>("--bypass_limiter", rpc_.bypass_limiter, {{"on", true}, {"off", false}},
                       "timely: sessions at link rate send at once");
    table.choice<bool>("--preallocate", rpc_.preallocate, {{"on", true}, {"off", false}},
                       "responses of one packet in preallocated buffers");
    table.choice<bool>("--zero_copy", rpc_.zero_copy, {{"on", true}, {"off", false}},
                       "handle requests of one packet where they arrived");
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: the null device moves no bytes, so no request is answered");
    if (o.header_only) fail_usage("--header_only: a request is checked by its bytes");
    if (o.events) fail_usage("--events: threads that serve and call poll");
    if (o.validate) fail_usage("--validate: every message is checked already");
    if (o.post_list != 1) fail_usage("--post_list {}: use --batch, whose packets share doorbells", o.post_list);
    if (o.connection != Transport::ud && table_->given("--connection")) {
      fail_usage("--connection {}: expected UD, over which RPCs go", to_string(o.connection));
    }
    if (table_->given("--qp")) fail_usage("--qp {}: a thread has one QP", o.qp);
    o.connection = Transport::ud;
    o.size = o.size.value_or(kDefaultMessage);
    load_.response_bytes = response_bytes_.value_or(*o.size);
    for (const auto& [option, bytes] :
         {std::pair("--size", *o.size), std::pair("--response_size", load_.response_bytes)}) {
      const PacketCut cut{load_.packet_bytes - kPacketHeaderBytes};
      if (bytes < kLeastMessage || bytes > cut.most_bytes()) {
        fail_usage("{} {}: a message has from {} to {} bytes", option, bytes, kLeastMessage, cut.most_bytes());
      }
    }
    if (load_.outstanding % load_.batch != 0) {
      fail_usage("--outstanding {}: expected a multiple of --batch {}", load_.outstanding, load_.batch);
    }
    if (!table_->given("--inline_size")) o.inline_size = kUsualInline;
    rpc_.rto = rto_.value_or(rpc_.rto);
    settle_machines(o);
  }

  Plan draft() const override {
    Plan plan;
    plan.topology.qps_per_pair = 1;
    plan.topology.any_thread = true;
    plan.operation = {.verb = Verb::send,
                      .driver = load_.all_serve ? Side::server : Side::client,
                      .counted = load_.all_serve ? Side::server : Side::client,
                      .label = "RPCs"};
    return plan;
  }

  std::optional<OperationCount> operation_count() const override { return std::nullopt; }
  std::string bounded_rate() const override { return load_.all_serve ? kMachineRate : "rate_mops"; }

  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = op.tx_depth,
            .recv_depth = op.rx_depth,
            .send_sge = DatagramTransport::kSegments,
            .inline_bytes = op.inline_limit,
            .completions = op.tx_depth + op.rx_depth};
  }

  LongestDatagram longest_datagram(const Operation&) const override { return {"--packet_size", load_.packet_bytes}; }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return std::make_unique<RpcThread>(setup, load_, rpc_);
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    Histogram latency, round_trips;
    Json counts = Json::object();
    for (const RpcCountKey& key : kRpcCounts) counts[key.name] = std::uint64_t{0};
    BatchCounts batches;
    std::uint64_t unanswered = 0, repeated = 0;
    for (const Workload* workload : threads) {
      const auto& thread = static_cast<const RpcThread&>(*workload);
      latency.merge(thread.latency());
      round_trips.merge(thread.round_trips());
      for (const auto& [name, count] : kRpcCounts) {
        counts[name] = counts[name].get<std::uint64_t>() + thread.counts_of_interval().*count;
      }
      batches.merge(thread.batches());
      unanswered += thread.unanswered();
      repeated += thread.repeated();
    }
    return Json{{"rpc", counts},
                {"packets_per_post", batches.to_json()},
                {"unanswered", unanswered},
                {"handled_twice", repeated},
                {kPackedLatency, latency.pack()},
                {kPackedRoundTrips, round_trips.pack()}};
  }

  void finish(Outcome& outcome) const override {
    Json& result = outcome.result;
    for (const auto& [packed, prefix] : {std::pair(kPackedLatency, "lat"), std::pair(kPackedRoundTrips, "rtt")}) {
      Histogram all = take_client_histograms(result, packed);
      all.merge(Histogram::unpack(result.at(packed), packed));
      result.erase(packed);
      result.update(all.to_json(prefix));
    }
    if (load_.all_serve) add_machine_rates(outcome);
    for (const auto& [key, what] :
         {std::pair("handled_twice", "handled twice"), std::pair("unanswered", "not answered")}) {
      const double sum = result.at(key).get<double>() + sum_over_clients(result, key);
      if (sum > 0 && outcome.failure.empty()) outcome.failure = fmt::format("{} requests were {}", sum, what);
    }
  }
  std::string report(const Json& result) const override { return latency_line(result) + machine_rates_line(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_run(cluster, op, ports, Json::object());
  }

  // For each call a machine sends a request and takes the response, and does the same for a call that it serves.
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                         const Json& result) const override {
    const auto shape_of = [&](std::uint32_t bytes) {
      VerbShape shape = verb_shape(op, ports);
      shape.payload = Bytes(bytes);
      shape.inlined = bytes <= op.inline_limit;
      return shape;
    };
    std::vector<PredictedPart> parts;
    for (const RpcPackets& packets : packets_per_call(op)) {
      VerbShape shape = shape_of(packets.bytes);
      shape.post_list = static_cast<int>(DatagramTransport::kRecvList);
      const double received = load_.all_serve || packets.to_server ? packets.count : 0;
      const double sent = load_.all_serve || !packets.to_server ? packets.count : 0;
      if (received > 0) parts.push_back({predict_receiver(cluster, shape), received});
      for (const ListShare& lists : list_shares(result.value("packets_per_post", Json()), 1)) {
        shape.post_list = lists.length;
        shape.post_step = lists.step;
        if (sent > 0) parts.push_back({predict_requester(cluster, shape), lists.answers * sent});
      }
    }
    return predict_together("RPC machine", parts);
  }

 private:
  // Packets of one call that have the same length.
  struct RpcPackets {
    std::uint32_t bytes = 0;  // header and data
    double count = 0;
    bool to_server = false;
  };

  // Without losses (packet.hpp).
  std::vector<RpcPackets> packets_per_call(const Operation& op) const {
    const PacketCut cut{load_.packet_bytes - kPacketHeaderBytes};
    std::vector<RpcPackets> out;
    double headers[2] = {0, 0};  // credit returns, requests for response
    for (const bool to_server : {true, false}) {
      const std::uint32_t bytes = to_server ? op.payload : load_.response_bytes;
      const std::uint32_t packets = cut.packets(bytes);
      if (packets > 1) out.push_back({load_.packet_bytes, packets - 1.0, to_server});
      out.push_back({kPacketHeaderBytes + cut.length(bytes, packets - 1), 1, to_server});
      headers[to_server ? 0 : 1] = packets - 1.0;
    }
    for (const bool to_server : {false, true}) {
      if (headers[to_server ? 1 : 0] > 0) out.push_back({kPacketHeaderBytes, headers[to_server ? 1 : 0], to_server});
    }
    return out;
  }

  void settle_machines(Options& o) const {
    const std::uint32_t clients = machines_ - 1;
    if (o.clients && *o.clients != clients) {
      fail_usage("--clients {}: leave it out, --machines {} sets it to {}", *o.clients, machines_, clients);
    }
    if (o.client_threads && *o.client_threads != o.threads) {
      fail_usage("--client_threads {}: every machine has --threads {}; leave out --client_threads", *o.client_threads,
                 o.threads);
    }
    o.clients = clients;
    o.client_threads = o.threads;
    const std::uint32_t sessions = (load_.all_serve ? 2 : 1) * clients * o.threads;
    const std::uint32_t recvs = sessions * rpc_.credits;
    if (!o.rx_depth)
      o.rx_depth = static_cast<std::uint32_t>(
          std::max<std::uint64_t>(kUsualRxDepth, round_up(recvs, DatagramTransport::kRecvList)));
    if (*o.rx_depth < recvs) {
      fail_usage("--rx_depth {}: {} sessions with --credits {} need {}", *o.rx_depth, sessions, rpc_.credits, recvs);
    }
  }

  OptionTable* table_ = nullptr;
  RpcLoad load_;
  RpcOptions rpc_;
  std::uint32_t machines_ = 2;
  std::optional<std::uint32_t> response_bytes_;
  std::optional<Picos> rto_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::RpcRate benchmark;
  return verbscope::benchmark_main(benchmark, argc, argv);
}
