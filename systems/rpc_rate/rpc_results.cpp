// What the RPC programs report, and the model of their rate.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "common/record.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/machine_rates.hpp"
#include "microbench/run/report.hpp"
#include "pcie_model/predict.hpp"
#include "systems/rpc_rate/rpc_benchmark.hpp"

namespace verbscope {

// Requests that a serving machine took in the measured interval, parts of requests included: a rate that is exact when
// few requests are answered. The mean if all machines serve.
constexpr const char* kServedRate = "served_mops";

std::string RpcBenchmark::bounded_rate() const {
  return kServedRate;
}

namespace {

// The key of a histogram while it is packed, so that the server can merge those of all clients.
std::string packed_key(const std::string& prefix) {
  return prefix + "_packed";
}

// Means and sums over the calling threads of a node, or of all nodes.
class CallerSums {
 public:
  void add(const RpcThread& thread) {
    const RpcUse& use = thread.use();
    if (!thread.active() || use.time <= Picos(0)) return;
    const double time = to_seconds(use.time);
    add(1, {{"retransmitted", use.counts.retransmitted},
            {"timeouts", use.counts.timeouts},
            {"credit_stalls", use.counts.credit_stalls},
            {"limiter_mean_packets", use.limiter_mean},
            {"limiter_peak_packets", use.limiter_peak},
            {"limiter_busy_share", use.limiter_busy},
            {"credits_waited_share", use.credits_waited},
            {"timed_out_share", to_seconds(use.timed_out) / (time * thread.outstanding())}});
  }
  void add(double callers, const Json& values) {
    callers_ += callers;
    for (const char* key : kSums) sums_[key] += values.at(key).get<double>();
    for (const char* key : kMeans) means_[key] += callers * values.at(key).get<double>();
    peak_ = std::max(peak_, values.at("limiter_peak_packets").get<std::uint64_t>());
  }
  // Adds the keys to a result.
  void write(Json& result) const {
    result["callers"] = callers_;
    for (const auto& [key, sum] : sums_) result[key] = sum;
    for (const auto& [key, sum] : means_) result[key] = callers_ > 0 ? sum / callers_ : 0;
    result["limiter_peak_packets"] = peak_;
  }

 private:
  template <std::size_t N>
  static std::map<std::string, double> zeros(const std::array<const char*, N>& keys) {
    std::map<std::string, double> out;
    for (const char* key : keys) out[key] = 0;
    return out;
  }

  static constexpr std::array kSums = {"retransmitted", "timeouts", "credit_stalls"};
  static constexpr std::array kMeans = {"limiter_mean_packets", "limiter_busy_share", "credits_waited_share",
                                        "timed_out_share"};
  double callers_ = 0;
  std::uint64_t peak_ = 0;
  std::map<std::string, double> sums_ = zeros(kSums), means_ = zeros(kMeans);
};

// CPU time per request that the threads answered or had answered, by kind of work; null: not measured.
class WorkSums {
 public:
  void add(const RpcThread& thread) {
    const RpcUse& use = thread.use();
    if (!use.work_measured) return;
    for (std::size_t i = 0; i < times_.size(); ++i) times_[i] += use.work[i];
    requests_ += thread.active() ? use.counts.answered : use.counts.handled;
  }
  Json to_json() const {
    if (requests_ == 0) return nullptr;
    const auto ns = [this](RpcWork work) {
      return to_seconds(times_[static_cast<std::size_t>(work)]) * 1e9 / static_cast<double>(requests_);
    };
    return {{"receive", ns(RpcWork::receive)},
            {"send", ns(RpcWork::send)},
            {"handler", ns(RpcWork::handler)},
            {"congestion_control", ns(RpcWork::control)}};
  }

