#include "systems/herd/herd.hpp"

#include <vector>

#include "common/error.hpp"
#include "common/record.hpp"
#include "pcie_model/predict.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/model.hpp"

namespace verbscope::herd {

namespace {

// A request of `bytes` bytes; by WRITE it ends where its slot ends.
Prediction predict_request(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                           std::uint64_t bytes) {
  if (options.store.requests_by_send) return predict_request_datagram(cluster, op, ports, bytes);
  VerbShape shape = verb_shape(op, ports);
  shape.payload = Bytes(bytes);
  shape.inlined = bytes <= options.request_inline;
  shape.max_inline_cap = Bytes(options.request_inline);
  const SlotLayout layout{.request_bytes = put_bytes(op.payload)};
  shape.payload_offset = Bytes(layout.slot_bytes() - bytes);
  return predict_responder(cluster, shape);
}

}  // namespace

Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const HerdOptions& options,
                          const Json& result) {
  const StoreMix mix = store_mix(options.store, result);
  std::vector<PredictedPart> parts =
      predict_responses(cluster, op, ports, {{op.payload, mix.gets}, {kStatusBytes, mix.misses + mix.puts}},
                        result.value("answers_per_post", Json()));
  const auto add = [&parts](const Prediction& prediction, double per_op) {
    if (per_op > 0) parts.push_back({prediction, per_op});
  };
  const bool echo = options.store.accesses.has_value();  // each request has a value, as that of a PUT
  if (!options.self_fed) {
    add(predict_request(cluster, op, ports, options, echo ? put_bytes(op.payload) : kGetBytes), mix.gets + mix.misses);
    add(predict_request(cluster, op, ports, options, put_bytes(op.payload)), mix.puts);
  }
  return predict_together(echo ? "HERD echo" : "HERD server", parts);
}

}  // namespace verbscope::herd

namespace verbscope {

namespace {

constexpr std::uint32_t kFedClients = 16;  // whose slots a server without clients polls
// The memory that a thread of an echo reads: far more than a core's share of the cache. In a simulation an access takes
// the same time in any memory.
constexpr std::uint64_t kEchoBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kSimulatedEchoBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kHerdSteps = 2;  // of the pipeline: bucket, item

class HerdStore final : public Store {
 public:
  using Store::Store;

  void adjust(Options& common) override {
    StoreOptions& options = options_;
    const OptionTable& table = table_;
    const bool self_fed = common.fabric == "null";
    check_own(options, table);
    check_depth(common, options);
    const Transport transport = self_fed || options.requests_by_send ? Transport::ud : Transport::uc;
    if (table.given("--connection") && common.connection != transport) {
      fail_usage("--connection {}: --store herd sends these requests over {}", to_string(common.connection),
                 to_string(transport));
    }
    if (self_fed && options.requests_by_send) {
      fail_usage("--requests send: the null device delivers no messages; use --requests write");
    }
    if (self_fed && table.given("--clients")) {
      fail_usage("--clients: the null device has none; --client_threads sets how many clients' slots are polled");
    }
    herd_.request_inline = settle_inlining(common, table);
    common.connection = transport;
    if (self_fed) common.client_threads = common.client_threads.value_or(kFedClients);
    settle_clients(common);
    if (common.threads >= kMaxTagged) {
      fail_usage("--threads {}: a response tag has room for at most {} threads", common.threads, kMaxTagged - 1);
    }
    const std::uint32_t client_threads = common.clients.value_or(1) * common.client_threads.value_or(1);
    if (options.requests_by_send && client_threads > kMaxTagged) {
      fail_usage("--clients {}, {} client threads: a request tag has room for at most {} client threads",
                 common.clients.value_or(1), client_threads, kMaxTagged);
    }
    herd_.store = options;
    herd_.echo_bytes = is_simulated(common.fabric) ? kSimulatedEchoBytes : kEchoBytes;
    herd_.self_fed = self_fed;
    threads_ = common.threads;
    if (self_fed) fed_clients_ = *common.client_threads;
    retry_given_ = table.given("--retry_after");
  }

  Plan draft() const override {
    if (herd_.self_fed) return {.operation = {.verb = Verb::send, .label = "responses"}};
    const bool send = herd_.store.requests_by_send;
    return {.operation = {.verb = send ? Verb::send : Verb::write,
                          .driver = Side::client,
                          .counted = Side::client,
                          .requests_per_client_thread = send ? herd_.store.window : 0,
                          .label = herd_.store.accesses ? "echoes" : "GETs and PUTs"},
            .topology = {.client_qps = ClientQps{.connected = !send, .datagram = true}, .clients_may_leave = true}};
  }

