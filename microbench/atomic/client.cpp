#include "microbench/atomic/client.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "microbench/atomic/loop.hpp"
#include "microbench/atomic/slot_probe.hpp"
#include "microbench/bench/workload.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {

namespace {

ibv_send_wr atomic_request(std::uint32_t queue, Verb verb, ibv_sge* result, std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.wr_id = send_id(queue);
  wr.opcode = request_opcode(verb, false);
  wr.sg_list = result;
  wr.num_sge = 1;
  wr.wr.atomic.compare_add = 1;  // fetch-and-add adds one; the values of a swap are set at each post
  wr.wr.atomic.rkey = rkey;
  return wr;
}

class AtomicClient final : public WorkloadOn<AtomicClient> {
 public:
  AtomicClient(const ThreadSetup& setup, const AtomicOptions& options)
      : outstanding_(options.outstanding(setup.operation)),
        buffer_(Bytes(setup.lanes.size() * outstanding_ * kAtomicBytes), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(setup.lanes.size() * outstanding_),
        requests_(segments_.size()),
        counters_(segments_.size()),
        seen_(options.verb == Verb::compare_swap ? options.counters : 0) {
    for (std::size_t i = 0; i < setup.lanes.size(); ++i) add_queue(setup.lanes[i], options, i);
    const Lane& first = setup.lanes.front();
    const std::uint64_t seed = setup.operation.seed * 1'000'003 + (std::uint64_t{setup.node} << 32) + setup.thread;
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.places = places_;
    state_.choice = Choice(options.counters, options.random, seed, first.index * options.counters / first.count);
    state_.stride = options.stride;
    state_.seen = seen_;
    state_.goal = setup.goal;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    client_loop(node, state_, control, tally);
  }

  bool active() const override { return true; }
  // The sum of the server's counters: each operation, or each successful swap, adds one.
  std::uint64_t sent_to(std::uint32_t) const override { return seen_.empty() ? operations() : state_.swapped; }
  std::string memory() const override { return buffer_.describe(); }

  std::uint64_t operations() const {
    std::uint64_t sum = 0;
    for (const SendQueue& queue : queues_) sum += queue.completed();
    return sum;
  }
  bool swaps() const { return !seen_.empty(); }
  std::uint64_t swapped() const { return state_.swapped; }

 private:
  void add_queue(const Lane& lane, const AtomicOptions& options, std::size_t index) {
    auto* const results = reinterpret_cast<std::uint64_t*>(buffer_.data()) + index * outstanding_;
    const std::size_t begin = index * outstanding_;
    const RemoteRegion& region = lane.peers.front().region;
    for (std::size_t j = 0; j < outstanding_; ++j) {
      segments_[begin + j] = {reinterpret_cast<std::uint64_t>(results + j), kAtomicBytes, mr_.lkey()};
      requests_[begin + j] =
          atomic_request(static_cast<std::uint32_t>(index), options.verb, &segments_[begin + j], region.rkey);
    }
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = static_cast<std::uint32_t>(index),
                       .depth = outstanding_,
                       .ring = {&requests_[begin], outstanding_}});
    places_.push_back(
        {.results = {results, outstanding_}, .counter = {&counters_[begin], outstanding_}, .base = region.address});
  }

  std::uint32_t outstanding_;
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<std::uint64_t> counters_;
  std::vector<std::uint64_t> seen_;
  std::vector<SendQueue> queues_;
  std::vector<AtomicPlaces> places_;
  AtomicState state_;
};

class SlotProber final : public WorkloadOn<SlotProber> {
 public:
  SlotProber(const ThreadSetup& setup, const AtomicOptions& options)
      : buffer_(Bytes(2 * kAtomicBytes), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        survey_(kSurveyedBits, setup.operation.seed) {
    if (setup.lanes.size() != 2) fail("--probe_slots: expected two QPs in one thread, got {}", setup.lanes.size());
    probe_.cq = setup.cq;
    for (std::uint32_t i = 0; i < 2; ++i) {
      const RemoteRegion& region = setup.lanes[i].peers.front().region;
      segments_[i] = {reinterpret_cast<std::uint64_t>(buffer_.data()) + i * kAtomicBytes, kAtomicBytes, mr_.lkey()};
      probe_.queues[i] = {.qp = setup.lanes[i].qp,
                          .builder = setup.lanes[i].builder,
                          .index = i,
                          .depth = options.outstanding(setup.operation)};
      probe_.atomics[i] = atomic_request(i, options.verb, &segments_[i], region.rkey);
      probe_.reads[i] = probe_.atomics[i];
      probe_.reads[i].opcode = IBV_WR_RDMA_READ;
      probe_.reads[i].wr.rdma = {0, region.rkey};
      // Offsets of the survey are the low address bits: align its base to the surveyed range.
      probe_.base = round_up(region.address, std::uint64_t{1} << kSurveyedBits);
    }
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    probe_loop(node, probe_, survey_, control, tally);
  }

  bool active() const override { return true; }
  std::string memory() const override { return buffer_.describe(); }
  SlotFindings findings() const { return survey_.findings(); }

 private:
  Buffer buffer_;
  Mr mr_;
  std::array<ibv_sge, 2> segments_{};
  SlotProbe probe_;
  SlotSurvey survey_;
};

class CounterHolder final : public WorkloadOn<CounterHolder> {
 public:
  CounterHolder(const ThreadSetup& setup, const AtomicOptions& options)
      : region_(setup.region.bytes),
        counters_(setup.thread == 0 && !options.probe_slots ? options.counters : 0),
        stride_(options.stride) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t received() const override {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < counters_; ++i) sum += load_word<std::uint64_t>(region_.data() + i * stride_);
    return sum;
  }

 private:
  std::span<std::byte> region_;
  std::uint64_t counters_;
  std::uint64_t stride_;
};

}  // namespace

std::uint64_t AtomicOptions::region_bytes() const {
  return probe_slots ? std::uint64_t{2} << kSurveyedBits : (counters - 1) * stride + kAtomicBytes;
}

std::uint32_t AtomicOptions::outstanding(const Operation& op) const {
  return std::min(most_outstanding, op.tx_depth);
}

std::unique_ptr<Workload> make_atomic_client(const ThreadSetup& setup, const AtomicOptions& options) {
  return std::make_unique<AtomicClient>(setup, options);
}

std::unique_ptr<Workload> make_slot_prober(const ThreadSetup& setup, const AtomicOptions& options) {
  return std::make_unique<SlotProber>(setup, options);
}

std::unique_ptr<Workload> make_counter_holder(const ThreadSetup& setup, const AtomicOptions& options) {
  return std::make_unique<CounterHolder>(setup, options);
}

Json atomic_results(const std::vector<const Workload*>& threads) {
  std::uint64_t operations = 0, swapped = 0;
  bool swaps = false;
  for (const Workload* thread : threads) {
    if (const auto* prober = dynamic_cast<const SlotProber*>(thread)) {
      return Json{{"lock_slots", slots_json(prober->findings())}};
    }
    const auto* client = dynamic_cast<const AtomicClient*>(thread);
    if (client == nullptr) continue;
    operations += client->operations();
    swapped += client->swapped();
    swaps = swaps || client->swaps();
  }
  if (!swaps) return Json::object();
  return Json{{"swaps_tried", operations}, {"swaps_succeeded", swapped}};
}

}  // namespace verbscope
