// The two ends of a store whose GETs are one-sided, as workloads.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "systems/one_sided/client.hpp"
#include "systems/one_sided/puts.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

// How the PUTs of a store travel, and the layout of the regions. The server's region holds the store, then for PUTs by
// WRITE the slots of its clients, grouped by thread. A client's region holds for PUTs by WRITE one line per thread, for
// the answer.
struct PutPaths {
  PutLayout layout;
  bool by_memory = true;
  std::uint64_t store_bytes = 0;

  std::uint32_t recvs() const { return by_memory ? 0 : layout.window + kSpareRecvs; }
  std::uint64_t slots_at() const { return round_up(store_bytes, kCacheLine.value); }
  // Lanes of the server's busiest thread.
  static std::uint64_t lanes_each(std::uint64_t clients, std::uint64_t threads) {
    return (clients + threads - 1) / threads;
  }
  std::uint64_t slots_of(std::uint64_t client, std::uint64_t clients, std::uint64_t threads) const {
    const std::uint64_t place = client % threads * lanes_each(clients, threads) + client / threads;
    return slots_at() + place * layout.client_bytes();
  }
  std::uint64_t server_bytes(std::uint64_t clients, std::uint64_t threads) const {
    return by_memory ? slots_at() + threads * lanes_each(clients, threads) * layout.client_bytes()
                     : std::max(store_bytes, kCacheLine.value);
  }
};

constexpr std::uint32_t put_signal_every(std::uint32_t depth) {
  return std::clamp(depth / 4, 1u, 64u);
}

// Counts of a client thread's GETs, beside those of its oracle, and of a server thread's PUTs.
struct OneSidedAccount {
  virtual ~OneSidedAccount() = default;
  virtual const PutCounts* puts() const { return nullptr; }
  // Outside of the measured interval, and within it.
  virtual const std::array<GetCounts, 2>* gets() const { return nullptr; }
};

// A message or an answer: by WRITE to `address`, or by SEND.
inline ibv_send_wr put_request(ibv_sge& segment, std::uint32_t queue, bool by_memory, bool inlined,
                               std::uint64_t address, std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.wr_id = send_id(queue);
  wr.sg_list = &segment;
  wr.num_sge = 1;
  wr.opcode = by_memory ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
  if (inlined) wr.send_flags = IBV_SEND_INLINE;
  if (by_memory) wr.wr.rdma = {address, rkey};
  return wr;
}

