#include "systems/one_sided/store.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "common/error.hpp"
#include "common/text.hpp"
#include "microbench/run/report.hpp"
#include "systems/one_sided/access.hpp"
#include "systems/one_sided/ends.hpp"
#include "systems/one_sided/farm_table.hpp"
#include "systems/one_sided/model.hpp"
#include "systems/one_sided/pilaf_table.hpp"
#include "systems/store/model.hpp"

namespace verbscope {

namespace {

struct Reads {
  const char* name;
  ReadCounts GetCounts::*counts;
};
constexpr std::array<Reads, 2> kReads = {{{"index_reads", &GetCounts::probes}, {"value_reads", &GetCounts::values}}};
struct Again {
  const char* name;
  std::uint64_t GetCounts::*count;
};
constexpr std::array<Again, 2> kReadAgain = {{{"torn_reads", &GetCounts::torn}, {"moved_reads", &GetCounts::moved}}};

// For counts of the measured interval.
std::string window_key(const char* name) {
  return std::string("window_") + name;
}

// Pairs of offset and number of READs that began there, without zeros.
std::string offsets_key(const char* name) {
  return window_key(name) + "_by_offset";
}
Json offsets_json(const ReadCounts& reads) {
  Json json = Json::array();
  for (std::size_t offset = 0; offset < ReadCounts::kPeriod; ++offset) {
    if (reads.by_offset()[offset] > 0) json.push_back({offset, reads.by_offset()[offset]});
  }
  return json;
}

// The READs of one kind of all clients, by offset.
std::map<std::uint64_t, double> sum_of_offsets(const Json& result, const char* name) {
  std::map<std::uint64_t, double> sums;
  for (const Json& client : result.at("clients")) {
    const Json offsets =
        client.at("result").value(offsets_key(name), Json::array());  // a client of another build: none
    for (const Json& each : offsets) {
      sums[each.at(0).get<std::uint64_t>() % ReadCounts::kPeriod] += each.at(1).get<double>();
    }
  }
  return sums;
}

// The access of the options.
struct Accesses {
  StoreKind kind;
  std::uint64_t keys = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t threads = 1;
  bool emulate = false;

  EmulatedAccess emulated() const {
    switch (kind) {
      case StoreKind::farm:
        return EmulatedAccess::farm(keys, value_bytes);
      case StoreKind::farm_var:
        return EmulatedAccess::farm_var(keys, value_bytes);
      default:
        return EmulatedAccess::pilaf(keys, value_bytes);
    }
  }
  PilafTable pilaf() const { return {keys, value_bytes, threads}; }
  FarmTable farm() const { return {keys, value_bytes, kind == StoreKind::farm_var}; }

  // Calls `use` with the access.
  template <class Use>
  auto with(Use&& use) const {
    if (emulate) return use(emulated());
    return kind == StoreKind::pilaf ? use(pilaf()) : use(farm());
  }
};

class OneSidedStore final : public Store {
 public:
  using Store::Store;

  void adjust(Options& o) override {
    const OptionTable& table = table_;
    for (const char* key : {"--batching", "--max_batch", "--prefetch", "--requests", "--buckets", "--log"}) {
      if (table.given(key)) fail_usage("{}: only for --store herd and cached", key);
    }
    if (o.fabric == "null") fail_usage("--fabric null: the null device has no memory for the store");
    if (table.given("--connection") && o.connection != Transport::rc) {
      fail_usage("--connection {}: READs need RC", to_string(o.connection));
    }
    if (o.cq_mod.value_or(1) != 1)
      fail_usage("--cq_mod {}: every READ needs its completion, so it must be 1", *o.cq_mod);
    settle_clients(o);
    o.connection = Transport::rc;
    o.cq_mod = 1;
    value_bytes_ = o.size.value_or(0);
    threads_ = o.threads;
    const std::uint32_t message = layout().message_bytes();
    if (!table.given("--inline_size")) o.inline_size = message <= kMaxInlinedPut ? message : 0;
    o.inline_size = std::max(o.inline_size, kPutTagBytes);
  }

