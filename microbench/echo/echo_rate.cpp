// Request and response: the clients ask, the server computes and answers with the bytes that it got. The rate is that
// of the responses that the clients have.
#include <algorithm>
#include <optional>

#include "common/record.hpp"
#include "microbench/echo/client.hpp"
#include "microbench/echo/server.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/report.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

namespace {

constexpr const char* kPackedLatency = "lat_packed";  // of a client, for the server
constexpr std::uint32_t kDefaultEcho = 32;            // bytes
// The time after which a request without a response is given up: long after an echo, and on RC, whose requests are sent
// again from where they lie, long after a retransmission.
constexpr Picos kGiveUp = std::chrono::milliseconds(100);
constexpr Picos kSimGiveUp = std::chrono::milliseconds(1);
// Simulated clients that a server of any number of threads cannot keep up with: as many as those of the sequencers of
// Kalia et al., ATC 2016, one thread of a machine a QP.
constexpr std::uint32_t kClientMachines = 5;
constexpr std::uint32_t kThreadsOfEach = 14;
constexpr std::uint32_t kAnswerQps = 4;                // for lists of datagrams, where nothing else is said
constexpr std::uint32_t kLongestWork = 1'000'000'000;  // ns

// Each level has those before it, in the order of the published figure (Kalia et al., SIGCOMM 2014, section 3.2.2).
enum class Optimise : std::uint8_t { as_given, none, unreliable, unsignaled, inlined };

class EchoRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"echo_rate",
            "Rate and latency of an RPC server: requests and responses by WRITE or SEND, answered singly or in lists.",
            "--mode send_send -c UD -s 32 -I 32"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--size", kDefaultEcho, "payload of request and response");
    table.restate("--qp", Json(),
                  "QPs of each thread of the server (default 1; sim: enough that the server is the limit)");
    table.choice<EchoMode>("--mode", echo_.mode,
                           {{"write_write", EchoMode::write_write},
                            {"write_send", EchoMode::write_send},
                            {"send_send", EchoMode::send_send}},
                           "verbs of request and response; with write_send, responses go over UD");
    table.choice<Optimise>(
        "--optimise", optimise_,
        {{"as_given", Optimise::as_given},
         {"none", Optimise::none},
         {"unreliable", Optimise::unreliable},
         {"unsignaled", Optimise::unsignaled},
         {"inline", Optimise::inlined}},
        "optimisations to apply: this one and those named before it; sets -c, -Q and -I unless they are given");
    table.integer("--window", echo_.outstanding, 1u, 4096u, "outstanding requests per QP");
    table.integer("--answer_qps", answer_qps_, 1u, 4096u,
                  "UD QPs per server thread for responses (default: all; up to 4 with --post_list above 1)");
    table.integer("--work_ns", work_ns_, 0u, kLongestWork, "computing time of the server per request, in ns");
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: the null device moves no bytes, so no request is answered");
    if (o.header_only) fail_usage("--header_only: a response is identified by its bytes");
    if (o.post_list > BatchCounts::kLongest) {
      fail_usage("--post_list {}: a list of responses has at most {}", o.post_list,
                 std::uint32_t{BatchCounts::kLongest});
    }
    o.size = o.size.value_or(kDefaultEcho);
    if (*o.size < kTagBytes)
      fail_usage("--size {}: an echo has at least {} bytes, which hold its number", *o.size, kTagBytes);
    if (o.events && echo_.requests_written()) {
      fail_usage("--events: requests by WRITE are polled in memory, which raises no event; use --mode send_send");
    }
    optimise(o);
    if (is_simulated(o.fabric)) saturate(o);
    echo_.work = Nanos(work_ns_);
    share_answers(o);
    // A request may wait while the server computes for all others of its thread.
    const std::int64_t before =
        std::int64_t{echo_.outstanding} * o.qp * (facts(o.connection).connected ? 1 : o.clients.value_or(1));
    echo_.give_up =
        (is_simulated(o.fabric) && !facts(o.connection).reliable ? kSimGiveUp : kGiveUp) + 2 * before * echo_.work;
  }

  Plan draft() const override {
    return {.operation = {.verb = echo_.requests_written() ? Verb::write : Verb::send,
                          .driver = Side::client,
                          .counted = Side::client,
                          .label = "echoes",
                          .datagrams_beside = echo_.mode == EchoMode::write_send}};
  }

  std::optional<OperationCount> operation_count() const override {
    return OperationCount{Side::client, echo_.mode == EchoMode::write_write ? "writes_received" : "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = op.tx_depth,
            .recv_depth = op.rx_depth,
            .inline_bytes = op.inline_limit,
            .completions = op.tx_depth + op.rx_depth};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    return {.bytes = qps * slot_bytes(op.payload, side)};
  }

  std::optional<Transport> companion(const Operation&) const override {
    return echo_.mode == EchoMode::write_send ? std::optional(Transport::ud) : std::nullopt;
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (setup.side == Side::client) return std::make_unique<EchoClient>(setup, echo_);
    return std::make_unique<EchoServer>(setup, echo_);
  }

  // The clients' latencies, or the lists of responses of the server.
  Json results(const std::vector<const Workload*>& threads) const override {
    Histogram latency;
    BatchCounts batches;
    bool asks = false;
    for (const Workload* thread : threads) {
      if (const auto* client = dynamic_cast<const EchoClient*>(thread)) {
        asks = true;
        latency.merge(client->latency());
      } else if (const auto* server = dynamic_cast<const EchoServer*>(thread)) {
        batches.merge(server->batches());
      }
    }
    if (!asks) return Json{{"answers_per_post", batches.to_json()}};
    Json out{{kPackedLatency, latency.pack()}};
    out.update(latency.to_json());
    return out;
  }
  void finish(Outcome& outcome) const override {
    outcome.result.update(take_client_histograms(outcome.result, kPackedLatency).to_json());
  }
  std::string report(const Json& result) const override { return latency_line(result) + batches_line(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_lists(cluster, op, ports, list_shares(Json(), static_cast<int>(op.post_list)));
  }

  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                         const Json& result) const override {
    if (!echo_.requests_written()) {
      const std::uint64_t clients = !facts(op.transport).connected ? result.at("clients").size() : 1;
      check_recv_groups(cluster, op, recvs_for(op, clients * echo_.outstanding), clients * echo_.outstanding);
    }
    return predict_lists(cluster, op, ports, list_shares(result.value("answers_per_post", Json()), 1));
  }

 private:
  // Bytes that a QP of a node needs for what its peer writes.
  std::uint64_t slot_bytes(std::uint32_t payload, Side side) const {
    const bool written = side == Side::server ? echo_.requests_written() : echo_.responses_written();
    return written ? echo_.outstanding * echo_stride(payload) : 0;
  }

  // RECVs are posted one by one, and so are requests, whatever the lists of answers.
  Prediction predict_lists(const ClusterWire& cluster, const Operation& op, int ports,
                           const std::vector<ListShare>& lists) const {
    VerbShape response = verb_shape(op, ports);
    response.payload_offset = Bytes(offset_before_end(op.payload));
    response.post_list = 1;
    const Prediction request =
        echo_.requests_written() ? predict_responder(cluster, response) : predict_receiver(cluster, response);
    if (echo_.mode == EchoMode::write_send) {
      response.verb = Verb::send;
      response.transport = Transport::ud;
    }
    std::vector<PredictedPart> parts;
    for (const ListShare& share : lists) {
      response.post_list = share.length;
      response.post_step = share.step;
      parts.push_back({predict_requester(cluster, response), share.answers});
    }
    parts.push_back({request});
    return predict_together("echo server", parts);
  }

  void share_answers(const Options& o) {
    const bool datagrams = echo_.mode == EchoMode::write_send || !facts(o.connection).connected;
    if (answer_qps_ && !datagrams) {
      fail_usage("--answer_qps {}: over {} a response goes back on the QP of its request", *answer_qps_,
                 to_string(o.connection));
    }
    if (answer_qps_.value_or(1) > o.qp) fail_usage("--answer_qps {}: at most --qp {}", *answer_qps_, o.qp);
    echo_.answer_qps = answer_qps_.value_or(o.post_list > 1 ? std::min(kAnswerQps, o.qp) : o.qp);
  }

  // Clients and QPs enough for the server to be the limit, where they are not given. The RECVs of a UD QP are for all
  // clients; connected QPs are dealt to them.
  void saturate(Options& o) const {
    const bool connected = facts(o.connection).connected;
    if (table_->given("--qp")) {
      o.clients = o.clients.value_or(connected ? std::min(kClientMachines, o.threads * o.qp) : kClientMachines);
      return;
    }
    o.clients = o.clients.value_or(kClientMachines);
    const std::uint32_t qps = connected ? *o.clients * kThreadsOfEach : kThreadsOfEach;
    o.qp = std::max(1u, (qps + o.threads - 1) / o.threads);
  }

  void optimise(Options& o) const {
    if (optimise_ == Optimise::as_given) return;
    if (optimise_ >= Optimise::unreliable && !table_->given("--connection")) {
      o.connection = echo_.requests_written() ? Transport::uc : Transport::ud;
    }
    if (optimise_ < Optimise::unsignaled) o.cq_mod = o.cq_mod.value_or(1);
    if (optimise_ == Optimise::inlined && !table_->given("--inline_size")) o.inline_size = *o.size;
  }

  const OptionTable* table_ = nullptr;
  EchoOptions echo_;
  std::uint32_t work_ns_ = 0;
  std::optional<std::uint32_t> answer_qps_;
  Optimise optimise_ = Optimise::as_given;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::EchoRate>(argc, argv);
}
