// An ordered store over general RPCs: GETs are handled by the threads that receive them, SCANs there or by worker
// threads (eRPC, NSDI 2019, section 7.2).
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "common/error.hpp"
#include "common/record.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/outcome.hpp"
#include "microbench/run/runner.hpp"
#include "nic_sim/profile/profile.hpp"
#include "systems/ordered/ordered_work.hpp"
#include "systems/rpc_rate/rpc_benchmark.hpp"

namespace verbscope::ordered {
namespace {

// Simulated: the client machines of the paper, with half as many threads.
constexpr std::uint32_t kPaperClients = 8, kSimClientThreads = 4;

struct Kind {
  std::uint8_t kind;
  const char* prefix;  // of its latencies in the record
  const char* rate;
  const char* words;
};
constexpr std::array kKindsOf = {Kind{kGet, "lat", "get_mops", "GETs"}, Kind{kScan, "scan", "scan_mops", "SCANs"},
                                 Kind{kPut, "put", "put_mops", "PUTs"}};

// The memory of the server: the size of its last-level cache, and the latency behind it if it is simulated.
struct Memory {
  Bytes cache;
  std::optional<Picos> dram{};
};

Memory memory_of(const std::string& fabric) {
  if (is_simulated(fabric)) {
    const HostProfile host = load_profile(fabric.substr(fabric.find(':') + 1)).host;
    return {host.last_level_cache, host.dram};
  }
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return {Bytes(static_cast<std::uint64_t>(std::max({l2, l3, 0L})))};
}

class OrderedKv final : public RpcBenchmark {
 public:
  OrderedKv() : RpcBenchmark({.all_serve = false, .batch = 1, .outstanding = 2, .clients_have_workers = false}, 2) {}

  Description describe() const override {
    return {"ordered_kv", "Rate and latency of an ordered store over general RPCs, with every answer checked.",
            "--threads 6 --workers 2 --scans 1"};
  }

  void options(OptionTable& table) override {
    begin_options(table, kMessageBytes);
    table.restate("--threads", 1, "threads of the server, --workers among them, each pinned to a core");
    table.integer("--keys", keys_, std::uint64_t{1}, std::uint64_t{1} << 25,
                  "number of keys, all stored before the run");
    table.integer("--gets", gets_, 0u, 100u, "share of GETs in percent (default: what SCANs and PUTs leave)");
    table.integer("--scans", mix_.scans, 0u, 100u, "share of SCANs in percent: each sums the values of the next keys");
    table.integer("--puts", mix_.puts, 0u, 100u, "share of PUTs in percent; each client thread writes keys of its own");
    table.integer("--scan_length", mix_.scan_length, 1u, 1u << 16, "keys of a SCAN");
    table.integer("--workers", workers_, 0u, 1u << 10,
                  "threads of the server that handle SCANs; 0: the threads that receive them do");
    add_batch_options(table);
    add_protocol_options(table);
  }

  void adjust(Options& o) override {
    begin_adjust(o);
    settle_mix();
    settle_threads(o);
    settle_recvs(o);
    settle_workers(o);
    settle_network(o);
    memory_ = memory_of(o.fabric);
  }

  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    const bool null = load_.played > 0;
    return make_thread<OrderedWork>(setup, {.mix = mix_,
                                            .keys = setup.side == Side::client || null ? table_of_keys() : nullptr,
                                            .map = setup.side == Side::server ? map_of(setup) : nullptr});
  }

  Json results(const std::vector<const Workload*>& threads) const override {
    Json out = RpcBenchmark::results(threads);
    const std::lock_guard lock(mutex_);
    if (!map_ || dynamic_cast<const RpcThread*>(threads.front())->active()) return out;
    out["tree"] = tree_json(map_->shape());
    return out;
  }

  void finish(Outcome& outcome) const override {
    RpcBenchmark::finish(outcome);
    Json& result = outcome.result;
    const auto samples = [&result](const Kind& kind) {
      return result.at(std::string(kind.prefix) + "_samples").get<double>();
    };
    double all = 0;
    for (const Kind& kind : kKindsOf) all += samples(kind);
    for (const Kind& kind : kKindsOf) {
      result[kind.rate] = all > 0 ? result.at("rate_mops").get<double>() * samples(kind) / all : 0;
    }
  }

  std::string report(const Json& result) const override {
    std::string out;
    for (const Kind& kind : kKindsOf) out += kind_line(result, kind);
    if (result.contains("tree")) {
      const Json& tree = result.at("tree");
      out += fmt::format("  tree: {} levels, {:.1f} MB, {} of them not in the last-level cache\n",
                         tree.at("levels").get<int>(), tree.at("bytes").get<double>() * 1e-6,
                         tree.at("dram_levels").get<int>());
    }
    return out + RpcBenchmark::report(result);
  }

 private:
  std::vector<LatencyKinds> latency_kinds() const override {
    std::vector<LatencyKinds> kinds;
    for (const Kind& kind : kKindsOf) kinds.push_back({kind.prefix, {kind.kind}});
    return kinds;
  }

