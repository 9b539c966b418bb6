#include <optional>

#include "systems/herd/client.hpp"
#include "systems/herd/herd.hpp"
#include "systems/herd/server.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/client_end.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::herd {

namespace {

class ClientEnd final : public StoreClientEnd<Asker, StoreClientState> {
 public:
  ClientEnd(const ThreadSetup& setup, const HerdOptions& options)
      : StoreClientEnd(setup, options.store),
        by_send_(options.store.requests_by_send),
        layout_(
            slot_layout(options, setup.topology.threads, setup.topology.all_client_threads(), setup.operation.payload)),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.store.window), setup.operation.payload), recv_lane()),
        requests_(setup, layout_, options.request_inline, by_send_),
        open_(std::size_t{layout_.servers} * layout_.window),
        lanes_(lanes_over<ServerLane>(open_, layout_.window)) {
    requests_.place_bytes(std::span(open_));
    if (by_send_) {
      address_servers(setup);
    } else {
      requests_.place_lanes(std::span(lanes_), setup.lanes[0].peers.front().region);
    }
    asker_.lanes = lanes_;
    asker_.writer = &requests_.writer();
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[recv_lane()].qp, recv_lane()), .queue = recv_lane()};
    asker_.value = setup.operation.payload;
    asker_.by_send = by_send_;
    if (options.store.accesses) asker_.echo = echo_rule(options, setup.operation.seed);
  }

 private:
  // Responses arrive on the UD QP.
  std::uint32_t recv_lane() const { return by_send_ ? 0 : 1; }

  void address_servers(const ThreadSetup& setup) {
    for (std::uint32_t t = 0; t < layout_.servers; ++t) {
      lanes_[t].to = asked_qp(setup, setup.lanes[0].peers, t).address();
    }
  }

  bool by_send_;
  SlotLayout layout_;
  RecvRings recvs_;
  WrittenRequests requests_;
  std::vector<Open> open_;
  std::vector<ServerLane> lanes_;
};

constexpr std::size_t kFeedRequests = 4096;  // of a thread without clients, over and over

class ServerEnd final : public RequestServerEnd<ServerEnd, Server>, public CacheAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const HerdOptions& options)
      : RequestServerEnd(setup, {.bytes = setup.operation.payload, .inlined = setup.operation.inlined},
                         options.store.batching, options.store.max_batch),
        self_fed_(options.self_fed),
        goal_(setup.goal) {
    const SlotLayout layout =
        slot_layout(options, setup.topology.threads, setup.topology.all_client_threads(), setup.operation.payload);
    add_clients(setup, layout);
    server_.clients = clients_;
    server_.second_line = second_line_of(MicaStore::item_bytes(setup.operation.payload));
    server_.inline_bytes = setup.operation.inline_limit;
    server_.thread = setup.thread;
    server_.tags = tag_of(setup.thread, 0);
    server_.policy = {.prefetch = options.store.prefetch.value(),
                      .batching = options.store.batching,
                      .echo = options.store.accesses.has_value()};
    server_.policy.echo ? prepare_echo(setup, options) : fill_store(setup, options);
    server_.value = setup.operation.payload;
    if (options.store.requests_by_send) {
      receive_requests(setup);
    } else {
      server_.place_slots(setup.region.bytes.data(), layout);
    }
    if (self_fed_) prepare_feed(setup, options, layout);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    dispatch(server_.policy, [&]<ServerPolicy kPolicy>() {
      if (self_fed_) {
        serve_self_fed<kPolicy>(node, server_, feed_, goal_, control, tally);
      } else {
        server_.watch(node);
        server_loop(node, server_, control, tally,
                    [](N& by, Server& s, RunEnd& end) { return pass<kPolicy>(by, s, end); });
      }
    });
  }

  bool active() const override { return self_fed_; }
  bool counts() const override { return self_fed_; }
  std::uint64_t received() const override { return self_fed_ ? 0 : server_.served; }
  const MicaStore* cache() const override { return server_.store; }
  const CacheServerCounts& window_counts() const override { return server_.counts; }
  std::uint64_t puts_executed() const override { return server_.puts; }

 private:
  void fill_store(const ThreadSetup& setup, const HerdOptions& options) {
    store_.emplace(filled_cache(setup, options.store));
    server_.store = &*store_;
  }

  void prepare_echo(const ThreadSetup& setup, const HerdOptions& options) {
    const EchoRule rule = echo_rule(options, setup.operation.seed);
    if (rule.accesses > 0) chain_.emplace(Bytes(options.echo_bytes), rule.accesses, rule.seed, PageSize::transparent);
    server_.prepare_echo(rule, chain_ ? &*chain_ : nullptr);
  }

  void add_clients(const ThreadSetup& setup, const SlotLayout& layout) {
    if (self_fed_) {  // one address for all
      const LanePeer& peer = setup.lanes.front().peers.front();
      clients_.assign(layout.clients, {{.to = peer.qp.address(), .port = &responses_.ports().front()}});
      return;
    }
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
  }

  void receive_requests(const ThreadSetup& setup) {
    requests_.emplace(setup, setup.lanes.size(), request_recvs(setup, put_bytes(setup.operation.payload)));
    recvs_ = post_recvs(*requests_, responses_.queues());
    server_.recvs = recvs_;
    server_.waiting.resize(recvs_.size() * setup.operation.rx_depth);
  }

  // Requests as one client makes them, those of this thread's keys.
  void prepare_feed(const ThreadSetup& setup, const HerdOptions& options, const SlotLayout& layout) {
    const std::uint32_t value = setup.operation.payload;
    const StoreWorkload workload(options.store, setup.operation.seed);
    const StoreValues values(setup.operation.seed, value);
    feed_bytes_.resize(kFeedRequests * layout.slot_bytes());
    for (std::uint64_t number = 0; feed_lengths_.size() < kFeedRequests; ++number) {
      const StoreOp op = workload.op(0, number);
      const KeyHash key = workload.hash(op.key);
      if (owner_of(key, layout.servers) != setup.thread) continue;
      std::byte* const end = feed_bytes_.data() + (feed_lengths_.size() + 1) * layout.slot_bytes();
      const auto fill = [&](std::byte* bytes) { values.fill(bytes, op.key, StoreVersion(0, number)); };
      std::byte* const begin = op.put || server_.policy.echo ? write_put(end, key, value, fill) : write_get(end, key);
      feed_lengths_.push_back(static_cast<std::uint32_t>(end - begin));
    }
    feed_ = {.last = feed_bytes_.data() + layout.slot_bytes(), .stride = layout.slot_bytes(), .bytes = feed_lengths_};
  }

  bool self_fed_;
  std::uint64_t goal_;
  std::optional<MicaStore> store_;
  std::optional<lookups::Chain> chain_;  // that an echo reads in
  std::vector<Client> clients_;
  std::optional<RecvRings> requests_;
  std::vector<RecvLane> recvs_;
  std::vector<std::byte> feed_bytes_;
  std::vector<std::uint32_t> feed_lengths_;
  Feed feed_;
};

}  // namespace

SlotLayout slot_layout(const HerdOptions& options, std::uint32_t servers, std::uint32_t clients, std::uint32_t value) {
  return {.servers = servers, .clients = clients, .window = options.store.window, .request_bytes = put_bytes(value)};
}

EchoRule echo_rule(const HerdOptions& options, std::uint64_t seed) {
  return {.seed = seed,
          .places = options.echo_bytes / sizeof(lookups::Chain::Result),
          .accesses = options.store.accesses.value()};
}

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const HerdOptions& options) {
  return std::make_unique<ClientEnd>(setup, options);
}

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const HerdOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::herd
