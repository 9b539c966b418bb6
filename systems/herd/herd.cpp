#include "systems/herd/herd.hpp"

#include <algorithm>
#include <bit>

#include "common/environment.hpp"
#include "common/error.hpp"
#include "microbench/loop/answer_list.hpp"
#include "microbench/run/console.hpp"
#include "systems/answers/ports.hpp"
#include "systems/herd/ends.hpp"
#include "systems/herd/model.hpp"

namespace verbscope {

namespace {

// The machines and threads of clients that SIGCOMM 2014, section 5.1, measures with: 51 threads.
constexpr std::uint32_t kPaperMachines = 17;
constexpr std::uint32_t kPaperThreads = 3;
constexpr std::uint32_t kClientsAlone = 16;     // whose slots a server without clients looks at
constexpr std::uint32_t kRequestInline = 256;   // bytes, as section 5.3 inlines requests
constexpr std::uint32_t kResponseInline = 143;  // bytes: longer responses are read by DMA there, on Apt
// The memory that a thread of an echo reads in: far more than a core's share of its cache. A simulated access takes as
// long in any memory.
constexpr std::uint64_t kEchoBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kSimulatedEchoBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kHerdSteps = 2;  // of the pipeline: bucket, item
constexpr std::uint64_t kMostBuckets = std::uint64_t{1} << 32;

void add(lookups::MicaCounts& sum, const lookups::MicaCounts& one) {
  for (const auto count : {&lookups::MicaCounts::no_slot, &lookups::MicaCounts::other_key,
                           &lookups::MicaCounts::log_lost, &lookups::MicaCounts::index_evictions,
                           &lookups::MicaCounts::tag_evictions, &lookups::MicaCounts::log_overwrites}) {
    sum.*count += one.*count;
  }
}

class HerdStore final : public Store {
 public:
  void adjust(Options& common, StoreOptions& options, const OptionTable& table) override {
    const bool alone = common.fabric == "null";
    check_own(options, table);
    check_depth(common, options);
    const Transport transport = alone || options.requests_by_send ? Transport::ud : Transport::uc;
    if (table.given("--connection") && common.connection != transport) {
      fail_usage("--connection {}: requests of --store herd go by {}", to_string(common.connection),
                 to_string(transport));
    }
    if (alone && options.requests_by_send) {
      fail_usage("--requests send: on the null device no message arrives");
    }
    if (alone && table.given("--clients")) {
      fail_usage("--clients: on the null device there are none; --client_threads says how many slots are looked at");
    }
    if (!table.given("--inline_size")) common.inline_size = kResponseInline;
    herd_.request_inline = common.inline_size == 0 ? 0 : std::max(common.inline_size, kRequestInline);
    common.connection = transport;
    if (alone) common.client_threads = common.client_threads.value_or(kClientsAlone);
    if (is_simulated(common.fabric)) {
      common.clients = common.clients.value_or(kPaperMachines);
      common.client_threads = common.client_threads.value_or(kPaperThreads);
    }
    if (common.threads >= herd::kMostTagged) {
      fail_usage("--threads {}: a response names one of at most {}", common.threads, herd::kMostTagged - 1);
    }
    herd_.store = options;
    herd_.echo_bytes = is_simulated(common.fabric) ? kSimulatedEchoBytes : kEchoBytes;
    herd_.alone = alone;
    threads_ = common.threads;
    if (alone) alone_clients_ = *common.client_threads;
    retry_given_ = table.given("--retry_after");
  }

  Traffic traffic() const override {
    if (herd_.alone) return {.verb = Verb::send, .label = "responses"};
    const bool send = herd_.store.requests_by_send;
    return {.verb = send ? Verb::send : Verb::write,
            .driver = Side::client,
            .counted = Side::client,
            .label = herd_.store.accesses ? "echoes" : "GETs and PUTs",
            .client_qps = ClientQps{.connected = !send, .datagram = true},
            .clients_may_leave = true};
  }

  std::optional<OperationCount> operation_count() const override {
    if (retry_given_) return std::nullopt;  // who asks again early is answered twice
    return OperationCount{Side::client, "messages_received"};
  }

