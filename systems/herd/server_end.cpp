#include <algorithm>
#include <bit>
#include <optional>

#include "systems/answers/ports.hpp"
#include "systems/herd/alone.hpp"
#include "systems/herd/ends.hpp"
#include "systems/store/values.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::herd {

namespace {

constexpr std::size_t kFeedRequests = 4096;  // of a thread without clients, over and over
constexpr std::uint64_t kKeysOfABucket = 2;  // on average, at most, where nothing else is said
constexpr std::uint64_t kFewestLogBytes = 1 << 16;

// The keys of one thread, about: as many as if the hash dealt them out evenly, and a tenth more.
std::uint64_t keys_of_a_thread(const StoreOptions& options, std::uint32_t threads) {
  return options.keys / threads + options.keys / threads / 10 + 1;
}

// The store of the thread, with the first version of each of its keys.
MicaStore filled_store(const ThreadSetup& setup, const StoreOptions& options) {
  const std::uint32_t threads = setup.topology.threads, value = setup.operation.payload;
  const std::uint64_t keys = keys_of_a_thread(options, threads);
  const std::uint64_t log = std::max(kFewestLogBytes, keys * MicaStore::item_bytes(value) * 5 / 4);
  MicaStore store(options.buckets.value_or(std::bit_ceil((keys + kKeysOfABucket - 1) / kKeysOfABucket)),
                  Bytes(options.log.value_or(std::bit_ceil(log))), PageSize::transparent);
  const StoreWorkload workload(options, setup.operation.seed);
  const StoreValues values(setup.operation.seed, value);
  std::vector<std::byte> bytes(value);
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    const KeyHash hash = workload.hash(key);
    if (owner_of(hash, threads) != setup.thread) continue;
    values.fill(bytes.data(), key, StoreVersion());
    store.put(hash, bytes);
  }
  return store;
}

// RECVs for requests by SEND, a ring on each QP, in lists. A request begins on a line, behind the GRH.
class RequestRecvs {
 public:
  RequestRecvs(const ThreadSetup& setup, const RequestRegion& places)
      : length_(setup.operation.rx_depth / kRecvList * kRecvList),
        stride_(kLine + round_up(put_bytes(places.value), kLine)),
        buffer_(Bytes(setup.lanes.size() * length_ * stride_), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(setup.lanes.size() * length_),
        requests_(segments_.size()) {}

  RecvLane post(ibv_qp* qp, std::uint32_t index) {
    const std::size_t begin = std::size_t{index} * length_;
    for (std::uint32_t j = 0; j < length_; ++j) {
      segments_[begin + j] = {reinterpret_cast<std::uint64_t>(buffer_.data() + (begin + j) * stride_ + kBeforeGrh),
                              static_cast<std::uint32_t>(stride_ - kBeforeGrh), mr_.lkey()};
      requests_[begin + j] = {
          .wr_id = recv_id(index, j), .next = nullptr, .sg_list = &segments_[begin + j], .num_sge = 1};
      if ((j + 1) % kRecvList != 0) requests_[begin + j].next = &requests_[begin + j + 1];
    }
    RecvLane lane{.qp = qp,
                  .ring = &requests_[begin],
                  .length = length_,
                  .list = kRecvList,
                  .payloads = buffer_.data() + begin * stride_ + kBeforeGrh,
                  .stride = stride_};
    for (std::uint32_t j = 0; j < length_; j += kRecvList) check_errno("post RECVs", post_next_recvs(lane));
    return lane;
  }

 private:
  static constexpr std::uint64_t kBeforeGrh = kLine - kGrh.value;

  std::uint32_t length_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> requests_;
};

class ServerEnd final : public WorkloadOn<ServerEnd>, public ServerAccount {
 public:
  ServerEnd(const ThreadSetup& setup, const HerdOptions& options)
      : alone_(options.alone),
        goal_(setup.goal),
        ports_(setup, {.bytes = setup.operation.payload, .inlined = setup.operation.inlined}) {
    const RequestRegion places =
        request_region(options, setup.topology.threads, setup.topology.all_client_threads(), setup.operation.payload);
    add_clients(setup, places);
    server_.cq = setup.cq;
    server_.queues = ports_.queues();
    server_.ports = ports_.ports();
    server_.clients = clients_;
    server_.second_line = second_line_of(MicaStore::item_bytes(setup.operation.payload));
    server_.inline_bytes = setup.operation.inline_limit;
    server_.thread = setup.thread;
    server_.tags = tag_of(setup.thread, 0);
    server_.way = {.prefetch = options.store.prefetch.value(),
                   .batching = options.store.batching,
                   .echo = options.store.accesses.has_value()};
    server_.max_batch = options.store.max_batch;
    server_.way.echo ? prepare_echo(setup, options) : fill_store(setup, options);
    server_.places = places;
    if (options.store.requests_by_send) {
      post_recvs(setup, places);
    } else {
      server_.place_slots(setup.region.bytes.data(), places);
    }
    if (alone_) prepare_feed(setup, options, places);
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    in_way(server_.way, [&]<Way kWay>() {
      if (alone_) {
        alone_loop<kWay>(node, server_, feed_, goal_, control, tally);
      } else {
        server_loop<kWay>(node, server_, control, tally);
      }
    });
  }

  bool active() const override { return alone_; }
  bool counts() const override { return alone_; }
  std::uint64_t sent_to(std::uint32_t node) const override {
    std::uint64_t sum = 0;
    for (const Client& client : clients_) sum += client.node == node ? client.answered : 0;
    return sum;
  }
  std::uint64_t received() const override { return alone_ ? 0 : server_.served; }
  std::uint64_t wrong() const override { return server_.strange; }
  const Server& server() const override { return server_; }

 private:
  void fill_store(const ThreadSetup& setup, const HerdOptions& options) {
    store_.emplace(filled_store(setup, options.store));
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
      clients_.assign(places.clients, {.to = {peer.qp.ah, peer.qp.qpn, peer.qp.qkey}, .port = &ports_.ports().front()});
      return;
    }
    for (const ClientAddress& address : client_addresses(setup)) {
      clients_.push_back({.to = {address.qp.ah, address.qp.qpn, address.qp.qkey},
                          .port = &ports_.ports()[address.port],
                          .node = address.node});
    }
  }

  void post_recvs(const ThreadSetup& setup, const RequestRegion& places) {
    requests_.emplace(setup, places);
    for (const AnswerQueue& queue : ports_.queues()) {
      recvs_.push_back(requests_->post(queue.lane.qp, static_cast<std::uint32_t>(recvs_.size())));
    }
    server_.recvs = recvs_;
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
          op.put || server_.way.echo ? write_put(end, key, places.value, fill) : write_get(end, key);
      feed_lengths_.push_back(static_cast<std::uint32_t>(end - begin));
    }
    feed_ = {.last = feed_bytes_.data() + places.slot_bytes(), .stride = places.slot_bytes(), .bytes = feed_lengths_};
  }

  bool alone_;
  std::uint64_t goal_;
  std::optional<MicaStore> store_;
  std::optional<lookups::Chain> chain_;  // that an echo reads in
  AnswerPorts ports_;
  std::vector<Client> clients_;
  std::optional<RequestRecvs> requests_;
  std::vector<RecvLane> recvs_;
  std::vector<std::byte> feed_bytes_;
  std::vector<std::uint32_t> feed_lengths_;
  Feed feed_;
  Server server_;
};

}  // namespace

std::unique_ptr<Workload> make_server(const ThreadSetup& setup, const HerdOptions& options) {
  return std::make_unique<ServerEnd>(setup, options);
}

}  // namespace verbscope::herd
