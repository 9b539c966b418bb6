#include <optional>

#include "systems/cached/cached.hpp"
#include "systems/cached/client.hpp"
#include "systems/cached/server.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/client_end.hpp"
#include "wire/pcie.hpp"

namespace verbscope::cached {

namespace {

class ClientEnd final : public StoreClientEnd<Asker, ClientState>, public CachedAccount {
 public:
  ClientEnd(const ThreadSetup& setup, const CachedOptions& options)
      : StoreClientEnd(setup, options.store),
        cache_(parts_.oracle.values(), options.store.keys, options.store.cached_share),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.store.window), item_bytes(setup.operation.payload))),
        open_(std::size_t{setup.topology.threads} * options.store.window),
        lanes_(lanes_over<ServerLane>(open_, options.store.window)),
        stride_(round_up(put_bytes(setup.operation.payload), kCacheLine.value)),
        buffer_(Bytes(open_.size() * stride_), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()) {
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i].end = buffer_.data() + (i + 1) * stride_;
    for (std::uint32_t t = 0; t < lanes_.size(); ++t) {
      lanes_[t].to = asked_qp(setup, setup.lanes[0].peers, t).address();
    }
    segment_.lkey = mr_.lkey();
    request_.wr_id = send_id(0);
    request_.sg_list = &segment_;
    request_.num_sge = options.store.small_keys ? 0 : 1;
    request_.opcode = IBV_WR_SEND_WITH_IMM;
    asker_.lanes = lanes_;
    asker_.cache = &cache_;
    asker_.request = &request_;
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[0].qp, 0)};
    asker_.value = setup.operation.payload;
    asker_.inline_bytes = options.request_inline;
    asker_.small_keys = options.store.small_keys;
  }

  const ClientState& state() const override { return state_; }

 private:
  CachedValues cache_;
  RecvRings recvs_;
  std::vector<Open> open_;
  std::vector<ServerLane> lanes_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  ibv_sge segment_{};
  ibv_send_wr request_{};
};

class ServerEnd final : public RequestServerEnd<ServerEnd, Server>, public CacheAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const CachedOptions& options)
      : RequestServerEnd(setup, bodies(setup), options.store.batching, options.store.max_batch),
        workload_(options.store, setup.operation.seed),
        store_(filled_cache(setup, options.store, kVersionBytes)),
        requests_(setup, setup.lanes.size(), request_recvs(setup, put_bytes(setup.operation.payload))),
        recvs_(post_recvs(requests_, responses_.queues())) {
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
    if (options.store.small_keys) qps_.emplace(client_qps(setup));
    server_.recvs = recvs_;
    server_.clients = clients_;
    server_.store = &store_;
    server_.second_line = second_line_of(MicaStore::item_bytes(item_bytes(setup.operation.payload)));
    server_.value = setup.operation.payload;
    server_.inline_bytes = setup.operation.inline_limit;
    server_.tags = tag_of(setup.thread, 0);
    server_.prefetch = options.store.prefetch != Prefetching::off;
    server_.qps = qps_ ? &*qps_ : nullptr;
    server_.workload = &workload_;
    server_.waiting.resize(recvs_.size() * setup.operation.rx_depth);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    server_loop(node, server_, control, tally, [](N& by, Server& s, RunEnd& end) { return serve(by, s, end); });
  }

  const MicaStore* cache() const override { return &store_; }
  const CacheServerCounts& window_counts() const override { return server_.counts; }
  std::uint64_t puts_executed() const override { return server_.puts; }

 private:
  static ResponseBodies bodies(const ThreadSetup& setup) {
    const std::uint32_t bytes = item_bytes(setup.operation.payload);
    return {.bytes = bytes, .inlined = bytes <= setup.operation.inline_limit};
  }

  StoreWorkload workload_;
  MicaStore store_;
  RecvRings requests_;
  std::vector<RecvLane> recvs_;
  std::optional<QpIndex> qps_;
  std::vector<Client> clients_;
};

}  // namespace

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const CachedOptions& options) {
  return std::make_unique<ClientEnd>(setup, options);
}

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const CachedOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::cached