  std::optional<OperationCount> operation_count() const override {
    if (retry_given_) return std::nullopt;  // a request that is resent early is answered twice
    return OperationCount{Side::client, "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side side) const override {
    if (herd_.self_fed) return datagram_needs(op, side);
    if (side == Side::server) return {};
    return {.send_depth = op.tx_depth, .inline_bytes = herd_.request_inline, .completions = op.tx_depth};
  }

  QueueNeeds datagram_needs(const Operation& op, Side side) const override {
    const bool send = herd_.store.requests_by_send;
    const bool server = side == Side::server;
    const std::uint32_t recvs = server ? send ? op.rx_depth : 1 : response_recvs(herd_.store.window);
    return {.send_depth = server || send ? op.tx_depth : 1,
            .recv_depth = recvs,
            .inline_bytes = server ? op.inline_limit
                            : send ? herd_.request_inline
                                   : 0,
            .completions = op.tx_depth + recvs};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    if (side == Side::client || herd_.store.requests_by_send) return {};
    const std::uint32_t clients = herd_.self_fed ? fed_clients_ : qps;
    return {.bytes = herd::slot_layout(herd_, threads_, clients, op.payload).bytes()};
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? herd::make_client(setup, herd_) : herd::make_server(setup, herd_);
  }

  Json server_results(const std::vector<const Workload*>& threads) const override { return cache_results(threads); }
  std::string check(const Json& result) const override { return check_cache(result); }
  std::string store_report(const Json& result) const override { return cache_text(result); }

  Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports,
                            const Json& result) const override {
    return herd::predict_server(cluster, op, ports, herd_, result);
  }

 private:
  void check_own(StoreOptions& options, const OptionTable& table);
  void check_depth(const Options& common, const StoreOptions& options);
  void check_echo(StoreOptions& options, const OptionTable& table);

  herd::HerdOptions herd_;
  bool retry_given_ = false;
  std::uint32_t threads_ = 1;
  std::uint32_t fed_clients_ = 0;
};

// Rejects options that exclude each other, and resolves --prefetch.
void HerdStore::check_own(StoreOptions& options, const OptionTable& table) {
  if (options.emulate) fail_usage("--emulate: only for --store pilaf, farm and farm_var");
  if (options.accesses) check_echo(options, table);
  if (!options.prefetch) {
    options.prefetch = options.batching || options.requests_by_send ? Prefetching::batch : Prefetching::pipeline;
  }
  if (options.prefetch == Prefetching::pipeline && options.batching) {
    fail_usage("--prefetch pipeline: it answers one request at a time; --batching needs --prefetch off or batch");
  }
  if (options.prefetch == Prefetching::pipeline && options.requests_by_send) {
    fail_usage(
        "--prefetch pipeline: it keeps requests for later passes; --requests send needs --prefetch off or batch");
  }
  check_cache_options(options, table);
}

// Completions are taken when a send queue is half used. The other half must have room for one request more than the
// pipeline holds, or the pipeline would never advance.
void HerdStore::check_depth(const Options& common, const StoreOptions& options) {
  if (options.prefetch != Prefetching::pipeline) return;
  const std::uint32_t steps = options.accesses.value_or(kHerdSteps);
  const std::uint32_t round = common.cq_mod.value_or(2);  // what is signaled by default divides what is even
  if (common.tx_depth / round * round <= 2 * steps) {
    fail_usage(
        "--tx_depth {}: with {} requests in the pipeline it must be above {}, rounded down to a multiple of --cq_mod",
        common.tx_depth, steps, 2 * steps);
  }
}

// An echo has no store, and all its requests are of one kind.
void HerdStore::check_echo(StoreOptions& options, const OptionTable& table) {
  for (const char* key : {"--put_percent", "--buckets", "--log"}) {
    if (table.given(key)) fail_usage("{}: with --accesses there is no store, because each request is echoed", key);
  }
  if (*options.accesses == 0) {
    if (options.prefetch.value_or(Prefetching::off) != Prefetching::off) {
      fail_usage("--prefetch: --accesses 0 reads nothing, so there is nothing to prefetch");
    }
    options.prefetch = Prefetching::off;
  }
  options.put_percent = 0;
}

}  // namespace

std::unique_ptr<Store> make_herd_store(StoreOptions& options, const OptionTable& table) {
  return std::make_unique<HerdStore>(options, table);
}

}  // namespace verbscope
