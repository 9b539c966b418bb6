// A server that hands out the numbers of one sequence, in three designs (Kalia et al., ATC 2016, section 4.2): requests
// by UC WRITE and answers by UD SEND, datagrams that carry nothing but headers, and fetch-and-add.
#include <algorithm>

#include "common/record.hpp"
#include "microbench/run/runner.hpp"
#include "systems/requests/peers.hpp"
#include "systems/sequencer/result.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kValueBytes = 8;
constexpr std::uint32_t kPaperMachines = 5;  // clients' machines, with 14 threads each: 70 clients
constexpr Picos kSimRetry = 1ms;
constexpr Picos kRetry = 100ms;

class Sequencer final : public Benchmark {
 public:
  Description describe() const override {
    return {"sequencer", "Rate and latency of a server that hands out the numbers of one sequence, in three designs.",
            "--design spec --batching"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--connection", Json(),
                  "transport of the requests (default: UC for herd, UD for spec, RC for atomic)");
    table.restate("--size", kValueBytes, "size of a number: 8 bytes");
    table.restate("--inline_size", Json(), "largest payload that is sent inline (default 8; --design atomic 0)");
    table.choice<SequencerDesign>(
        "--design", sequencer_.design,
        {{"herd", SequencerDesign::herd}, {"spec", SequencerDesign::spec}, {"atomic", SequencerDesign::atomic}},
        "herd: requests by UC WRITE, responses by UD SEND; spec: both by header-only UD SEND; atomic: fetch-and-add by "
        "the clients");
    table.flag("--batching", sequencer_.batching,
               "answer all requests of a polling pass together: one doorbell per QP and --max_batch responses");
    table.integer("--max_batch", sequencer_.max_batch, 1u, std::uint32_t{BatchCounts::kLongest},
                  "most responses per doorbell");
    table.integer("--outstanding", sequencer_.outstanding, 1u, 4096u, "outstanding requests per client thread");
    table.integer("--start_value", sequencer_.start_value, std::uint64_t{0}, std::uint64_t{1} << 62,
                  "first number of the sequence");
    table.duration("--retry_after", retry_after_,
                   "resend a request after this long without a response (default 100 ms; sim 1 ms of simulated time)");
  }

  void adjust(Options& o) override {
    const bool atomic = sequencer_.design == SequencerDesign::atomic;
    const Transport transport = transport_of(sequencer_.design);
    if (o.fabric == "null") fail_usage("--fabric null: the null device has no clients that ask for numbers");
    if (o.size.value_or(kValueBytes) != kValueBytes) fail_usage("--size {}: a number has 8 bytes", *o.size);
    if (o.header_only) fail_usage("--header_only: --design spec sets which messages have no payload");
    if (o.post_list != 1) fail_usage("--post_list {}: use --batching, which posts responses in lists", o.post_list);
    if (o.events) fail_usage("--events: the workers poll memory, which raises no event");
    if (o.validate) fail_usage("--validate: every number is checked already");
    if (table_->given("--connection") && o.connection != transport) {
      fail_usage("--connection {}: this --design sends requests over {}", to_string(o.connection),
                 to_string(transport));
    }
    if (atomic && sequencer_.batching)
      fail_usage("--batching: --design atomic has no server threads, so it has no effect");
    if (atomic && table_->given("--max_batch"))
      fail_usage("--max_batch: --design atomic has no server threads, so it has no effect");
    if (atomic && retry_after_) fail_usage("--retry_after: --design atomic uses RC, which loses nothing");
    if (atomic && o.cq_mod.value_or(1) != 1)
      fail_usage("--cq_mod {}: every result needs its completion, so it must be 1", *o.cq_mod);
    if (sequencer_.outstanding > o.tx_depth) {
      fail_usage("--outstanding {}: at most --tx_depth {}", sequencer_.outstanding, o.tx_depth);
    }
    const bool simulated = is_simulated(o.fabric);
    o.size = kValueBytes;
    o.connection = transport;
    if (atomic) o.cq_mod = 1;
    if (!atomic) o.inline_size = std::max(o.inline_size, kValueBytes);
    if (simulated) o.clients = o.clients.value_or(kPaperMachines);
    sequencer_.retry_after = atomic ? Picos(0) : retry_after_.value_or(simulated ? kSimRetry : kRetry);
    sequencer_.workers = o.threads;
    sequencer_.audit = std::make_shared<ValueAudit>(sequencer_.start_value);
    sequencer_.audit_shared = simulated;
  }

  bool moves_payloads() const override { return false; }
  Plan draft() const override {
    const bool spec = sequencer_.design == SequencerDesign::spec;
    const bool atomic = sequencer_.design == SequencerDesign::atomic;
    return {.operation = {.verb = spec     ? Verb::send
                                  : atomic ? Verb::fetch_add
                                           : Verb::write,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = atomic ? sequencer_.outstanding : 0,
                          .requests_per_client_thread = spec ? sequencer_.outstanding : 0,
                          .label = "numbers"},
            .topology = {.client_qps = ClientQps{.connected = !spec, .datagram = !atomic}, .clients_may_leave = true}};
  }

  std::optional<OperationCount> operation_count() const override {
    if (sequencer_.design == SequencerDesign::atomic) return OperationCount{Side::server, "atomics_served"};
    if (retry_after_) return std::nullopt;  // a request that is resent early is answered twice
    return OperationCount{Side::client, "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side side) const override {
    if (side == Side::server) return {};
    return {.send_depth = op.tx_depth, .inline_bytes = op.inline_limit, .completions = op.tx_depth};
  }

  QueueNeeds datagram_needs(const Operation& op, Side side) const override {
    const bool spec = sequencer_.design == SequencerDesign::spec;
    const std::uint32_t recvs = side == Side::client ? response_recvs(sequencer_.outstanding) : spec ? op.rx_depth : 1;
    return {.send_depth = spec || side == Side::server ? op.tx_depth : 1,
            .recv_depth = recvs,
            .inline_bytes = side == Side::server ? op.inline_limit : 0,
            .completions = op.tx_depth + recvs};
  }

  RegionNeeds region(const Operation&, Side side, std::uint32_t qps) const override {
    if (side == Side::client) return {};
    RegionNeeds needs{.bytes = sequencer_region_bytes(sequencer_, qps)};
    if (sequencer_.design == SequencerDesign::atomic) needs.access |= IBV_ACCESS_REMOTE_ATOMIC;
    return needs;
  }

  void fill(const Operation&, Side, std::span<std::byte> region) const override {
    store_word(region.data(), sequencer_.start_value);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return make_sequencer_end(setup, sequencer_);
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    return sequencer_node_json(threads, sequencer_);
  }
  void finish(Outcome& outcome) const override { check_sequence(outcome, sequencer_); }
  std::string report(const Json& result) const override { return sequencer_text(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_sequencer(cluster, op, ports, sequencer_, Json::object());
  }
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports,
                         const Json& result) const override {
    return predict_sequencer(cluster, op, ports, sequencer_, result);
  }

 private:
  // The transport of a design's requests.
  static Transport transport_of(SequencerDesign design) {
    return design == SequencerDesign::herd   ? Transport::uc
           : design == SequencerDesign::spec ? Transport::ud
                                             : Transport::rc;
  }

  const OptionTable* table_ = nullptr;
  SequencerOptions sequencer_;
  std::optional<Picos> retry_after_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::Sequencer>(argc, argv);
}
