// Lookups in the server's memory by a chain of READs, as in a list or a tree: each record contains the address of the
// next. The server's CPU is idle; the rate is that of the clients' lookups. docs/writing-a-benchmark.md explains this
// file.
#include <vector>

#include "common/hash.hpp"
#include "common/histogram.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/send_queue.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/report.hpp"
#include "microbench/run/runner.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

namespace {

constexpr const char* kPackedLatency = "lat_packed";

struct LookupOptions {
  std::uint32_t hops = 2;        // READs of a lookup
  std::uint64_t records = 1024;  // in the server's memory
};

// The first bytes of a record: its number, and that of the record to READ next.
struct RecordHead {
  std::uint64_t number = 0;
  std::uint64_t next = 0;
};

// The outstanding lookup of a QP.
struct Lookup {
  ibv_send_wr read{};
  ibv_sge segment{};
  RecordHead* record = nullptr;  // the last record that was read
  std::uint64_t number = 0;      // of the record that is being read
  std::uint32_t hops = 0;        // READs of this lookup so far
  Picos began{0};
};

// A client thread: one lookup at a time on each of its QPs.
class LookupClient final : public WorkloadOn<LookupClient> {
 public:
  LookupClient(const ThreadSetup& setup, const LookupOptions& options)
      : options_(options),
        stride_(payload_stride(setup.operation.payload)),
        buffer_(Bytes(setup.lanes.size() * stride_), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        lookups_(setup.lanes.size()),
        base_(setup.lanes.front().peers.front().region.address),
        random_(setup.operation.seed + mix(setup.node * 1'000 + setup.thread)),
        goal_(setup.goal),
        cq_(setup.cq),
        channel_(setup.channel) {
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) {
      const Lane& lane = setup.lanes[i];
      Lookup& lookup = lookups_[i];
      lookup.record = reinterpret_cast<RecordHead*>(buffer_.data() + i * stride_);
      lookup.segment = {reinterpret_cast<std::uint64_t>(lookup.record), setup.operation.payload, mr_.lkey()};
      lookup.read.wr_id = send_id(i);
      lookup.read.opcode = IBV_WR_RDMA_READ;
      lookup.read.sg_list = &lookup.segment;
      lookup.read.num_sge = 1;
      lookup.read.wr.rdma.rkey = lane.peers.front().region.rkey;
      queues_.push_back({.qp = lane.qp, .builder = lane.builder, .index = i});
    }
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    MeasuredInterval interval(tally, goal_);
    IdleWait wait(cq_, channel_, tally);
    bool running = true;
    std::uint64_t ops = 0;
    std::size_t open = lookups_.size();
    const auto on_read = [&](const ibv_wc& wc) {
      const std::uint32_t index = sent_queue(wc.wr_id);
      Lookup& lookup = lookups_[index];
      retire_signaled(queues_[index]);
      ++checked_;
      if (lookup.record->number != lookup.number) ++wrong_;
      if (++lookup.hops < options_.hops) return read(index, lookup.record->next, tally.end);
      if (interval.measuring()) latency_.record(node.now() - lookup.began);
      tally.done_ops.store(++ops, std::memory_order_relaxed);
      if (interval.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
      if (running) return begin(node, index, tally.end);
      --open;
      return true;
    };
    for (std::uint32_t i = 0; i < lookups_.size(); ++i) {
      if (!begin(node, i, tally.end)) return;
    }
    while (open > 0) {
      const int count = take_completions<kCompletionBatch>(cq_, interval.left(ops), tally.end, on_read);
      if (count < 0 || (count == 0 && !wait.idle_unless_quit(node, control))) return;
    }
  }

  bool active() const override { return true; }
  std::uint64_t checked() const override { return checked_; }
  std::uint64_t wrong() const override { return wrong_; }
  const Histogram& latency() const { return latency_; }

 private:
  template <Node N>
  bool begin(N& node, std::uint32_t index, RunEnd& end) {
    lookups_[index].hops = 0;
    lookups_[index].began = node.now();
    return read(index, mix(++random_) % options_.records, end);
  }

  bool read(std::uint32_t index, std::uint64_t number, RunEnd& end) {
    Lookup& lookup = lookups_[index];
    lookup.number = number;
    lookup.read.wr.rdma.remote_addr = base_ + number * stride_;
    return post_one(queues_[index], lookup.read, end);
  }

  LookupOptions options_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  std::vector<Lookup> lookups_;
  std::vector<SendQueue> queues_;
  std::uint64_t base_, random_, goal_;
  ibv_cq* cq_;
  ibv_comp_channel* channel_;
  Histogram latency_;
  std::uint64_t checked_ = 0, wrong_ = 0;
};

class LookupRate final : public Benchmark {
 public:
  Description describe() const override {
    return {"read_chain",
            "Rate and latency of lookups, each a chain of dependent READs of records in the server's memory.",
            "--hops 3 -q 56 --clients 4"};
  }

  void options(OptionTable& table) override {
    offer_transports(table, {Verb::read});
    table.integer("--hops", lookup_.hops, 1u, 1024u, "READs per lookup; each record names the next one");
    table.integer("--records", lookup_.records, std::uint64_t{1}, std::uint64_t{1} << 32,
                  "number of records, of --size bytes each");
  }

  void adjust(Options& o) override {
    if (o.size.value_or(kDefaultSize) < sizeof(RecordHead)) {
      fail_usage("--size {}: expected at least {} bytes, for the number of the record and of the next", *o.size,
                 sizeof(RecordHead));
    }
  }

  Plan draft() const override {
    return {.operation = {.verb = Verb::read,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = 1,
                          .label = "lookups"}};
  }
  // A lookup is several READs.
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }
  bool moves_payloads() const override { return false; }

  QueueNeeds needs(const Operation&, Side) const override { return {}; }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t) const override {
    return {.bytes = side == Side::server ? lookup_.records * payload_stride(op.payload) : 0};
  }

  void fill(const Operation& op, Side, std::span<std::byte> region) const override {
    for (std::uint64_t k = 0; k < lookup_.records; ++k) {
      auto* const head = reinterpret_cast<RecordHead*>(region.data() + k * payload_stride(op.payload));
      *head = {k, mix(k) % lookup_.records};
    }
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    if (setup.side == Side::server) return make_idle();
    return std::make_unique<LookupClient>(setup, lookup_);
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    Histogram latency;
    bool has_client = false;
    for (const Workload* thread : threads) {
      const auto* const client = dynamic_cast<const LookupClient*>(thread);
      if (client == nullptr) continue;
      has_client = true;
      latency.merge(client->latency());
    }
    return has_client ? Json{{kPackedLatency, latency.pack()}} : Json::object();
  }

  void finish(Outcome& outcome) const override {
    outcome.result.update(take_client_histograms(outcome.result, kPackedLatency).to_json());
  }

  std::string report(const Json& result) const override { return latency_line(result); }

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    const Prediction read = predict_responder(cluster, verb_shape(op, ports));
    return predict_together("lookups", {{read, static_cast<double>(lookup_.hops)}});
  }

 private:
  LookupOptions lookup_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::LookupRate>(argc, argv);
}
