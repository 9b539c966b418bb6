// Many senders, one receiver: what each flow gets of the receiver's port, and how long a packet is on its way there and
// back.
#include <algorithm>
#include <numeric>
#include <vector>

#include "common/record.hpp"
#include "microbench/incast/answerer.hpp"
#include "microbench/incast/sender.hpp"
#include "microbench/loop/receiver.hpp"
#include "microbench/loop/target.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/report.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {
namespace {

constexpr std::uint32_t kDefaultPayload = 1024;                // bytes
constexpr Picos kSimWarmup = std::chrono::milliseconds(20);    // congestion control needs it to find its rates
constexpr Picos kSimDuration = std::chrono::milliseconds(10);  // several round trips of what full buffers hold
constexpr std::uint32_t kMaxWindow = 4096;
constexpr Picos kGiveUp = std::chrono::milliseconds(100);
constexpr Picos kSimGiveUp = std::chrono::milliseconds(20);  // longer than a full buffer holds a packet

constexpr const char* kPackedTrips = "lat_packed";

// The keys flow_ops (a number per flow), flows_lost and round trips, packed, of the threads of a node; nothing if they
// sent no flows.
Json flow_results(const std::vector<const Workload*>& threads) {
  Json ops = Json::array();
  Histogram trips;
  std::uint64_t lost = 0;
  for (const Workload* thread : threads) {
    const auto* sender = dynamic_cast<const FlowSender*>(thread);
    if (sender == nullptr) continue;
    for (const Flow& flow : sender->state().flows) ops.push_back(flow.measured);
    trips.merge(sender->state().round_trips);
    lost += sender->state().lost;
  }
  if (ops.empty()) return Json::object();
  return {{"flow_ops", ops}, {"flows_lost", lost}, {kPackedTrips, trips.pack()}};
}

// Makes keys of the result of all nodes: goodput of the flows (mean, lowest, highest), their fairness by Jain's index,
// lost messages, and the round trips. `own`: the server sent, not the clients.
void join_flows(Json& result, std::uint32_t payload, bool own) {
  std::vector<double> ops;
  std::uint64_t lost = 0;
  const auto add = [&](Json& of) {
    for (const Json& flow : of.at("flow_ops")) ops.push_back(flow.get<double>());
    lost += of.at("flows_lost").get<std::uint64_t>();
    of.erase("flow_ops");
    of.erase("flows_lost");
  };
  Histogram trips;
  if (own) {
    add(result);
    trips = Histogram::unpack(result.at(kPackedTrips), kPackedTrips);
    result.erase(kPackedTrips);
  } else {
    for (Json& client : result.at("clients")) add(client.at("result"));
    trips = take_client_histograms(result, kPackedTrips);
  }
  // Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
  const double sum = std::accumulate(ops.begin(), ops.end(), 0.0);
  const double squares = std::inner_product(ops.begin(), ops.end(), ops.begin(), 0.0);
  const double gbits = result.value("rate_mops", 0.0) * payload * 8 / 1e3;
  const auto share = [&](double of_flow) { return sum > 0 ? gbits * of_flow / sum : 0; };
  result["flows"] = ops.size();
  result["flow_gbit_per_s_mean"] = gbits / static_cast<double>(ops.size());
  result["flow_gbit_per_s_min"] = share(*std::ranges::min_element(ops));
  result["flow_gbit_per_s_max"] = share(*std::ranges::max_element(ops));
  result["fairness"] = squares > 0 ? sum * sum / (static_cast<double>(ops.size()) * squares) : 0;
  result["lost"] = lost;
  result.update(trips.to_json());
}

class IncastRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"incast_rate", "Goodput, fairness and round trips of flows from many machines to one.",
            "--verb write -s 64k --clients 2"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--size", kDefaultPayload, "payload of a message");
    table.restate("--qp", Json(), "QPs of each thread of the receiver (default: --flows for each sender; UD: --flows)");
    table.choice<Verb>("--verb", verb_, {{"send", Verb::send}, {"write", Verb::write}, {"read", Verb::read}},
                       "verb that moves the data: SEND or WRITE by the senders, or READ by the receiver");
    table.integer("--flows", flows_, 1u, 1024u, "flows per sender, one QP each");
    table.integer("--window", flow_.window, 1u, kMaxWindow, "outstanding messages per flow");
    table.flag(
        "--together", flow_.together,
        "READ from all senders, and wait for all of them before the next READs, as a client that gathers shards does");
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: the null device moves no bytes");
    if (o.header_only) fail_usage("--header_only: goodput counts payload, so there must be some");
    if (o.validate) fail_usage("--validate: the payload of flows is not checked");
    if (o.post_list > 1)
      fail_usage("--post_list {}: messages of a flow are posted one by one, so it must be 1", o.post_list);
    if (verb_ != Verb::send && o.connection != Transport::rc) {
      fail_usage("--verb {}: needs RC, because {} acknowledges nothing", verb_ == Verb::read ? "read" : "write",
                 to_string(o.connection));
    }
    if (flow_.together && verb_ != Verb::read) fail_usage("--together: only for --verb read");
    if (flow_.window > o.tx_depth) {
      fail_usage("--window {}: at most --tx_depth {}", flow_.window, o.tx_depth);
    }
    o.size = o.size.value_or(kDefaultPayload);
    if (*o.size == 0) fail_usage("--size 0: goodput counts payload, so there must be some");
    o.clients = o.clients.value_or(is_simulated(o.fabric) ? 2 : 1);
    o.client_threads = o.client_threads.value_or(1);
    if (is_simulated(o.fabric)) {
      o.warmup = o.warmup.value_or(kSimWarmup);
      if (!o.iters) o.duration = o.duration.value_or(kSimDuration);
    }
    const std::uint32_t all = facts(o.connection).connected ? *o.clients * *o.client_threads * flows_ : flows_;
    if (!table_->given("--qp")) o.qp = std::max(1u, all / o.threads);
    flow_.give_up = is_simulated(o.fabric) ? kSimGiveUp : kGiveUp;
  }

  Plan draft() const override {
    const Side driver = verb_ == Verb::read ? Side::server : Side::client;
    return {.operation = {.verb = verb_,
                          .driver = driver,
                          .counted = driver,
                          .requests_per_client_thread = verb_ == Verb::send ? flow_.window : 0,
                          .label = verb_ == Verb::read    ? "READs of all"
                                   : verb_ == Verb::write ? "WRITEs to one"
                                                          : "SENDs to one"}};
  }

  // A lost or repeated message is counted as often as it comes.
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }

  QueueNeeds needs(const Operation& op, Side side) const override {
    if (verb_ == Verb::send && !needs_answers(op) && side == Side::server) return receiver_needs(op);
    return {.send_depth = op.tx_depth,
            .recv_depth = op.rx_depth,
            .inline_bytes = op.inline_limit,
            .completions = op.tx_depth + op.rx_depth};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    const Side target = verb_ == Verb::read ? Side::client : Side::server;
    return {.bytes = verb_ == Verb::send || side != target ? 0 : qps * flow_stride(op)};
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    const Side sender = verb_ == Verb::read ? Side::server : Side::client;
    if (setup.side == sender) return std::make_unique<FlowSender>(setup, flow_);
    if (verb_ != Verb::send) return make_target(setup);
    if (needs_answers(setup.operation)) return std::make_unique<FlowAnswerer>(setup, flow_);
    return make_receiver(setup);
  }

  Json results(const std::vector<const Workload*>& threads) const override { return flow_results(threads); }
  void finish(Outcome& outcome) const override {
    join_flows(outcome.result, outcome.config.at("size").get<std::uint32_t>(), verb_ == Verb::read);
  }
  std::string report(const Json& result) const override {
    const auto number = [&result](const char* key) { return result.value(key, 0.0); };
    std::string text = fmt::format("  {:.0f} flows of {:.3g} Gb/s ({:.3g} to {:.3g}), fairness {:.3f}{}\n",
                                   number("flows"), number("flow_gbit_per_s_mean"), number("flow_gbit_per_s_min"),
                                   number("flow_gbit_per_s_max"), number("fairness"),
                                   number("lost") > 0 ? fmt::format(", {:.0f} messages lost", number("lost")) : "");
    return text + latency_line(result);
  }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    if (verb_ == Verb::read) return predict_requester(cluster, verb_shape(op, ports));
    if (verb_ == Verb::write) return predict_responder(cluster, verb_shape(op, ports));
    return predict_receiver(cluster, verb_shape(op, ports));
  }

 private:
  const OptionTable* table_ = nullptr;
  Verb verb_ = Verb::write;
  std::uint32_t flows_ = 1;
  FlowOptions flow_;
};

}  // namespace
}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::IncastRate>(argc, argv);
}
