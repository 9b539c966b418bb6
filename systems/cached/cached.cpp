#include "systems/cached/cached.hpp"

#include <algorithm>
#include <vector>

#include "common/error.hpp"
#include "common/text.hpp"
#include "lookups/mica_store.hpp"
#include "pcie_model/predict.hpp"
#include "systems/cached/client.hpp"
#include "systems/requests/peers.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/model.hpp"
#include "systems/store/store.hpp"

namespace verbscope::cached {

namespace {

// Shares of all GETs.
struct GetShares {
  double known = 0, confirmed = 0;
};

GetShares get_shares(const CachedOptions& options, const Json& result) {
  const double gets = result.contains("clients") ? sum_over_clients(result, "window_gets") : 0;
  if (gets > 0) {
    return {.known = sum_over_clients(result, "window_known") / gets,
            .confirmed = sum_over_clients(result, "window_confirmed") / gets};
  }
  const double cached = options.store.cached_share / 100.0;
  return {.known = cached,
          .confirmed = cached * confirmed_share(options.store.put_percent / 100.0, options.client_threads)};
}

}  // namespace

double confirmed_share(double put_share, double clients) {
  return 1 / (1 + put_share * (clients - 1));
}

Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports, const CachedOptions& options,
                          const Json& result) {
  const StoreMix mix = store_mix(options.store, result);
  const double gets = mix.gets + mix.misses;
  const GetShares shares = get_shares(options, result);
  std::vector<PredictedPart> parts = predict_responses(cluster, op, ports,
                                                       {{item_bytes(op.payload), mix.gets - gets * shares.confirmed},
                                                        {kStatusBytes, mix.misses},
                                                        {0, gets * shares.confirmed + mix.puts}},
                                                       result.value("answers_per_post", Json()));
  const auto add_request = [&](std::uint32_t bytes, double per_op) {
    if (per_op > 0) parts.push_back({predict_request_datagram(cluster, op, ports, bytes), per_op});
  };
  if (options.store.small_keys) {
    add_request(0, gets);
  } else {
    add_request(kGetBytes, gets * (1 - shares.known));
    add_request(kKnownGetBytes, gets * shares.known);
    add_request(put_bytes(op.payload), mix.puts);
  }
  return predict_together("cached server", parts);
}

}  // namespace verbscope::cached

namespace verbscope {

namespace {

constexpr std::uint32_t kMaxValue = lookups::MicaStore::kMaxValue - cached::kVersionBytes;  // bytes

class CachedStore final : public Store {
 public:
  using Store::Store;

  void adjust(Options& common) override {
    StoreOptions& options = options_;
    const OptionTable& table = table_;
    if (common.fabric == "null")
      fail_usage("--fabric null: --store cached needs clients, which the null device does not simulate");
    if (options.emulate) fail_usage("--emulate: only for --store pilaf, farm and farm_var");
    if (table.given("--requests") && !options.requests_by_send) {
      fail_usage("--requests write: --store cached sends requests by SEND; use --requests send");
    }
    if (table.given("--connection") && common.connection != Transport::ud) {
      fail_usage("--connection {}: --store cached sends requests over UD", to_string(common.connection));
    }
    if (common.size.value_or(0) > kMaxValue) {
      fail_usage("--size {}: a value of --store cached has at most {} bytes, because its version is stored with it",
                 *common.size, kMaxValue);
    }
    options.prefetch = options.prefetch.value_or(Prefetching::batch);
    if (options.prefetch == Prefetching::pipeline) {
      fail_usage("--prefetch pipeline: --store cached needs --prefetch off or batch");
    }
    check_cache_options(options, table);
    if (options.small_keys) settle_small_keys(options, table);
    cached_.request_inline = settle_inlining(common, table);
    common.connection = Transport::ud;
    settle_clients(common);
    cached_.client_threads = common.clients.value_or(1) * common.client_threads.value_or(1);
    if (!options.small_keys && std::max(common.threads, cached_.client_threads) > kMaxTagged) {
      fail_usage("--threads {}, {} client threads: a message tag has room for at most {} of each", common.threads,
                 cached_.client_threads, kMaxTagged);
    }
    cached_.store = options;
    retry_given_ = table.given("--retry_after");
  }

