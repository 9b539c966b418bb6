// A key-value store that its clients read, lock and write with one-sided verbs; the server's CPU does nothing. After
// DrTM-KV as Kalia et al., ATC 2016, section 4.3.2, emulate it.
#include "common/record.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"
#include "systems/kv_atomic/ends.hpp"
#include "systems/kv_atomic/report.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kDefaultValue = 32;  // bytes
constexpr std::uint32_t kSmallestValue = 16;
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 24;
constexpr std::uint32_t kDefaultWindow = 8;
constexpr std::uint32_t kSendsPerOperation = 2;  // a PUT's WRITE and its unlocking
constexpr Picos kLease = 2s, kSimLease = 10ms;   // far longer than a live client holds a lock

class KvAtomic final : public Benchmark {
 public:
  Description describe() const override {
    return {"kv_atomic",
            "Rate and latency of GETs by READ and PUTs by lock, WRITE and unlock, with every value checked.",
            "--put_percent 50 -s 64"};
  }

  void options(OptionTable& table) override {
    offer_transports(table, {Verb::fetch_add});
    table.restate("--size", kDefaultValue, "size of a value");
    table.integer("--put_percent", kv_.put_percent, 0u, 100u, "share of PUTs in percent; the others are GETs");
    table.integer("--keys", kv_.keys, std::uint64_t{1}, kMaxKeys, "number of records, all equally popular");
    table.choice<LockPlacement>(
        "--locks", kv_.locks,
        {{"same", LockPlacement::same}, {"hashed", LockPlacement::hashed}, {"apart", LockPlacement::apart}},
        "place of the lock: at the same offset of each page-aligned record, at an offset chosen by the key, or in a "
        "separate table");
    table.integer("--window", kv_.outstanding, 1u, 1u << 12,
                  "outstanding operations per QP (default 8, at most --tx_depth)");
    table.flag("--emulate", kv_.emulate, "perform only the two atomics of a PUT, without the WRITE");
    table.duration(
        "--lease", kv_.lease,
        "skip a lock holder that makes no progress for this long (default 2 s; sim 10 ms of simulated time)");
    table.choice<bool>("--pages", kv_.huge_pages, {{"4k", false}, {"2m", true}}, "page size of the records' memory");
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: the null device has no memory for the records");
    if (!facts(o.connection).verbs.has(Verb::fetch_add))
      fail_usage("--connection {}: READs and atomics need RC", to_string(o.connection));
    if (o.header_only) fail_usage("--header_only: a value cannot be empty");
    if (o.post_list != 1)
      fail_usage("--post_list {}: each step of a PUT waits for the step before, so it must be 1", o.post_list);
    if (o.cq_mod.value_or(1) != 1)
      fail_usage("--cq_mod {}: every step needs its completion, so it must be 1", *o.cq_mod);
    o.size = o.size.value_or(kDefaultValue);
    if (*o.size % kKvWord != 0 || *o.size < kSmallestValue) {
      fail_usage("--size {}: a value is a multiple of {} bytes, at least {}", *o.size, kKvWord, kSmallestValue);
    }
    if (!kv_.outstanding) kv_.outstanding = std::min(kDefaultWindow, o.tx_depth);
    if (*kv_.outstanding > o.tx_depth) {
      fail_usage("--window {}: at most --tx_depth {}", *kv_.outstanding, o.tx_depth);
    }
    if (!kv_.lease) kv_.lease = is_simulated(o.fabric) ? kSimLease : kLease;
    o.cq_mod = 1;
    o.validate = true;  // what is served is always checked
  }

  bool moves_payloads() const override { return false; }
  Plan draft() const override {
    return {.operation = {.verb = Verb::fetch_add,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = kv_.outstanding.value(),
                          .label = "GETs and PUTs"},
            .topology = {.clients_may_leave = true}};
  }

  // A GET may be several READs, a PUT is several requests.
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }

  QueueNeeds needs(const Operation& op, Side) const override {
    const std::uint32_t depth = kSendsPerOperation * kv_.outstanding.value();
    return {.send_depth = depth, .inline_bytes = op.inline_limit, .completions = depth};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t) const override {
    if (side == Side::client) return {};
    return {
        .bytes = kv_.layout(op.payload).region_bytes(),
        .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
        .huge_pages = kv_.huge_pages};
  }

  void fill(const Operation& op, Side, std::span<std::byte> region) const override { fill_kv_region(kv_, op, region); }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (setup.side == Side::server) return std::make_unique<KvServer>(setup, kv_);
    return std::make_unique<KvClient>(setup, kv_);
  }

  Json results(const std::vector<const Workload*>& threads) const override { return kv_results(threads); }
  void finish(Outcome& outcome) const override { kv_finish(outcome); }
  std::string report(const Json& result) const override { return kv_text(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    const double puts = kv_.put_percent / 100.0;
    return predict_mix(cluster, op, ports, {.gets = 1 - puts, .puts = puts});
  }
  // The operations that were drawn, and those that were done again because another had the lock or wrote, are known
  // after the run only.
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                         const Json& result) const override {
    const std::optional<KvMix> mix = kv_mix(result);
    return mix ? predict_mix(cluster, op, ports, *mix) : predict(cluster, op, ports);
  }

 private:
  Prediction predict_mix(const ClusterWire& cluster, const Operation& op, int ports, const KvMix& mix) const {
    std::vector<PredictedPart> parts;
    const auto add = [&](Verb verb, Bytes payload, double per_op) {
      if (per_op <= 0) return;
      VerbShape shape = verb_shape(op, ports);
      shape.verb = verb;
      shape.payload = payload;
      parts.push_back({predict_responder(cluster, shape), per_op});
    };
    add(Verb::read, Bytes(op.payload), mix.gets);
    add(Verb::fetch_add, Bytes(kAtomicBytes), 2 * mix.puts);
    if (!kv_.emulate) add(Verb::write, Bytes(op.payload), mix.puts);
    add(Verb::read, Bytes(kKvWord), mix.looks);
    return predict_together("responder", parts);
  }

  KvOptions kv_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::KvAtomic>(argc, argv);
}
