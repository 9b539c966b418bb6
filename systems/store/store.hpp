// A key-value store as kv_rate runs it: its plan, its two ends, its model. A store is made once, by its make_*, and
// kv_rate forwards to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"
#include "systems/rpc/client.hpp"
#include "systems/store/client_oracle.hpp"
#include "systems/store/options.hpp"

namespace verbscope {

// The account that a client's thread of any store gives after the run; a Workload of a client derives from it.
struct StoreClientAccount {
  virtual ~StoreClientAccount() = default;
  virtual const ClientOracle& oracle() const = 0;
  virtual Picos window() const = 0;  // length of its measured interval
};

class Store {
 public:
  virtual ~Store() = default;

  // Called once after the options were read: rejects options that do not apply to the store, resolves defaults, and
  // sets common options that the store implies. `options` outlives the store. Throws UsageError.
  virtual void adjust(Options& common, StoreOptions& options, const OptionTable& table) = 0;

  // As in Benchmark (microbench/bench/benchmark.hpp).
  virtual Plan draft() const = 0;
  virtual std::optional<OperationCount> operation_count() const { return std::nullopt; }
  virtual QueueNeeds needs(const Operation& op, Side side) const = 0;
  virtual QueueNeeds datagram_needs(const Operation& op, Side side) const { return needs(op, side); }
  virtual std::optional<Transport> companion(const Operation&) const { return std::nullopt; }
  virtual RegionNeeds region(const Operation&, Side, std::uint32_t /*qps*/) const { return {}; }
  virtual void fill(const Operation&, Side, std::span<std::byte> /*region*/) const {}
  virtual std::unique_ptr<Workload> setup(const ThreadSetup& setup) const = 0;

  // Keys of the result from the server's threads. If they execute PUTs, "puts_executed" counts them in the whole run;
  // the run fails unless the clients count as many.
  virtual Json server_results(const std::vector<const Workload*>& threads) const = 0;
  // Keys of a client's result beside those of every store.
  virtual Json client_results(const std::vector<const Workload*>& /*threads*/) const { return Json::object(); }
  // At the server, with the keys of all nodes in place: makes keys of what the clients have in theirs.
  virtual void add_results(Json& /*result*/) const {}
  // At the server, after that: one line about what is wrong with the store, such as GETs that
  // found nothing although nothing was evicted; empty: nothing.
  virtual std::string check(const Json& /*result*/) const { return ""; }
  // Lines for the console, each ending in a newline.
  virtual std::string report(const Json& /*result*/) const { return ""; }
  // The model of the server. `result` is empty before the run; it may hold the clients' "window_gets" and so on.
  virtual Prediction predict(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const = 0;
};

// Clients of a simulated run: those that Kalia et al., SIGCOMM 2014, section 5.1, measure with, 51 threads.
inline constexpr std::uint32_t kPaperMachines = 17;
inline constexpr std::uint32_t kPaperThreads = 3;
inline constexpr std::uint32_t kResponseInline = 143;  // bytes: longer responses are read by DMA there, on Apt
inline constexpr std::uint32_t kMaxInlinedPut = 256;   // bytes, of a message: what they inline at most

// Sets the default clients of a simulated run.
void settle_clients(Options& common);
// Resolves --inline_size for responses. Returns the largest request that is inlined, in bytes.
std::uint32_t settle_inlining(Options& common, const OptionTable& table);

// The sum of a count of all clients' results.
double sum_over_clients(const Json& result, const std::string& key);

// A client thread's oracle, and the workload that it refers to.
struct ClientOracleParts {
  ClientOracleParts(const ThreadSetup& setup, const StoreOptions& options);
  ClientOracleParts(const ClientOracleParts&) = delete;
  ClientOracleParts& operator=(const ClientOracleParts&) = delete;

  StoreWorkload workload;
  ClientOracle oracle;
};

// The state of a store's client.
struct StoreClientState : RequestClientState {
  ClientOracle* oracle = nullptr;

  std::uint64_t done() const { return oracle->done(); }
  void begin_interval() { oracle->begin_interval(); }
};

// The results of a store's clients as JSON: those of each node, and at the server those of all.

// What the client threads of one node found; without any, an empty object.
Json store_client_json(const std::vector<const Workload*>& threads);

// At the server: rates and latencies of GETs and PUTs, the check of every value, and how PUTs agree. Sets
// outcome.failure when a value was wrong or stale, or a PUT was executed more or less than once.
void check_store(Outcome& outcome, const Store& store);

// Lines for the console.
std::string store_text(const Json& result);

}  // namespace verbscope
