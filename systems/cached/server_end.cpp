#include <optional>

#include "systems/answers/ports.hpp"
#include "systems/cached/ends.hpp"
#include "systems/cached/server.hpp"

namespace verbscope::cached {

namespace {

class ServerEnd final : public WorkloadOn<ServerEnd>, public CacheAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const CachedOptions& options)
      : workload_(options.store, setup.operation.seed),
        store_(filled_cache(setup, options.store, kVersionBytes)),
        ports_(setup, bodies(setup)),
        requests_(setup, put_bytes(setup.operation.payload)),
        recvs_(requests_.post(ports_.queues())) {
    std::vector<PeerQp> qps;
    for (const ClientAddress& address : client_addresses(setup)) {
      Client client{.port = &ports_.ports()[address.port], .node = address.node};
      client.to = {address.qp.ah, address.qp.qpn, address.qp.qkey};
      clients_.push_back(client);
      qps.push_back(address.qp);
    }
    if (options.store.small_keys) book_.emplace(qps);
    server_.cq = setup.cq;
    server_.queues = ports_.queues();
    server_.ports = ports_.ports();
    server_.recvs = recvs_;
    server_.clients = clients_;
    server_.store = &store_;
    server_.second_line = second_line_of(MicaStore::item_bytes(item_bytes(setup.operation.payload)));
    server_.value = setup.operation.payload;
    server_.inline_bytes = setup.operation.inline_limit;
    server_.tags = tag_of(setup.thread, 0);
    server_.prefetch = options.store.prefetch != Prefetching::off;
    server_.batching = options.store.batching;
    server_.max_batch = options.store.max_batch;
    server_.book = book_ ? &*book_ : nullptr;
    server_.workload = &workload_;
    server_.waiting.resize(recvs_.size() * setup.operation.rx_depth);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    server_loop(node, server_, control, tally);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t sent_to(std::uint32_t node) const override {
    std::uint64_t sum = 0;
    for (const Client& client : clients_) sum += client.node == node ? client.answered : 0;
    return sum;
  }
  std::uint64_t received() const override { return server_.served; }
  std::uint64_t wrong() const override { return server_.strange; }
  const MicaStore* cache() const override { return &store_; }
  const CacheServerCounts& window_counts() const override { return server_.counts; }
  std::uint64_t puts_executed() const override { return server_.puts; }

 private:
  static AnswerBodies bodies(const ThreadSetup& setup) {
    const std::uint32_t bytes = item_bytes(setup.operation.payload);
    return {.bytes = bytes, .inlined = bytes <= setup.operation.inline_limit};
  }

  StoreWorkload workload_;
  MicaStore store_;
  AnswerPorts ports_;
  MessageRecvs requests_;
  std::vector<RecvLane> recvs_;
  std::optional<QpBook> book_;
  std::vector<Client> clients_;
  Server server_;
};

}  // namespace

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const CachedOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::cached
