// A CPU reads memory that a peer WRITEs to. Measures in which order the bytes become visible, whether they are visible
// when the WRITE is complete, and the cost of a READ behind it.
#include <algorithm>

#include "common/record.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/run/runner.hpp"
#include "microbench/visibility/ends.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kWordBytes = 8;
constexpr std::uint32_t kDefaultWrite = 16384;  // bytes: several packets
// The server reads every word in each pass; with longer WRITEs a pass takes longer than the WRITE.
constexpr std::uint32_t kMaxWrite = 1 << 20;
constexpr Picos kSimDuration = 20ms;

class WriteVisibility final : public Benchmark {
 public:
  Description describe() const override {
    return {"write_visibility",
            "Order and delay in which a CPU sees WRITEs to its memory, with and without a READ behind them.", "-s 256"};
  }

  void adjust(Options& o) override {
    if (o.fabric == "null") fail_usage("--fabric null: the null device moves no bytes");
    if (!facts(o.connection).verbs.has(Verb::read)) {
      fail_usage("--connection {}: expected RC, which has READs", to_string(o.connection));
    }
    if (o.threads != 1 || o.qp != 1 || o.clients.value_or(1) != 1) {
      fail_usage("--threads, --qp, --clients: expected 1, there is one writer and one reader");
    }
    if (o.post_list != 1 || o.cq_mod.value_or(1) != 1) {
      fail_usage("--post_list, --cq_mod: expected 1, the writer waits for the completion of each WRITE");
    }
    if (o.events) fail_usage("--events: the reader polls memory, which raises no event");
    o.size = o.size.value_or(kDefaultWrite);
    if (*o.size % kWordBytes != 0 || *o.size < 2 * kWordBytes || *o.size > kMaxWrite) {
      fail_usage("--size {}: expected a multiple of {} bytes, {} to {}", *o.size, kWordBytes, 2 * kWordBytes,
                 kMaxWrite);
    }
    o.clients = o.client_threads = o.cq_mod = 1;
    if (is_simulated(o.fabric) && !o.iters && !o.duration) o.duration = kSimDuration;
  }

  bool moves_payloads() const override { return false; }
  Plan draft() const override {
    return {.operation = {.verb = Verb::write, .driver = Side::client, .counted = Side::client, .label = "WRITEs in"}};
  }

  std::optional<OperationCount> operation_count() const override {
    return OperationCount{Side::server, "writes_received"};
  }

  // A WRITE and the READ behind it are two requests.
  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = std::max(op.tx_depth, 2u),
            .recv_depth = op.rx_depth,
            .inline_bytes = op.inline_limit,
            .completions = std::max(op.tx_depth, 2u) + op.rx_depth};
  }

  RegionNeeds region(const Operation& op, Side, std::uint32_t) const override {
    return {.bytes = visibility_region_bytes(op.payload)};
  }

  // The QP of the SENDs.
  std::optional<Transport> companion(const Operation&) const override { return Transport::rc; }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? make_visibility_writer(setup) : make_visibility_reader(setup);
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    return visibility_results(*threads.front());
  }

  void finish(Outcome& outcome) const override {
    const Json client = outcome.result.at("clients").at(0).at("result");
    for (const auto& [key, value] : client.items()) {
      if (key.starts_with("write_")) outcome.result[key] = value;
    }
  }

  std::string report(const Json& result) const override { return visibility_text(result); }

  // Per operation the server is the target of a WRITE and of half a READ, receives a SEND and posts one.
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    const VerbShape write = verb_shape(op, ports);
    VerbShape read = write;
    read.verb = Verb::read;
    read.payload = Bytes(kWordBytes);
    read.inlined = false;
    VerbShape message = read;
    message.verb = Verb::send;
    return predict_together("target", {{predict_responder(cluster, write)},
                                       {predict_responder(cluster, read), 0.5},
                                       {predict_receiver(cluster, message)},
                                       {predict_requester(cluster, message)}});
  }
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::WriteVisibility>(argc, argv);
}