template <class Access>
class OneSidedClient final : public WorkloadOn<OneSidedClient<Access>>,
                             public StoreClientAccount,
                             public OneSidedAccount {
 public:
  OneSidedClient(const ThreadSetup& setup, const StoreOptions& options, const Access& access, const PutPaths& paths)
      : access_(access),
        paths_(paths),
        parts_(setup, options),
        stride_(round_up(access.largest_read(), kCacheLine.value)),
        buffer_(Bytes(options.window * (stride_ + paths.layout.stride())), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        gets_(options.window),
        free_(options.window),
        puts_(options.window) {
    const Lane& lane = setup.lanes.front();
    const RemoteRegion& region = lane.peers.front().region;
    const std::uint32_t depth = setup.operation.tx_depth;
    const std::uint64_t clients = setup.topology.all_client_threads();
    if (paths.server_bytes(clients, setup.topology.threads) > region.bytes) {
      fail("the server has {} bytes for the store, not the {} that this client expects", region.bytes,
           paths.server_bytes(clients, setup.topology.threads));
    }
    state_.cq = setup.cq;
    state_.queues = {SendQueue{.qp = lane.qp, .builder = lane.builder, .depth = depth},
                     SendQueue{.qp = lane.companion,
                               .builder = lane.companion_builder,
                               .index = kPutQueue,
                               .depth = depth,
                               .signal_every = put_signal_every(depth)}};
    state_.access = &access_;
    state_.oracle = &parts_.oracle;
    state_.layout = paths.layout;
    state_.base = region.address;
    state_.retry_after = options.retry_after;
    state_.goal = setup.goal;
    prepare_gets(region.rkey);
    prepare_puts(setup, region, paths.slots_of(number_of_client(setup), clients, setup.topology.threads));
    if (paths.by_memory) {
      state_.answer = setup.region.bytes.data() + setup.thread * kCacheLine.value;
      return;
    }
    recvs_.emplace(setup, 1, RecvShape{.count = paths.recvs(), .bytes = kPutTagBytes, .stride = kPutTagBytes},
                   kPutQueue);
    state_.recvs = recvs_->post(lane.companion, kPutQueue);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    if (state_.answer != nullptr) node.watch(state_.answer, kPutTagBytes);
    client_loop(node, state_, control, tally);
    window_ = tally.interval.end - tally.interval.begin;
  }

  bool active() const override { return true; }
  std::uint64_t checked() const override { return parts_.oracle.counts.gets; }
  std::uint64_t wrong() const override { return parts_.oracle.counts.wrong; }
  std::string memory() const override { return buffer_.describe(); }
  const ClientOracle& oracle() const override { return parts_.oracle; }
  Picos window() const override { return window_; }
  const std::array<GetCounts, 2>* gets() const override { return &state_.counts; }

 private:
  void prepare_gets(std::uint32_t rkey) {
    for (std::uint32_t i = 0; i < gets_.size(); ++i) {
      OneSidedGet<Access>& get = gets_[i];
      get.got = buffer_.data() + i * stride_;
      get.segment = {reinterpret_cast<std::uint64_t>(get.got), 0, mr_.lkey()};
      get.read.wr_id = send_id(kReadQueue, i);
      get.read.sg_list = &get.segment;
      get.read.num_sge = 1;
      get.read.opcode = IBV_WR_RDMA_READ;
      get.read.wr.rdma.rkey = rkey;
      free_[i] = &get;
    }
    state_.gets = gets_;
    state_.free_gets = free_;
    state_.free = static_cast<std::uint32_t>(gets_.size());
  }

  void prepare_puts(const ThreadSetup& setup, const RemoteRegion& region, std::uint64_t slots) {
    const PutLayout& layout = paths_.layout;
    std::byte* const messages = buffer_.data() + puts_.size() * stride_;
    const bool inlined = layout.message_bytes() <= setup.operation.inline_limit;
    for (std::uint64_t i = 0; i < puts_.size(); ++i) {
      OneSidedPut& put = puts_[i];
      put.end = messages + layout.end_of(i + 1);
      put.segment = {reinterpret_cast<std::uint64_t>(put.end) - layout.message_bytes(), layout.message_bytes(),
                     mr_.lkey()};
      const std::uint64_t to = region.address + slots + layout.end_of(i + 1) - layout.message_bytes();
      put.message = put_request(put.segment, kPutQueue, paths_.by_memory, inlined, to, region.rkey);
    }
    state_.puts = puts_;
  }

  Access access_;
  PutPaths paths_;
  ClientOracleParts parts_;
  std::uint64_t stride_;  // bytes from where a READ lands to the next
  Buffer buffer_;         // what READs bring, then messages
  Mr mr_;
  std::vector<OneSidedGet<Access>> gets_;
  std::vector<OneSidedGet<Access>*> free_;
  std::vector<OneSidedPut> puts_;
  std::optional<RecvRings> recvs_;
  OneSidedClientState<Access> state_;
  Picos window_{0};
};

template <class Access>
class OneSidedServer final : public WorkloadOn<OneSidedServer<Access>>, public OneSidedAccount {
 public:
  // `puts`: executes the PUTs of this thread.
  OneSidedServer(const ThreadSetup& setup, const PutPaths& paths, typename Access::Puts puts)
      : puts_(std::move(puts)), queues_(setup.lanes.size()), lanes_(setup.lanes.size()) {
    const std::uint32_t depth = setup.operation.tx_depth;
    if (!paths.by_memory && !lanes_.empty()) {
      recvs_.emplace(
          setup, lanes_.size(),
          RecvShape{.count = paths.recvs(), .bytes = paths.layout.message_bytes(), .stride = paths.layout.stride()});
    }
    const std::uint64_t clients = setup.topology.all_client_threads(), threads = setup.topology.threads;
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = setup.lanes[i];
      const LanePeer& peer = lane.peers.front();
      PutLane& mine = lanes_[i];
      queues_[i] = {.qp = lane.companion,
                    .builder = lane.companion_builder,
                    .index = i,
                    .depth = depth,
                    .signal_every = put_signal_every(depth)};
      mine.segment = {reinterpret_cast<std::uint64_t>(&mine.last), kPutTagBytes, 0};
      mine.answer = put_request(mine.segment, i, paths.by_memory, true,
                                peer.region.address + peer.index * kCacheLine.value, peer.region.rkey);
      if (paths.by_memory) {
        mine.slots = setup.region.bytes.data() + paths.slots_of(lane.index, clients, threads);
      } else {
        mine.recvs = recvs_->post(lane.companion, i);
      }
    }
    state_.cq = setup.cq;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.puts = &puts_;
    state_.layout = paths.layout;
    state_.by_memory = paths.by_memory;
    if (paths.by_memory && !lanes_.empty()) {
      state_.slots = {lanes_.front().slots, lanes_.size() * paths.layout.client_bytes()};
    }
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    if (lanes_.empty()) return wait_for_quit(node, control);
    state_.watch(node);
    server_loop(node, state_, control, tally, serve_puts<N, Access>);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  const PutCounts* puts() const override { return &state_.counts; }

 private:
  typename Access::Puts puts_;
  std::vector<SendQueue> queues_;
  std::vector<PutLane> lanes_;
  std::optional<RecvRings> recvs_;
  OneSidedServerState<Access> state_;
};

}  // namespace verbscope
