// A key-value store as a benchmark: kv_rate selects one of them. Every value that a client reads is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"
#include "systems/requests/client.hpp"
#include "systems/store/client_oracle.hpp"
#include "systems/store/options.hpp"

namespace verbscope {

// The account that a client's thread of any store gives after the run; a Workload of a client derives from it.
struct StoreClientAccount {
  virtual ~StoreClientAccount() = default;
  virtual const ClientOracle& oracle() const = 0;
  virtual Picos window() const = 0;  // length of its measured interval
};

class Store : public Benchmark {
 public:
  // Both must outlive the store, which resolves defaults in `options`.
  Store(StoreOptions& options, const OptionTable& table) : options_(options), table_(table) {}

  Description describe() const final;
  bool moves_payloads() const final { return false; }
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }

  // Of the clients: keys of every store, and client_results(). At the server: server_results().
  Json results(const std::vector<const Workload*>& threads) const final;
  // Adds rates and latencies of GETs and PUTs and the checks of every value. The point fails if a value was wrong or
  // stale, or a PUT was executed more or less than once.
  void finish(Outcome& outcome) const final;
  std::string report(const Json& result) const final;
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const final {
    return predict_server(cluster, op, ports, Json::object());
  }
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const final {
    return predict_server(cluster, op, ports, result);
  }

 protected:
  // Keys of the result from the server's threads. If they execute PUTs, "puts_executed" counts them in the whole run;
  // the run fails unless the clients count as many.
  virtual Json server_results(const std::vector<const Workload*>& threads) const = 0;
  // Keys of a client's result beside those of every store.
  virtual Json client_results(const std::vector<const Workload*>& /*threads*/) const { return Json::object(); }
  // At the server, with the results of all nodes in place: adds keys that sum up those of the clients.
  virtual void add_results(Json& /*result*/) const {}
  // At the server, after that: one line about a defect of the store, such as GETs that found nothing although nothing
  // was evicted; or empty.
  virtual std::string check(const Json& /*result*/) const { return ""; }
  // Further lines for the console, each ending in a newline.
  virtual std::string store_report(const Json& /*result*/) const { return ""; }
  // The model of the server. `result` is empty before the run; it may hold the clients' "window_gets" and so on.
  virtual Prediction predict_server(const ClusterWire& cluster, const Operation& op, int ports,
                                    const Json& result) const = 0;

  StoreOptions& options_;
  const OptionTable& table_;
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

// Throws UsageError if a value cannot name each client thread as its writer.
void check_writers(const Topology& topology, const StoreValues& values);

// A client thread's oracle, and the workload that it refers to. The constructor calls check_writers().
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

}  // namespace verbscope
