#include <optional>

#include "systems/herd/alone.hpp"
#include "systems/herd/ends.hpp"
#include "systems/rpc/peers.hpp"
#include "systems/rpc/server.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/values.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::herd {

namespace {

constexpr std::size_t kFeedRequests = 4096;  // of a thread without clients, over and over

class ServerEnd final : public RequestServerEnd<ServerEnd, Server>, public CacheAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const HerdOptions& options)
      : RequestServerEnd(setup, {.bytes = setup.operation.payload, .inlined = setup.operation.inlined},
                         options.store.batching, options.store.max_batch),
        alone_(options.alone),
        goal_(setup.goal) {
    const RequestRegion places =
        request_region(options, setup.topology.threads, setup.topology.all_client_threads(), setup.operation.payload);
    add_clients(setup, places);
    server_.clients = clients_;
    server_.second_line = second_line_of(MicaStore::item_bytes(setup.operation.payload));
    server_.inline_bytes = setup.operation.inline_limit;
    server_.thread = setup.thread;
    server_.tags = tag_of(setup.thread, 0);
    server_.policy = {.prefetch = options.store.prefetch.value(),
                      .batching = options.store.batching,
                      .echo = options.store.accesses.has_value()};
    server_.policy.echo ? prepare_echo(setup, options) : fill_store(setup, options);
    server_.places = places;
    if (options.store.requests_by_send) {
      receive_requests(setup, places);
    } else {
      server_.place_slots(setup.region.bytes.data(), places);
    }
    if (alone_) prepare_feed(setup, options, places);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    dispatch(server_.policy, [&]<ServerPolicy kPolicy>() {
      if (alone_) {
        alone_loop<kPolicy>(node, server_, feed_, goal_, control, tally);
      } else {
        watch(node, server_);
        server_loop(node, server_, control, tally,
                    [](N& by, Server& s, RunEnd& end) { return pass<kPolicy>(by, s, end); });
      }
    });
  }

  bool active() const override { return alone_; }
  bool counts() const override { return alone_; }
  std::uint64_t received() const override { return alone_ ? 0 : server_.served; }
  std::uint64_t wrong() const override { return server_.strange; }
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
    server_.prepare_echo(rule, chain_ ? &*chain_ : nullptr, setup.operation.payload);
  }

  void add_clients(const ThreadSetup& setup, const RequestRegion& places) {
    if (alone_) {  // one address for all
      const LanePeer& peer = setup.lanes.front().peers.front();
      clients_.assign(places.clients,
                      {{.to = {peer.qp.ah, peer.qp.qpn, peer.qp.qkey}, .port = &responses_.ports().front()}});
      return;
    }
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
  }

  void receive_requests(const ThreadSetup& setup, const RequestRegion& places) {
    requests_.emplace(setup, setup.lanes.size(), request_recvs(setup, put_bytes(places.value)));
    recvs_ = post_recvs(*requests_, responses_.queues());
    server_.recvs = recvs_;
    server_.waiting.resize(recvs_.size() * setup.operation.rx_depth);
  }

  // Requests as one client makes them, those of this thread's keys.
  void prepare_feed(const ThreadSetup& setup, const HerdOptions& options, const RequestRegion& places) {
    const StoreWorkload workload(options.store, setup.operation.seed);
    const StoreValues values(setup.operation.seed, places.value);
    feed_bytes_.resize(kFeedRequests * places.slot_bytes());
    for (std::uint64_t number = 0; feed_lengths_.size() < kFeedRequests; ++number) {
      const StoreOp op = workload.op(0, number);
      const KeyHash key = workload.hash(op.key);
      if (owner_of(key, places.servers) != setup.thread) continue;
      std::byte* const end = feed_bytes_.data() + (feed_lengths_.size() + 1) * places.slot_bytes();
      const auto fill = [&](std::byte* value) { values.fill(value, op.key, StoreVersion(0, number)); };
      std::byte* const begin =
          op.put || server_.policy.echo ? write_put(end, key, places.value, fill) : write_get(end, key);
      feed_lengths_.push_back(static_cast<std::uint32_t>(end - begin));
    }
    feed_ = {.last = feed_bytes_.data() + places.slot_bytes(), .stride = places.slot_bytes(), .bytes = feed_lengths_};
  }

  bool alone_;
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

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const HerdOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::herd
