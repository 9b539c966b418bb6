// Latency of one verb, or of an echo, with one operation at a time. The server starts each trip.
#include <algorithm>

#include "common/record.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/latency/end.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kSweepTo = 65536;      // bytes
constexpr std::uint32_t kInlineSweepTo = 128;  // bytes
constexpr std::uint32_t kInlineUpTo = 220;     // bytes, as perftest's latency of WRITE
constexpr Picos kSimDuration = 20ms;           // about ten thousand trips

class VerbLatency final : public Benchmark {
 public:
  Description describe() const override {
    return {"verb_latency", "Latency of READ, WRITE, SEND, atomics and an echo by WRITEs, one operation at a time.",
            "--verb read -s 4k"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.choice<LatencyVerb>("--verb", verb_, names_and_values(kLatencyVerbs),
                              "operation to time; echo: a WRITE answered by a WRITE, both unsignaled and inlined");
    add_all_sizes(table, all_, "65536; write_inline and echo 128");
    table.restate(
        "--inline_size", Json(),
        fmt::format("largest WRITE or SEND that is sent inline (default {}, or the device's limit if that is less)",
                    kInlineUpTo));
  }

  void adjust(Options& o) override {
    if (o.qp != 1) fail_usage("--qp {}: expected 1, a thread of verb_latency has one outstanding operation", o.qp);
    if (o.post_list != 1)
      fail_usage("--post_list {}: expected 1, verb_latency has one outstanding operation", o.post_list);
    if (is_ping_pong(verb_) && o.fabric == "null")
      fail_usage("--verb {}: --fabric null has no peer that responds", name());
    if (o.events && is_ping_pong(verb_) && verb_ != LatencyVerb::send) {
      fail_usage("--events: not with --verb {}, whose response is polled in memory", name());
    }
    if (is_atomic(verb_)) {
      if (o.fabric == "null") fail_usage("--verb {}: --fabric null executes no atomics", name());
      if (o.size.value_or(kAtomicBytes) != kAtomicBytes) fail_usage("--size {}: an atomic has 8 bytes", *o.size);
      o.size = kAtomicBytes;
    }
    const std::uint32_t size = o.header_only ? 0 : o.size.value_or(kDefaultSize);
    if (size == 0 && verb_ != LatencyVerb::send) fail_usage("--size 0: not with --verb {}, only with send", name());
    if (inlined()) o.inline_size = std::max(o.inline_size, size);
    if (!is_ping_pong(verb_) && o.cq_mod.value_or(1) != 1) {
      fail_usage("--cq_mod {}: expected 1 with --verb {}, which times each completion", *o.cq_mod, name());
    }
    if (!o.cq_mod && verb_ != LatencyVerb::echo) o.cq_mod = 1;
    // A thread that responds serves one QP. A client starts no threads without a QP.
    if (is_ping_pong(verb_)) o.client_threads = o.client_threads.value_or(o.threads);
    if (is_simulated(o.fabric) && !o.iters && !o.duration) o.duration = kSimDuration;
  }

  std::vector<std::uint32_t> points(const Options& o) const override {
    if (!all_) return {};
    if (is_atomic(verb_)) fail_usage("--all: not with --verb {}, an atomic has 8 bytes", name());
    return all_sizes(o, inlined() ? kInlineSweepTo : kSweepTo);
  }

  bool moves_payloads() const override { return false; }
  Plan draft() const override {
    const bool sends = verb_ == LatencyVerb::write || verb_ == LatencyVerb::send;
    return {.operation = {.verb = posted_verb(verb_),
                          .label = reports_half(verb_)          ? "half round trips of ping-pongs"
                                   : verb_ == LatencyVerb::echo ? "echoes"
                                                                : "operations",
                          .inline_up_to = sends && !table_->given("--inline_size") ? kInlineUpTo : 0}};
  }

  QueueNeeds needs(const Operation& op, Side) const override {
    QueueNeeds needs;
    needs.send_depth = op.tx_depth;
    needs.recv_depth = verb_ == LatencyVerb::send ? op.rx_depth : 1;
    needs.inline_bytes = op.inline_limit;
    needs.completions = op.tx_depth + needs.recv_depth;
    return needs;
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    RegionNeeds needs{.bytes = qps * latency_slice_bytes(op.payload)};
    if (is_atomic(verb_) && side == Side::client) needs.access |= IBV_ACCESS_REMOTE_ATOMIC;
    return needs;
  }

  void fill(const Operation& op, Side, std::span<std::byte> region) const override { fill_latency_region(op, region); }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (setup.side == Side::client && !is_ping_pong(verb_)) return make_idle();
    if (setup.lanes.size() > 1) {
      fail_usage("--client_threads {}: too few, a thread of client {} would have {} QPs, and 1 is allowed",
                 setup.topology.client_threads, setup.node, setup.lanes.size());
    }
    return std::make_unique<LatencyEnd>(setup, verb_);
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    std::vector<const LatencyEnd*> ends;
    for (const Workload* thread : threads) {
      const auto* end = dynamic_cast<const LatencyEnd*>(thread);
      if (end != nullptr && end->active()) ends.push_back(end);
    }
    return ends.empty() ? Json::object() : latency_json(ends, verb_);
  }

  // Without a timed trip the point has no result.
  void finish(Outcome& outcome) const override {
    if (outcome.result.value("lat_samples", 1ull) > 0 || !outcome.failure.empty()) return;
    outcome.failure = "no trip was timed: give a longer --duration";
  }

  std::string report(const Json& result) const override {
    if (!result.contains("latency")) return "";  // the side that responds
    return table_line("bytes", latency_heading(result)) +
           table_line(result.at("latency").front().at("size").dump(), latency_row(result));
  }
  std::string row_heading(const Json& result) const override { return latency_heading(result); }
  std::string row(const Json& result) const override { return latency_row(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    VerbShape shape = verb_shape(op, ports);
    shape.payload_offset = Bytes(offset_before_end(op.payload));
    const Prediction request = predict_requester(cluster, shape);
    if (!is_ping_pong(verb_)) return request;
    const bool sent = verb_ == LatencyVerb::send;
    if (sent) {
      shape.payload_offset = Bytes(0);
      check_recv_groups(cluster, op, latency_recvs(op), 1);
    }
    const Prediction answer = sent ? predict_receiver(cluster, shape) : predict_responder(cluster, shape);
    return predict_together("requester, answered", {{request}, {answer}});
  }

 private:
  const char* name() const { return row_of(kLatencyVerbs, verb_).name; }
  bool inlined() const { return verb_ == LatencyVerb::write_inline || verb_ == LatencyVerb::echo; }

  const OptionTable* table_ = nullptr;
  LatencyVerb verb_ = LatencyVerb::write;
  bool all_ = false;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::VerbLatency>(argc, argv);
}
