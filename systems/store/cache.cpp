#include "systems/store/cache.hpp"

#include <algorithm>
#include <bit>

#include "common/error.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/run/console.hpp"
#include "systems/store/workload.hpp"

namespace verbscope {

namespace {

using lookups::MicaStore;

constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 32;
constexpr std::uint64_t kKeysOfABucket = 2;  // default: largest average
constexpr std::uint64_t kFewestLogBytes = 1 << 16;

// An estimate of the keys of one thread: an even share, and a tenth more.
std::uint64_t keys_of_a_thread(const StoreOptions& options, std::uint32_t threads) {
  return options.keys / threads + options.keys / threads / 10 + 1;
}

void add(lookups::MicaCounts& sum, const lookups::MicaCounts& one) {
  for (const auto count :
       {&lookups::MicaCounts::no_slot, &lookups::MicaCounts::other_key, &lookups::MicaCounts::log_lost,
        &lookups::MicaCounts::index_evictions, &lookups::MicaCounts::tag_evictions,
        &lookups::MicaCounts::log_overwrites, &lookups::MicaCounts::never_lost}) {
    sum.*count += one.*count;
  }
}

}  // namespace

void check_cache_options(const StoreOptions& options, const OptionTable& table) {
  if (!options.batching && options.prefetch != Prefetching::batch && table.given("--max_batch")) {
    fail_usage("--max_batch {}: needs --batching or --prefetch batch; otherwise requests are answered one by one",
               options.max_batch);
  }
  if (options.buckets && (!std::has_single_bit(*options.buckets) || *options.buckets > kMaxBuckets)) {
    fail_usage("--buckets {}: must be a power of two up to 2^32", *options.buckets);
  }
  if (options.log && !std::has_single_bit(*options.log)) fail_usage("--log {}: must be a power of two", *options.log);
}

lookups::MicaStore filled_cache(const ThreadSetup& setup, const StoreOptions& options, std::uint32_t tail) {
  const std::uint32_t threads = setup.topology.threads, value = setup.operation.payload;
  const std::uint64_t keys = keys_of_a_thread(options, threads);
  const std::uint64_t log = std::max(kFewestLogBytes, keys * MicaStore::item_bytes(value + tail) * 5 / 4);
  MicaStore store(options.buckets.value_or(std::bit_ceil((keys + kKeysOfABucket - 1) / kKeysOfABucket)),
                  Bytes(options.log.value_or(std::bit_ceil(log))), PageSize::transparent);
  const StoreWorkload workload(options, setup.operation.seed);
  const StoreValues values(setup.operation.seed, value);
  std::vector<std::byte> bytes(value + tail);
  for (std::uint64_t key = 0; key < options.keys; ++key) {
    const KeyHash hash = workload.hash(key);
    if (owner_of(hash, threads) != setup.thread) continue;
    values.fill(bytes.data(), key, StoreVersion());
    store.put(hash, bytes);
  }
  return store;
}

Json cache_results(const std::vector<const Workload*>& threads) {
  lookups::MicaCounts cache;
  CacheServerCounts sum;
  std::uint64_t puts = 0;
  bool has_cache = false;
  Json served = Json::array();
  for (const Workload* thread : threads) {
    const auto* account = dynamic_cast<const CacheAccount*>(thread);
    if (account == nullptr) continue;
    has_cache = account->cache() != nullptr;
    if (has_cache) add(cache, account->cache()->counts());
    const CacheServerCounts& counts = account->window_counts();
    sum.passes.merge(counts.passes);
    sum.served += counts.served;
    sum.looks += counts.looks;
    sum.no_ops += counts.no_ops;
    puts += account->puts_executed();
    served.push_back(counts.served);
  }
  if (served.empty()) return Json::object();
  const auto share = [](std::uint64_t part, std::uint64_t of) {
    return of == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(of));
  };
  Json json{{"answers_per_post", sum.passes.batches.to_json()},
            {"workers",
             {{"served", served},
              {"idle_share", share(sum.passes.empty_passes, sum.passes.passes)},
              {"full_share", share(sum.passes.full_passes, sum.passes.passes)},
              {"blocked", sum.passes.blocked},
              {"looks_per_request", share(sum.looks, sum.served)},
              {"no_ops", sum.no_ops}}}};
  if (!has_cache) return json;
  json["puts_executed"] = puts;
  json["failed_gets"] = {{"no_slot", cache.no_slot},
                         {"other_key", cache.other_key},
                         {"log_lost", cache.log_lost},
                         {"never_lost", cache.never_lost}};
  json["evictions"] = {
      {"index", cache.index_evictions}, {"same_tag", cache.tag_evictions}, {"log", cache.log_overwrites}};
  return json;
}

// Each key is there when the run begins: a GET finds nothing only where the server found nothing, and that only of a
// key that its cache has lost.
std::string check_cache(const Json& result) {
  if (!result.contains("failed_gets")) return "";
  const auto failed = [&result](const char* key) { return result.at("failed_gets").at(key).get<std::uint64_t>(); };
  if (failed("never_lost") > 0) {
    return fmt::format("{} GETs failed although the cache never evicted their keys", failed("never_lost"));
  }
  const std::uint64_t at_server = failed("no_slot") + failed("other_key") + failed("log_lost");
  const std::uint64_t misses = result.at("misses").get<std::uint64_t>();
  if (misses > at_server) {
    return fmt::format("{} GETs found nothing at the clients, but {} at the server", misses, at_server);
  }
  return "";
}

std::string cache_text(const Json& result) {
  if (!result.contains("answers_per_post")) return "";
  std::string text = batches_line(result);
  if (!result.contains("evictions")) return text;
  const auto count = [&result](const char* of, const char* key) { return result.at(of).at(key).get<std::uint64_t>(); };
  text += fmt::format(
      "  failed GETs: {} no slot, {} another key, {} lost by the log; evictions: {} by a full bucket, {} by an equal "
      "tag, {} by the log\n",
      count("failed_gets", "no_slot"), count("failed_gets", "other_key"), count("failed_gets", "log_lost"),
      count("evictions", "index"), count("evictions", "same_tag"), count("evictions", "log"));
  return text;
}

}  // namespace verbscope