 private:
  WorkTimes::Times times_{};
  std::uint64_t requests_ = 0;
};

// A client's result has no percentiles.
std::string packets_line(const Json& result) {
  if (!result.value("rtt_p50_ns", Json()).is_number()) return "";
  const auto number = [&result](const char* key) { return result.at(key).get<double>(); };
  std::string text = fmt::format(
      "  packets: median round trip {:.1f} us, 99 % {:.1f} us; {:.0f} sent again, {:.0f} credit stalls",
      number("rtt_p50_ns") / 1e3, number("rtt_p99_ns") / 1e3, number("retransmitted"), number("credit_stalls"));
  if (number("limiter_peak_packets") > 0) {
    text += fmt::format("; in the rate limiter {:.1f} on average, at most {:.0f}", number("limiter_mean_packets"),
                        number("limiter_peak_packets"));
  }
  return text + "\n";
}

std::string work_line(const Json& result) {
  const Json work = result.value("cpu_ns_per_request", Json());
  if (!work.is_object()) return "";
  const auto ns = [&work](const char* key) { return work.at(key).get<double>(); };
  return fmt::format(
      "  CPU per request: receiving {:.0f} ns, sending {:.0f} ns, handlers {:.0f} ns, congestion control {:.0f} ns\n",
      ns("receive"), ns("send"), ns("handler"), ns("congestion_control"));
}

// Of some of the requests.
std::string part_line(const Json& result, const char* what, const std::string& prefix) {
  if (!result.value(prefix + "_p50_ns", Json()).is_number()) return "";
  const auto us = [&](const char* key) { return result.at(prefix + key).get<double>() / 1e3; };
  return fmt::format("  {}: latency median {:.1f} us, 99 % {:.1f} us\n", what, us("_p50_ns"), us("_p99_ns"));
}

std::string workers_line(const Json& result) {
  if (!result.value("worker_wait_p50_ns", Json()).is_number()) return "";
  const auto us = [&](const char* key) { return result.at(key).get<double>() / 1e3; };
  return fmt::format(
      "  workers: busy {:.0f} % of the time; requests waited for them {:.2f} us (median), 99 % {:.2f} us\n",
      result.at("workers_busy_share").get<double>() * 100, us("worker_wait_p50_ns"), us("worker_wait_p99_ns"));
}

}  // namespace

Json RpcBenchmark::results(const std::vector<const Workload*>& threads) const {
  const std::vector<LatencyKinds> kinds = latency_kinds();
  std::map<std::string, Histogram> histograms{{"rtt", {}}};
  for (const LatencyKinds& each : kinds) histograms[each.prefix];
  if (load_.background_bytes > 0) histograms["background"];
  if (load_.worker_queues.workers > 0) histograms["worker_wait"];
  Picos workers_busy{0};
  RpcCounts counts;
  BatchCounts batches;
  CallerSums callers;
  WorkSums work;
  std::uint64_t unanswered = 0, repeated = 0, credits_lost = 0;
  double goodput = 0;
  std::size_t sessions = 0;
  std::uint32_t recvs = 0;
  for (const Workload* workload : threads) {
    if (const auto* const worker = dynamic_cast<const RpcWorker*>(workload)) {
      histograms["worker_wait"].merge(worker->waits());
      workers_busy += worker->busy();
      continue;
    }
    const auto& thread = dynamic_cast<const RpcThread&>(*workload);
    unanswered += thread.unanswered();
    credits_lost += thread.credits_lost();
    repeated += thread.repeated();
    sessions = std::max(sessions, thread.sessions());
    recvs = thread.recvs();
    if (thread.in_background()) {
      for (const Histogram& latency : thread.latencies()) histograms["background"].merge(latency);
      continue;
    }
    for (const LatencyKinds& each : kinds) {
      for (const std::uint8_t kind : each.kinds) histograms[each.prefix].merge(thread.latencies()[kind]);
    }
    histograms["rtt"].merge(thread.round_trips());
    for (const RpcCountKey& key : kRpcCounts) counts.*key.count += thread.use().counts.*key.count;
    if (const RpcUse& use = thread.use(); use.time > Picos(0)) {
      goodput += static_cast<double>(use.counts.request_bytes) * 8e-9 / to_seconds(use.time);
    }
    batches.merge(thread.batches());
    callers.add(thread);
    work.add(thread);
  }
  Json rpc = Json::object();
  for (const auto& [name, count] : kRpcCounts) rpc[name] = counts.*count;
  Json out{{"rpc", rpc},
           {"packets_per_post", batches.to_json()},
           {"cpu_ns_per_request", work.to_json()},
           {"goodput_gbit_per_s", goodput},
           {"sessions", sessions},
           {"recvs", recvs},
           {"unanswered", unanswered},
           {"handled_twice", repeated},
           {"credits_lost", credits_lost}};
  callers.write(out);
  for (const auto& [prefix, histogram] : histograms) out[packed_key(prefix)] = histogram.pack();
  if (load_.worker_queues.workers > 0) out["workers_busy_s"] = to_seconds(workers_busy);
  return out;
}

void RpcBenchmark::finish(Outcome& outcome) const {
  Json& result = outcome.result;
  std::vector<std::string> prefixes{"rtt", "background", "worker_wait"};
  for (const LatencyKinds& each : latency_kinds()) prefixes.push_back(each.prefix);
  for (const std::string& prefix : prefixes) {
    const std::string packed = packed_key(prefix);
    if (!result.contains(packed)) continue;
    Histogram all = take_client_histograms(result, packed);
    all.merge(Histogram::unpack(result.at(packed), packed));
    result.erase(packed);
    result.update(all.to_json(prefix));
  }
  CallerSums callers;
  callers.add(result.at("callers").get<double>(), result);
  for (const Json& client : result.value("clients", Json::array())) {
    callers.add(client.at("result").at("callers").get<double>(), client.at("result"));
  }
  callers.write(result);
  for (const auto& [key, what] : {std::pair("handled_twice", "requests were handled twice"),
                                  std::pair("unanswered", "requests were not answered"),
                                  std::pair("credits_lost", "credits did not come back")}) {
    const double sum = result.at(key).get<double>() + sum_over_clients(result, key);
    if (sum > 0 && outcome.failure.empty()) outcome.failure = fmt::format("{} {}", sum, what);
  }
  if (result.contains("workers_busy_s")) {
    const double all = load_.worker_queues.workers * result.at("window_s").get<double>();
    result["workers_busy_share"] = all > 0 ? std::min(1.0, result.at("workers_busy_s").get<double>() / all) : 0;
    result.erase("workers_busy_s");
  }
  constexpr const char* kGoodput = "goodput_gbit_per_s";
  double goodput = result.at(kGoodput).get<double>();
  if (load_.all_serve) {
    add_machine_rates(outcome);
    goodput = (goodput + sum_over_clients(result, kGoodput)) /
              static_cast<double>(1 + result.value("clients", Json::array()).size());
  }
  result[kServedRate] = goodput * 1e3 / (outcome.config.at("size").get<double>() * 8);
}

std::string RpcBenchmark::report(const Json& result) const {
  return latency_line(result) + packets_line(result) + work_line(result) +
         part_line(result, "quick requests", "quick") + part_line(result, "background", "background") +
         workers_line(result) + machine_rates_line(result);
}

// For each request a machine sends it and takes the response; if all machines serve, it does the same for a request
// that it serves.
Prediction RpcBenchmark::predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                                     const Json& result) const {
  std::vector<PredictedPart> parts;
  for (const RpcPackets& packets : packets_per_request(op)) {
    VerbShape shape = verb_shape(op, ports);
    shape.payload = Bytes(packets.bytes);
    shape.inlined = packets.bytes <= op.inline_limit;
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

// Without losses (packet.hpp).
std::vector<RpcBenchmark::RpcPackets> RpcBenchmark::packets_per_request(const Operation& op) const {
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

}  // namespace verbscope