  static std::string kind_line(const Json& result, const Kind& kind) {
    const auto us = [&](const char* key) { return result.at(std::string(kind.prefix) + key).get<double>() / 1e3; };
    if (!result.contains(kind.rate) || !result.at(std::string(kind.prefix) + "_p50_ns").is_number()) return "";
    return fmt::format("  {}: {:.3f} Mops, latency median {:.2f} us, 99 % {:.2f} us\n", kind.words,
                       result.at(kind.rate).get<double>(), us("_p50_ns"), us("_p99_ns"));
  }

  // The trees of the map, and their closed form.
  Json tree_json(const TreeShape& shape) const {
    const TreeShape model = modelled_shape(keys_, OrderedMap::kPartitions);
    Json out{{"levels", shape.levels},
             {"leaves", shape.leaves},
             {"inner_nodes", shape.inner_nodes},
             {"bytes", shape.bytes().value},
             {"cache_bytes", memory_.cache.value},
             {"dram_levels", shape.dram_levels(memory_.cache)},
             {"model", {{"levels", model.levels}, {"dram_levels", model.dram_levels(memory_.cache)}}}};
    if (!memory_.dram) return out;
    out["model"]["get_ns"] = to_seconds(modelled_get(model, memory_.cache, *memory_.dram)) * 1e9;
    out["model"]["scan_ns"] = to_seconds(modelled_scan(model, memory_.cache, *memory_.dram, mix_.scan_length)) * 1e9;
    return out;
  }

  void settle_mix() {
    const std::uint32_t others = mix_.scans + mix_.puts;
    if (others > 100) fail_usage("--scans {} --puts {}: expected at most 100 % together", mix_.scans, mix_.puts);
    mix_.gets = gets_.value_or(100 - others);
    if (mix_.gets + others != 100) {
      fail_usage("--gets {} --scans {} --puts {}: expected 100 % together", mix_.gets, mix_.scans, mix_.puts);
    }
  }

  void settle_threads(Options& o) {
    if (o.size && *o.size != kMessageBytes) {
      fail_usage("--size {}: requests of ordered_kv have {} bytes; leave it out", *o.size, kMessageBytes);
    }
    o.size = load_.response_bytes = kMessageBytes;
    check_message("--packet_size", kMessageBytes);
    if (workers_ >= o.threads) {
      fail_usage("--workers {}: expected less than --threads {}: at least one thread must receive requests", workers_,
                 o.threads);
    }
    const bool simulated = is_simulated(o.fabric);
    o.clients = o.clients.value_or(simulated ? kPaperClients : 1);
    endpoints_ = o.threads - workers_;
    if (!o.client_threads) o.client_threads = simulated ? simulated_client_threads(o) : 1;
    machines_ = *o.clients + 1;
    client_endpoints_ = *o.client_threads;
    load_.played = o.fabric == "null" ? *o.clients * client_endpoints_ : 0;
    if (load_.played > 0) o.client_threads = o.threads;  // the null device is its own peer
    const std::uint64_t writers = std::uint64_t{*o.clients} * client_endpoints_;
    if (mix_.puts > 0 && keys_ < writers) {
      fail_usage("--keys {}: with --puts, expected one or more for each of the {} client threads", keys_, writers);
    }
  }

  // A thread calls those of the server that are on its port: a server with fewer threads than ports serves some only.
  std::uint32_t simulated_client_threads(const Options& o) const {
    const int ports = selected_port(o) == 0 ? load_profile(o.fabric.substr(o.fabric.find(':') + 1)).wire.ports : 1;
    return endpoints_ < static_cast<std::uint32_t>(ports) ? endpoints_ : kSimClientThreads;
  }

  void settle_workers(const Options& o) {
    load_.worker_queues = {};
    if (workers_ == 0) return;
    if (fasst_) fail_usage("--workers {}: with --rpc fasst the threads that receive requests handle them", workers_);
    if (o.fabric == "null") fail_usage("--workers {}: not with --fabric null", workers_);
    load_.worker_queues = {.endpoints = endpoints_, .workers = workers_, .requests = sessions() * kSessionSlots};
  }

  // One of each in a process: the table of all callers, and the map of the server in a run.
  std::shared_ptr<const KeyTable> table_of_keys() const {
    const std::lock_guard lock(mutex_);
    if (!key_table_ || key_table_->size() != keys_) key_table_ = std::make_shared<const KeyTable>(keys_);
    return key_table_;
  }
  std::shared_ptr<OrderedMap> map_of(const ThreadSetup& setup) const {
    const std::lock_guard lock(mutex_);
    if (setup.thread > 0) return map_;
    map_ = std::make_shared<OrderedMap>(setup.topology.threads);
    for (std::uint64_t i = 0; i < keys_; ++i) map_->load(key_of(i), value_of(key_of(i), 0));
    map_->end_load(memory_.cache);
    return map_;
  }

  std::uint64_t keys_ = 1'000'000;
  std::optional<std::uint32_t> gets_;
  Mix mix_;
  std::uint32_t workers_ = 0;
  Memory memory_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const KeyTable> key_table_;
  mutable std::shared_ptr<OrderedMap> map_;
};

}  // namespace
}  // namespace verbscope::ordered

int main(int argc, char** argv) {
  return verbscope::benchmark_main<verbscope::ordered::OrderedKv>(argc, argv);
}