  QueueNeeds needs(const Operation& op, Side side) const override {
    if (herd_.alone) return datagram_needs(op, side);
    if (side == Side::server) return {};
    return {.send_depth = op.tx_depth, .inline_bytes = herd_.request_inline, .completions = op.tx_depth};
  }

  QueueNeeds datagram_needs(const Operation& op, Side side) const override {
    const bool send = herd_.store.requests_by_send;
    const bool server = side == Side::server;
    const std::uint32_t recvs = server ? send ? op.rx_depth : 1 : answer_recvs(herd_.store.window);
    return {.send_depth = server || send ? op.tx_depth : 1,
            .recv_depth = recvs,
            .inline_bytes = server ? op.inline_limit
                            : send ? herd_.request_inline
                                   : 0,
            .completions = op.tx_depth + recvs};
  }

  RegionNeeds region(const Operation& op, Side side, std::uint32_t qps) const override {
    if (side == Side::client || herd_.store.requests_by_send) return {};
    const std::uint32_t clients = herd_.alone ? alone_clients_ : qps;
    return {.bytes = herd::request_region(herd_, threads_, clients, op.payload).bytes()};
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::client ? herd::make_client(setup, herd_) : herd::make_server(setup, herd_);
  }

  Json server_results(const std::vector<const Workload*>& threads) const override;
  std::string judge(const Json& result) const override;
  std::string report(const Json& result) const override;

  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const override {
    return herd::predict_server(cluster, op, ports, herd_, result);
  }

 private:
  void check_own(StoreOptions& options, const OptionTable& table);
  void check_depth(const Options& common, const StoreOptions& options);
  void check_echo(StoreOptions& options, const OptionTable& table);

