// Rate of atomics on the server's memory: the clients post them, and the server's adapter executes them.
#include <algorithm>

#include "microbench/atomic/client.hpp"
#include "microbench/atomic/lock_slots.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/run/runner.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kProbeDuration = 1ms;  // nominal: the survey ends the interval

class AtomicRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"atomic_rate",
            "Rate of fetch-and-add or compare-and-swap on the server's memory, or the lock slots of its NIC.",
            "--verb fetch_add -Z 1024 -q 5 --clients 5"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    offer_transports(table, {Verb::fetch_add});
    table.restate("--size", kAtomicBytes, "size of an atomic: 8 bytes");
    table.choice<Verb>("--verb", atomics_.verb, {{"fetch_add", Verb::fetch_add}, {"compare_swap", Verb::compare_swap}},
                       "atomic operation");
    table.choice<Verb>("-A,--atomic_type", type_,
                       {{"FETCH_AND_ADD", Verb::fetch_add}, {"CMP_AND_SWAP", Verb::compare_swap}},
                       "--verb, by perftest's names");
    table.integer("-Z,--counters", atomics_.counters, std::uint64_t{1}, std::uint64_t{1} << 31,
                  "number of 8-byte counters");
    table.choice<bool>("--addresses", atomics_.random, {{"random", true}, {"strided", false}},
                       "order in which counters are used: random, or one after the other");
    table.bytes("--stride", atomics_.stride, std::uint64_t{8}, std::uint64_t{1} << 30,
                "distance from one counter to the next, a multiple of 8 bytes");
    table.integer("--window", atomics_.most_outstanding, 1u, 1u << 20, "outstanding operations per QP");
    table.flag("--probe_slots", atomics_.probe_slots,
               "measure pairs of addresses, and infer the lock slots of the server's NIC");
  }

  void adjust(Options& o) override {
    if (table_->given("--atomic_type")) {
      if (table_->given("--verb") && atomics_.verb != type_)
        fail_usage("--atomic_type: contradicts --verb; give one of them");
      atomics_.verb = type_;
    }
    type_ = atomics_.verb;
    if (o.size.value_or(kAtomicBytes) != kAtomicBytes) fail_usage("--size {}: an atomic has 8 bytes", *o.size);
    if (atomics_.stride % kAtomicBytes != 0) {
      fail_usage("--stride {}: expected a multiple of 8 bytes", atomics_.stride);
    }
    if (o.fabric == "null") fail_usage("--fabric null: the null device executes no atomics");
    if (o.post_list != 1) fail_usage("--post_list {}: expected 1, atomics are posted one at a time", o.post_list);
    if (o.cq_mod.value_or(1) != 1) fail_usage("--cq_mod {}: expected 1, each atomic is signaled", *o.cq_mod);
    o.size = kAtomicBytes;
    o.cq_mod = 1;
    if (!table_->given("--window")) atomics_.most_outstanding = std::min(atomics_.most_outstanding, o.tx_depth);
    if (!atomics_.probe_slots) return;
    check_probe(o);
    o.threads = 1;
    o.qp = 2;
    o.clients = o.client_threads = 1;
    if (!o.duration) o.duration = kProbeDuration;
    o.warmup = Picos(0);
  }

  Plan draft() const override {
    return {.operation = {.verb = atomics_.verb,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = atomics_.most_outstanding,
                          .label = atomics_.verb == Verb::fetch_add ? "fetch-and-adds in" : "compare-and-swaps in"},
            .schedule = {.threads_end_it = atomics_.probe_slots}};
  }

  std::optional<OperationCount> operation_count() const override {
    if (atomics_.probe_slots) return std::nullopt;
    return OperationCount{Side::server, "atomics_served"};
  }

  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = op.tx_depth, .completions = op.tx_depth};
  }

  RegionNeeds region(const Operation&, Side side, std::uint32_t) const override {
    if (side == Side::client) return {};
    return {
        .bytes = atomics_.region_bytes(),
        .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (setup.side == Side::server) return make_counter_holder(setup, atomics_);
    return atomics_.probe_slots ? make_slot_prober(setup, atomics_) : make_atomic_client(setup, atomics_);
  }

  Json results(const std::vector<const Workload*>& threads) const override { return atomic_results(threads); }

  void finish(Outcome& outcome) const override {
    std::uint64_t tried = 0, succeeded = 0;
    const Json clients = outcome.result.at("clients");
    for (const Json& client : clients) {
      const Json& result = client.at("result");
      if (result.contains("lock_slots")) outcome.result["lock_slots"] = result.at("lock_slots");
      tried += result.value("swaps_tried", 0ull);
      succeeded += result.value("swaps_succeeded", 0ull);
    }
    if (tried > 0) outcome.result.update(Json{{"swaps_tried", tried}, {"swaps_succeeded", succeeded}});
  }

  std::string report(const Json& result) const override {
    if (result.contains("lock_slots")) return slots_text(result.at("lock_slots"));
    if (!result.contains("swaps_tried")) return "";
    return fmt::format("  {} of {} swaps succeeded\n", result.value("swaps_succeeded", 0ull),
                       result.value("swaps_tried", 0ull));
  }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    if (atomics_.probe_slots) fail("a survey of slots has no rate of its own");
    return predict_responder(cluster, verb_shape(op, ports));
  }

 private:
  // Refuses options that do not apply to a survey, which has two QPs of one thread.
  static void check_probe(const Options& o) {
    if (o.iters) fail_usage("--iters: not with --probe_slots, which sets its own number of operations");
    if (o.threads != 1 || o.clients.value_or(1) != 1 || o.client_threads.value_or(1) != 1 || o.qp > 2) {
      fail_usage("--threads, --clients, --client_threads, --qp: --probe_slots uses one thread with two QPs");
    }
    if (o.warmup.value_or(Picos(0)) != Picos(0))
      fail_usage("--warmup: not with --probe_slots, whose measurements each have their own");
    if (o.events) fail_usage("--events: not with --probe_slots, which polls");
    if (o.validate) fail_usage("--validate: not with --probe_slots, which measures rates only");
  }

  const OptionTable* table_ = nullptr;
  AtomicOptions atomics_;
  Verb type_ = Verb::fetch_add;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::AtomicRate>(argc, argv);
}