  Plan draft() const override {
    return {.operation = {.verb = Verb::write,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = options_.window,
                          .label = "GETs and PUTs"},
            .topology = {.client_qps = ClientQps{.connected = true}, .clients_may_leave = true}};
  }

  std::optional<Transport> companion(const Operation&) const override { return Transport::uc; }

  QueueNeeds needs(const Operation& op, Side) const override {
    const std::uint32_t recvs = std::max(1u, by_memory() ? 1u : options_.window + kSpareRecvs);
    return {.send_depth = op.tx_depth,
            .recv_depth = recvs,
            .inline_bytes = op.inline_limit,
            .completions = op.tx_depth + recvs};
  }

  RegionNeeds region(const Operation&, Side side, std::uint32_t qps) const override {
    if (side == Side::client) return {.bytes = by_memory() ? qps * kCacheLine.value : 0};
    return {.bytes = paths().server_bytes(qps, threads_)};
  }

  void fill(const Operation& op, Side side, std::span<std::byte> region) const override {
    if (side == Side::client) return;
    const StoreWorkload workload(options_, op.seed);
    const StoreValues values(op.seed, op.payload);
    const TableContents contents{
        .hash_of = [&workload](std::uint64_t key) { return workload.hash(key); },
        .fill_value = [&values](std::uint64_t key, std::byte* value) { values.fill(value, key, StoreVersion()); }};
    accesses().with([&](const auto& access) { access.fill(region, contents); });
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return accesses().with([&]<class Access>(const Access& access) -> std::unique_ptr<Workload> {
      if (setup.side == Side::client) {
        return std::make_unique<OneSidedClient<Access>>(setup, options_, access, paths());
      }
      return std::make_unique<OneSidedServer<Access>>(setup, paths(), puts_of(access, setup));
    });
  }

  Json server_results(const std::vector<const Workload*>& threads) const override {
    PutCounts sums;
    for (const Workload* thread : threads) {
      const auto* account = dynamic_cast<const OneSidedAccount*>(thread);
      if (account == nullptr || account->puts() == nullptr) continue;
      sums.executed += account->puts()->executed;
      sums.refused += account->puts()->refused;
      sums.repeated += account->puts()->repeated;
    }
    return {{"puts_executed", sums.executed}, {"puts_refused", sums.refused}, {"answers_repeated", sums.repeated}};
  }

  Json client_results(const std::vector<const Workload*>& threads) const override {
    GetCounts outside, window;
    for (const Workload* thread : threads) {
      const auto* account = dynamic_cast<const OneSidedAccount*>(thread);
      if (account == nullptr || account->gets() == nullptr) continue;
      outside.add(account->gets()->at(0));
      window.add(account->gets()->at(1));
    }
    Json json = Json::object();
    for (const Reads& kind : kReads) {
      const ReadCounts& counted = window.*kind.counts;
      json[kind.name] = (outside.*kind.counts).sum() + counted.sum();
      json[window_key(kind.name)] = counted.sum();
      json[offsets_key(kind.name)] = offsets_json(counted);
    }
    for (const Again& kind : kReadAgain) json[kind.name] = outside.*kind.count + window.*kind.count;
    return json;
  }

  void add_results(Json& result) const override {
    const auto add = [&result](const char* name) {
      result[name] = static_cast<std::uint64_t>(sum_over_clients(result, name));
    };
    const double gets = sum_over_clients(result, "window_gets");
    for (const Reads& kind : kReads) {
      add(kind.name);
      const double reads = sum_over_clients(result, window_key(kind.name));
      result[std::string(kind.name) + "_per_get"] = gets > 0 ? Json(reads / gets) : Json();
    }
    for (const Again& kind : kReadAgain) add(kind.name);
  }

  std::string check(const Json& result) const override {
    const auto count = [&result](const char* key) { return result.value(key, std::uint64_t{0}); };
    if (count("misses") > 0) {
      return fmt::format("{} GETs found no key, although all keys are stored", count("misses"));
    }
    if (count("puts_refused") > 0) {
      return fmt::format("{} PUTs found no key, although all keys are stored", count("puts_refused"));
    }
    return "";
  }