  herd::HerdOptions herd_;
  bool retry_given_ = false;
  std::uint32_t threads_ = 1;
  std::uint32_t alone_clients_ = 0;
};

// Refuses what does not go together, and settles how memory is hidden.
void HerdStore::check_own(StoreOptions& options, const OptionTable& table) {
  if (options.emulate) fail_usage("--emulate: --store herd has its cache");
  if (options.accesses) check_echo(options, table);
  if (!options.prefetch) {
    options.prefetch = options.batching || options.requests_by_send ? Prefetching::batch : Prefetching::pipeline;
  }
  if (options.prefetch == Prefetching::pipeline && options.batching) {
    fail_usage("--prefetch pipeline: it ends one request at a time; --batching goes with off or batch");
  }
  if (options.prefetch == Prefetching::pipeline && options.requests_by_send) {
    fail_usage("--prefetch pipeline: it holds requests beyond a pass; --requests send goes with off or batch");
  }
  if (!options.batching && options.prefetch != Prefetching::batch && table.given("--max_batch")) {
    fail_usage("--max_batch {}: requests are ended one by one without --batching or --prefetch batch",
               options.max_batch);
  }
  if (options.buckets && (!std::has_single_bit(*options.buckets) || *options.buckets > kMostBuckets)) {
    fail_usage("--buckets {}: a power of two up to 2^32", *options.buckets);
  }
  if (options.log && !std::has_single_bit(*options.log)) fail_usage("--log {}: a power of two", *options.log);
}

// Completions are looked at when a send queue is half used: the other half must have room for a request beside those in
// the pipeline, or nothing would push them.
void HerdStore::check_depth(const Options& common, const StoreOptions& options) {
  if (options.prefetch != Prefetching::pipeline) return;
  const std::uint32_t steps = options.accesses.value_or(kHerdSteps);
  const std::uint32_t round = common.cq_mod.value_or(2);  // what is signaled by default divides what is even
  if (common.tx_depth / round * round <= 2 * steps) {
    fail_usage("--tx_depth {}: with {} requests in the pipeline more than {}, in whole rounds of --cq_mod",
               common.tx_depth, steps, 2 * steps);
  }
}

// An echo has no store, and its requests are all alike.
void HerdStore::check_echo(StoreOptions& options, const OptionTable& table) {
  for (const char* key : {"--put_percent", "--buckets", "--log"}) {
    if (table.given(key)) fail_usage("{}: with --accesses there is no store, each request is echoed", key);
  }
  if (*options.accesses == 0) {
    if (options.prefetch.value_or(Prefetching::off) != Prefetching::off) {
      fail_usage("--prefetch: --accesses 0 reads nothing that could be prefetched");
    }
    options.prefetch = Prefetching::off;
  }
  options.put_percent = 0;
}

Json HerdStore::server_results(const std::vector<const Workload*>& threads) const {
  lookups::MicaCounts cache;
  BatchCounts batches;
  herd::ServerCounts sum;
  std::uint64_t puts = 0;
  Json served = Json::array();
  for (const Workload* thread : threads) {
    const auto* account = dynamic_cast<const herd::ServerAccount*>(thread);
    if (account == nullptr) continue;
    const herd::Server& server = account->server();
    if (server.store != nullptr) add(cache, server.store->counts());
    const WorkerCounts& passes = server.counts.passes;
    batches.merge(passes.batches);
    sum.passes.passes += passes.passes;
    sum.passes.empty_passes += passes.empty_passes;
    sum.passes.full_passes += passes.full_passes;
    sum.passes.blocked += passes.blocked;
    sum.served += server.counts.served;
    sum.looks += server.counts.looks;
    sum.no_ops += server.counts.no_ops;
    puts += server.puts;
    served.push_back(server.counts.served);
  }
  if (served.empty()) return Json::object();
  const auto share = [](std::uint64_t part, std::uint64_t of) {
    return of == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(of));
  };
  Json json{{"answers_per_post", batches.to_json()},
            {"workers",
             {{"served", served},
              {"idle_share", share(sum.passes.empty_passes, sum.passes.passes)},
              {"full_share", share(sum.passes.full_passes, sum.passes.passes)},
              {"blocked", sum.passes.blocked},
              {"looks_per_request", share(sum.looks, sum.served)},
              {"no_ops", sum.no_ops}}}};
  if (herd_.store.accesses) return json;
  json["puts_executed"] = puts;
  json["failed_gets"] = {{"no_slot", cache.no_slot}, {"other_key", cache.other_key}, {"log_lost", cache.log_lost}};
  json["evictions"] = {
      {"index", cache.index_evictions}, {"same_tag", cache.tag_evictions}, {"log", cache.log_overwrites}};
  return json;
}

// A GET of a key, each of which is there when the run begins, finds nothing only where the cache has lost it.
std::string HerdStore::judge(const Json& result) const {
  if (herd_.store.accesses) return "";
  const auto count = [&result](const char* of, const char* key) { return result.at(of).at(key).get<std::uint64_t>(); };
  const std::uint64_t lost_by_log = count("evictions", "log");
  const std::uint64_t lost = count("evictions", "index") + count("evictions", "same_tag") + lost_by_log;
  const std::uint64_t misses = result.at("misses").get<std::uint64_t>();
  if (misses > 0 && lost == 0) return fmt::format("{} GETs found nothing, and nothing was evicted", misses);
  if (count("failed_gets", "log_lost") > 0 && lost_by_log == 0) {
    return fmt::format("{} GETs found an item lost by the log, which has lost none", count("failed_gets", "log_lost"));
  }
  return "";
}

std::string HerdStore::report(const Json& result) const {
  if (herd_.store.accesses) return batches_line(result);
  if (!result.contains("evictions")) return "";
  const auto count = [&result](const char* of, const char* key) { return result.at(of).at(key).get<std::uint64_t>(); };
  std::string text = batches_line(result);
  text += fmt::format(
      "  failed GETs: {} no slot, {} another key, {} lost by the log; evictions: {} by a full bucket, {} by an equal "
      "tag, {} by the log\n",
      count("failed_gets", "no_slot"), count("failed_gets", "other_key"), count("failed_gets", "log_lost"),
      count("evictions", "index"), count("evictions", "same_tag"), count("evictions", "log"));
  return text;
}

}  // namespace

std::unique_ptr<Store> make_herd_store() {
  return std::make_unique<HerdStore>();
}

}  // namespace verbscope
