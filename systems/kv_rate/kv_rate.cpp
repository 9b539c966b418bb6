// Key-value stores of the literature at work: GETs and PUTs of clients against a server, with every value checked.

#include "common/error.hpp"
#include "common/record.hpp"
#include "microbench/loop/batch_counts.hpp"
#include "microbench/run/runner.hpp"
#include "systems/cached/cached.hpp"
#include "systems/herd/herd.hpp"
#include "systems/one_sided/store.hpp"
#include "systems/store/store.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kDefaultValue = 32;  // bytes
constexpr Picos kSimRetry = 10ms;            // 1,600 clients of one adapter wait for 2 ms and more
constexpr Picos kRetry = 100ms;

class KvRate final : public Program {
 public:
  Description describe() const override {
    return {"kv_rate", "Rate and latency of a key-value store, with every value checked.",
            "--store herd --threads 6 --put_percent 5"};
  }

  void options(OptionTable& table) override {
    table_ = &table;
    table.restate("--connection", Json(),
                  "transport of the requests (default: UC for herd, UD for cached, RC for the other stores)");
    table.restate("--size", kDefaultValue, "size of a value");
    table.restate("--inline_size", Json(),
                  fmt::format("largest payload that is sent inline (default: {} for herd and cached; PUTs of up to {} "
                              "for the other stores)",
                              kResponseInline, kMaxInlinedPut));
    table.restate("--clients", Json(), fmt::format("client machines (default 1; sim {})", kPaperMachines));
    table.restate("--client_threads", Json(), fmt::format("threads of each client (default 1; sim {})", kPaperThreads));
    table.choice<StoreKind>("--store", kv_.store,
                            {{"herd", StoreKind::herd},
                             {"cached", StoreKind::cached},
                             {"pilaf", StoreKind::pilaf},
                             {"farm", StoreKind::farm},
                             {"farm_var", StoreKind::farm_var}},
                            "herd: a cache, with requests by UC WRITE and responses by UD SEND; cached: clients keep "
                            "values, which the server confirms by header-only SENDs; pilaf: GETs by READs of a cuckoo "
                            "table; farm: of a hopscotch table; farm_var: of a hopscotch table with values elsewhere");
    table.flag("--emulate", kv_.emulate,
               "perform only the READs and messages of the store: the server answers without a store");
    table.integer("--put_percent", kv_.put_percent, 0u, 100u, "share of PUTs in percent; the others are GETs");
    table.integer("--keys", kv_.keys, std::uint64_t{1}, (std::uint64_t{1} << 32) - 1,
                  "number of keys, all stored before the run");
    table.number("--zipf", kv_.zipf, "exponent of Zipf's law for the popularity of keys (default: all keys alike)");
    table.integer("--window", kv_.window, 1u, 4096u, "outstanding requests per client thread");
    table.duration("--retry_after", retry_after_,
                   "resend a request after this long without a response (default 100 ms; sim 10 ms of simulated time)");
    table.choice<bool>("--requests", kv_.requests_by_send, {{"write", false}, {"send", true}},
                       "herd: send requests by WRITE over UC, or by SEND over UD");
    table.integer("--cached_share", kv_.cached_share, 0u, 100u,
                  "cached: share of the keys whose values a client keeps, in percent");
    table.flag("--small_keys", kv_.small_keys,
               "cached: send requests as a 4-byte immediate with table and key, as for TPC-C's tables; up to 2^24 "
               "keys, GETs only");
    table.flag("--batching", kv_.batching,
               "answer all requests of a polling pass together: one doorbell per port and --max_batch responses");
    table.integer("--max_batch", kv_.max_batch, 1u, std::uint32_t{BatchCounts::kLongest},
                  "most requests that a server thread works on at a time, and most responses per doorbell");
    table.choice<std::optional<Prefetching>>(
        "--prefetch", kv_.prefetch,
        {{"off", Prefetching::off}, {"pipeline", Prefetching::pipeline}, {"batch", Prefetching::batch}},
        "hide memory latency: not at all, by a pipeline of two requests, or by batches (default: pipeline; batch with "
        "--batching or requests by SEND)");
    table.integer("--buckets", kv_.buckets, std::uint64_t{1}, std::uint64_t{1} << 32,
                  "index buckets per server thread, 8 slots each, a power of two (default: one per two keys)");
    table.bytes("--log", kv_.log, std::uint64_t{2048}, std::uint64_t{1} << 39,
                "log size per server thread, a power of two (default: its items and a quarter more)");
    table.integer("--accesses", kv_.accesses, 0u, kMaxAccesses,
                  "replace HERD's store by an echo, which reads this many random places of memory per request, one "
                  "after the other, and returns the value");
  }

  Benchmark& select(Options& o) override {
    o.size = o.size.value_or(kDefaultValue);
    if (*o.size < kMinStoreValue || *o.size > kMaxStoreValue) {
      fail_usage("--size {}: a value has from {} to {} bytes", *o.size, kMinStoreValue, kMaxStoreValue);
    }
    if (o.header_only) fail_usage("--header_only: a value cannot be empty");
    if (o.post_list != 1) fail_usage("--post_list {}: use --batching, which posts responses in lists", o.post_list);
    if (o.events) fail_usage("--events: the server polls memory, which raises no event");
    if (o.validate) fail_usage("--validate: every value is checked already");
    if (kv_.window > o.tx_depth) {
      fail_usage("--window {}: at most --tx_depth {}", kv_.window, o.tx_depth);
    }
    const bool simulated = is_simulated(o.fabric);
    kv_.retry_after = retry_after_.value_or(simulated ? kSimRetry : kRetry);
    kv_.one_process = simulated;
    if (kv_.store != StoreKind::herd && table_->given("--accesses")) {
      fail_usage("--accesses: only for --store herd");
    }
    for (const char* key : {"--cached_share", "--small_keys"}) {
      if (kv_.store != StoreKind::cached && table_->given(key)) fail_usage("{}: only for --store cached", key);
    }
    store_ = make_store();
    return store_->select(o);
  }

 private:
  std::unique_ptr<Store> make_store() {
    switch (kv_.store) {
      case StoreKind::herd:
        return make_herd_store(kv_, *table_);
      case StoreKind::cached:
        return make_cached_store(kv_, *table_);
      case StoreKind::pilaf:
      case StoreKind::farm:
      case StoreKind::farm_var:
        return make_one_sided_store(kv_, *table_);
    }
    return nullptr;  // no other kind
  }

  const OptionTable* table_ = nullptr;
  StoreOptions kv_;
  std::optional<Picos> retry_after_;
  std::unique_ptr<Store> store_;
};

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::KvRate>(argc, argv);
}