  Plan draft() const override {
    return {.operation = {.verb = Verb::send,
                          .driver = Side::client,
                          .counted = Side::client,
                          .requests_per_client_thread = cached_.store.window,
                          .label = "GETs and PUTs"},
            .topology = {.client_qps = ClientQps{.connected = false, .datagram = true}, .clients_may_leave = true}};
  }

  std::optional<OperationCount> operation_count() const override {
    if (retry_given_) return std::nullopt;  // who asks again early is answered twice
    return OperationCount{Side::client, "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side side) const override {
    const bool server = side == Side::server;
    const std::uint32_t recvs = server ? op.rx_depth : response_recvs(cached_.store.window);
    return {.send_depth = op.tx_depth,
            .recv_depth = recvs,
            .inline_bytes = server ? op.inline_limit : cached_.request_inline,
            .completions = op.tx_depth + recvs};
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? cached::make_client(setup, cached_) : cached::make_server(setup, cached_);
  }

  Json server_results(const std::vector<const Workload*>& threads) const override { return cache_results(threads); }
  std::string check(const Json& result) const override { return check_cache(result); }

  Json client_results(const std::vector<const Workload*>& threads) const override {
    cached::GetKinds run, window;
    for (const Workload* thread : threads) {
      const auto* account = dynamic_cast<const cached::CachedAccount*>(thread);
      if (account == nullptr) continue;
      run.confirmed += account->state().run.confirmed;
      window.known += account->state().window.known;
      window.confirmed += account->state().window.confirmed;
    }
    return {{"confirmed", run.confirmed}, {"window_known", window.known}, {"window_confirmed", window.confirmed}};
  }

  void add_results(Json& result) const override {
    const double gets = sum_over_clients(result, "window_gets"), confirmed = sum_over_clients(result, "confirmed");
    result["confirmed_share"] = gets > 0 ? Json(sum_over_clients(result, "window_confirmed") / gets) : Json();
    result["confirmed"] = static_cast<std::uint64_t>(confirmed);
    result["values_sent"] = static_cast<std::uint64_t>(sum_over_clients(result, "values_checked") - confirmed);
  }

  std::string store_report(const Json& result) const override {
    if (!result.contains("confirmed_share")) return "";
    const Json& share = result.at("confirmed_share");
    return fmt::format("  GETs: share {} confirmed in the measured interval; in all {} confirmed, {} values sent\n",
                       share.is_null() ? std::string("-") : with_digits(share.get<double>(), 3),
                       result.at("confirmed").get<std::uint64_t>(), result.at("values_sent").get<std::uint64_t>()) +
           cache_text(result);
  }

  Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports,
                            const Json& result) const override {
    return cached::predict_server(cluster, op, ports, cached_, result);
  }

 private:
  // What goes into an immediate is a key alone.
  static void settle_small_keys(StoreOptions& options, const OptionTable& table) {
    if (options.keys > cached::kMaxSmallKeys) {
      fail_usage("--keys {}: with --small_keys a key has three bytes, so there are at most {} keys", options.keys,
                 cached::kMaxSmallKeys);
    }
    if (table.given("--put_percent") && options.put_percent > 0) {
      fail_usage("--put_percent {}: with --small_keys a request carries no value, so it must be 0",
                 options.put_percent);
    }
    if (table.given("--cached_share") && options.cached_share > 0) {
      fail_usage("--cached_share {}: with --small_keys a request carries no version, so it must be 0",
                 options.cached_share);
    }
    options.put_percent = 0;
    options.cached_share = 0;
  }

  cached::CachedOptions cached_;
  bool retry_given_ = false;
};

}  // namespace

std::unique_ptr<Store> make_cached_store(StoreOptions& options, const OptionTable& table) {
  return std::make_unique<CachedStore>(options, table);
}

}  // namespace verbscope
