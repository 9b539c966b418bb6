// What a PUT costs the CPUs of three replicas: the source of RaftCosts (systems/raft/raft_io.hpp). The network is a
// function call. BM_Put has all of it; BM_Append and BM_Apply are parts of it, which happen three times, and the rest
// is for eight messages that are made or taken.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "systems/raft/replica.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kReplicas = 3;
constexpr std::uint64_t kKeys = 1'000'000;

class Node final : public RaftNetwork {
 public:
  Node(std::vector<std::unique_ptr<Node>>& nodes, raft_id id) : nodes_(nodes) {
    ReplicaOptions options{.id = id,
                           .io = {.addresses = {"1", "2", "3"},
                                  .election = std::chrono::microseconds(id == 1 ? 20 : 100'000),
                                  .heartbeat = std::chrono::microseconds(10),
                                  .random = [this] { return random_(); },
                                  .compute = [](Picos) {}},
                           .keys = kKeys,
                           .snapshot_every = 1 << 16};
    log_ = std::make_unique<RaftLog>(log_storage_, snapshot_storage_);
    replica = std::make_unique<Replica>(
        options, *log_, *this,
        [](void* node, const RpcHandle&, const StoreAnswer& answer) {
          static_cast<Node*>(node)->answered = true;
          static_cast<Node*>(node)->session = std::max(static_cast<Node*>(node)->session, answer.session);
        },
        this);
  }
  std::byte* prepare(raft_id to, std::size_t bytes, MessageOrder) override {
    to_ = to;
    message_.resize(bytes);
    return message_.data();
  }
  void send(std::uint64_t tag) override {
    nodes_[to_ - 1]->inbox_.push_back(message_);
    sent_.push_back(tag);
  }
  void poll(Picos now) {
    for (const std::vector<std::byte>& message : std::exchange(inbox_, {}))
      replica->io().receive(message, now, Picos(0));
    for (const std::uint64_t tag : std::exchange(sent_, {})) replica->io().sent(tag, true);
    replica->poll(now);
  }

  std::unique_ptr<Replica> replica;
  bool answered = false;
  std::uint64_t session = 0;
  ServerSlot slot;

 private:
  std::vector<std::unique_ptr<Node>>& nodes_;
  std::mt19937_64 random_{1};
  MemoryStorage log_storage_, snapshot_storage_;
  std::unique_ptr<RaftLog> log_;
  raft_id to_ = 0;
  std::vector<std::byte> message_;
  std::vector<std::vector<std::byte>> inbox_;
  std::vector<std::uint64_t> sent_;
};

StoreRequest put(std::uint64_t session, std::uint64_t number) {
  return {StoreOp::put, session, number, store_key(mix(number) % kKeys), {}};
}
std::span<const std::byte> bytes_of(const StoreRequest& request) {
  return std::as_bytes(std::span(&request, 1)).first(StoreRequest::bytes(request.op));
}

void BM_Put(benchmark::State& state) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (raft_id id = 1; id <= kReplicas; ++id) nodes.push_back(std::make_unique<Node>(nodes, id));
  Node& leader = *nodes[0];
  Picos now{0};
  const auto pass = [&] {
    now += std::chrono::microseconds(1);
    for (const auto& node : nodes) node->poll(now);
  };
  while (!leader.replica->leads()) pass();
  const auto ask = [&](const StoreRequest& request) {
    leader.answered = false;
    leader.replica->request({.slot = &leader.slot}, bytes_of(request), now);
    while (!leader.answered) pass();
  };
  ask({});
  std::uint64_t number = 0;
  const auto one = [&] { ask(put(leader.session, ++number)); };
  for (int i = 0; i < 1000; ++i) one();
  for (auto _ : state) one();
}
BENCHMARK(BM_Put);

void BM_Append(benchmark::State& state) {
  MemoryStorage log_storage, snapshot_storage;
  RaftLog log(log_storage, snapshot_storage);
  StoreRequest request = put(1, 1);
  const raft_entry entry{1, RAFT_COMMAND, {&request, sizeof request}, nullptr};
  for (auto _ : state) {
    log.append({&entry, 1});
    log.poll();
  }
}
BENCHMARK(BM_Append)->Iterations(500000);

void BM_Apply(benchmark::State& state) {
  ReplicatedStore store(kKeys);
  const std::uint64_t session = store.apply(bytes_of({})).session;
  std::uint64_t number = 0;
  while (number < 2 * kKeys) store.apply(bytes_of(put(session, ++number)));
  for (auto _ : state) benchmark::DoNotOptimize(store.apply(bytes_of(put(session, ++number))));
}
BENCHMARK(BM_Apply);

}  // namespace
}  // namespace verbscope
