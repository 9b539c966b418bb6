#include <optional>

#include "systems/cached/ends.hpp"
#include "systems/cached/server.hpp"
#include "systems/rpc/peers.hpp"

namespace verbscope::cached {

namespace {

class ServerEnd final : public RequestServerEnd<ServerEnd, Server>, public CacheAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const CachedOptions& options)
      : RequestServerEnd(setup, bodies(setup), options.store.batching, options.store.max_batch),
        workload_(options.store, setup.operation.seed),
        store_(filled_cache(setup, options.store, kVersionBytes)),
        requests_(setup, setup.lanes.size(), request_recvs(setup, put_bytes(setup.operation.payload))),
        recvs_(post_recvs(requests_, responses_.queues())) {
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
    if (options.store.small_keys) book_.emplace(client_qps(setup));
    server_.recvs = recvs_;
    server_.clients = clients_;
    server_.store = &store_;
    server_.second_line = second_line_of(MicaStore::item_bytes(item_bytes(setup.operation.payload)));
    server_.value = setup.operation.payload;
    server_.inline_bytes = setup.operation.inline_limit;
    server_.tags = tag_of(setup.thread, 0);
    server_.prefetch = options.store.prefetch != Prefetching::off;
    server_.book = book_ ? &*book_ : nullptr;
    server_.workload = &workload_;
    server_.waiting.resize(recvs_.size() * setup.operation.rx_depth);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    server_loop(node, server_, control, tally, [](N& by, Server& s, RunEnd& end) { return serve(by, s, end); });
  }

  std::uint64_t wrong() const override { return server_.strange; }
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
  std::optional<QpBook> book_;
  std::vector<Client> clients_;
};

}  // namespace

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const CachedOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::cached