  std::string store_report(const Json& result) const override {
    if (!result.contains("index_reads_per_get")) return "";
    const auto per_get = [&result](const char* key) {
      const Json& value = result.at(key);
      return value.is_null() ? std::string("-") : with_digits(value.get<double>(), 3);
    };
    return fmt::format("  READs per GET: {} of the index, {} of values; repeated: {} torn, {} of reused places\n",
                       per_get("index_reads_per_get"), per_get("value_reads_per_get"),
                       result.value("torn_reads", std::uint64_t{0}), result.value("moved_reads", std::uint64_t{0}));
  }

  Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports,
                            const Json& result) const override {
    const StoreMix mix = store_mix(options_, result);
    OneSidedLoad load{.reads = reads(result), .puts = mix.puts, .paths = paths()};
    for (ReadsOfPlaces& each : load.reads) each.per_op *= mix.gets + mix.misses;
    return predict_one_sided(cluster, op, ports, load);
  }

 private:
  Accesses accesses() const {
    return {.kind = options_.store,
            .keys = options_.keys,
            .value_bytes = value_bytes_,
            .threads = threads_,
            .emulate = options_.emulate};
  }
  bool by_memory() const { return options_.store != StoreKind::pilaf; }
  PutLayout layout() const {
    return {.value_bytes = value_bytes_, .emulated = options_.emulate, .window = options_.window};
  }
  PutPaths paths() const {
    const std::uint64_t bytes = accesses().with([](const auto& access) { return access.region_bytes(); });
    return {.layout = layout(), .by_memory = by_memory(), .store_bytes = bytes};
  }

  static EmulatedPuts puts_of(const EmulatedAccess&, const ThreadSetup&) { return {}; }
  static PilafPuts puts_of(const PilafTable& table, const ThreadSetup& setup) {
    return {table, setup.region.bytes.data(), setup.thread};
  }
  static FarmPuts puts_of(const FarmTable& table, const ThreadSetup& setup) {
    return {table, setup.region.bytes.data()};
  }

  // The READs of a GET: as counted in the run, or as expected before it.
  std::vector<ReadsOfPlaces> reads(const Json& result) const {
    std::vector<ReadsOfPlaces> index_and_values = expected_reads();
    const double gets = result.contains("clients") ? sum_over_clients(result, "window_gets") : 0;
    if (gets <= 0) return index_and_values;
    for (std::size_t i = 0; i < kReads.size(); ++i) {
      index_and_values[i].per_op = sum_over_clients(result, window_key(kReads[i].name)) / gets;
      index_and_values[i].by_offset = sum_of_offsets(result, kReads[i].name);
    }
    return index_and_values;
  }

  std::vector<ReadsOfPlaces> expected_reads() const {
    if (options_.emulate) {
      const EmulatedAccess access = accesses().emulated();
      const double values = access.values_apart() ? 1 : 0;
      return {{0, access.slot_bytes(), access.probe_bytes(), access.mean_probes(), {}},
              {access.values_at(), value_bytes_, value_bytes_, values, {}}};
    }
    if (options_.store == StoreKind::pilaf) {
      const PilafTable table = accesses().pilaf();
      return {{0, sizeof(PilafBucket), sizeof(PilafBucket), kUsualPilafProbes, {}},
              {table.item_at(0), table.item_at(1) - table.item_at(0), value_bytes_, 1, {}}};
    }
    const FarmTable table = accesses().farm();
    return {{0, table.slot_bytes(), static_cast<std::uint32_t>(FarmTable::kNeighbourhood * table.slot_bytes()), 1, {}},
            {table.object_at(0),
             table.object_bytes(),
             static_cast<std::uint32_t>(table.object_bytes()),
             table.apart() ? 1.0 : 0.0,
             {}}};
  }

  static constexpr double kUsualPilafProbes = 1.6;  // Kalia et al., SIGCOMM 2014, section 5.1.1

  std::uint32_t value_bytes_ = 0;
  std::uint32_t threads_ = 1;
};

}  // namespace

std::unique_ptr<Store> make_one_sided_store(StoreOptions& options, const OptionTable& table) {
  return std::make_unique<OneSidedStore>(options, table);
}

}  // namespace verbscope
