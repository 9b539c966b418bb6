// What the programs that measure general RPCs have in common: rpc_rate, rpc_large and rpc_incast. After eRPC (Kalia,
// Kaminsky and Andersen, "Datacenter RPCs can be General and Fast", NSDI 2019), section 6.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "systems/rpc_rate/rpc_thread.hpp"

namespace verbscope {

inline constexpr std::uint32_t kLargeRequest = 8'000'000;  // bytes
inline constexpr std::uint32_t kSmallResponse = 32;        // bytes

// Machines that serve: all, which also call each other; machine 0, which the others call; or only the played peers of
// the null device.
enum class RpcServing : std::uint8_t { all, server, peers };

// How a program differs from the others.
struct RpcDefaults {
  Description description;
  bool incast = false;  // only the server serves, and there may be RPCs in the background
  std::uint32_t machines = 2;
  std::uint32_t request_bytes = 32;
  std::optional<std::uint32_t> response_bytes{};  // none: as many as the request has
  RpcLoad load{};
};

class RpcBenchmark final : public Benchmark {
 public:
  explicit RpcBenchmark(const RpcDefaults& defaults);

  Description describe() const override { return defaults_.description; }
  void options(OptionTable& table) override;
  void adjust(Options& options) override;
  Plan draft() const override;
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }
  std::string bounded_rate() const override;
  QueueNeeds needs(const Operation& op, Side side) const override;
  LongestDatagram longest_datagram(const Operation&) const override { return {"--packet_size", load_.packet_bytes}; }
  RegionNeeds region(const Operation&, Side, std::uint32_t) const override {
    return {.bytes = load_.worker_queues.workers > 0 ? WorkerQueues::bytes(load_.worker_queues) : 0};
  }
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override;

  Json results(const std::vector<const Workload*>& threads) const override;
  void finish(Outcome& outcome) const override;
  std::string report(const Json& result) const override;
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_run(cluster, op, ports, Json::object());
  }
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const override;

 private:
  void add_load_options(OptionTable& table);
  void add_handler_options(OptionTable& table);
  void add_protocol_options(OptionTable& table);
  void check_common(Options& o) const;
  void settle_messages(Options& o);
  void settle_machines(Options& o);
  void settle_recv_queue(const Options& o, std::uint32_t at_once);
  void settle_handlers(Options& o);
  void check_fasst(const Options& o) const;
  void settle_played(const Options& o);
  void settle_network(Options& o) const;
  std::uint32_t sessions(const Options& o) const;

  // Packets of one request and its response that have the same length.
  struct RpcPackets {
    std::uint32_t bytes = 0;  // header and data
    double count = 0;
    bool to_server = false;
  };
  std::vector<RpcPackets> packets_per_request(const Operation& op) const;

  const RpcDefaults defaults_;
  OptionTable* table_ = nullptr;
  RpcLoad load_;
  RpcServing serving_;
  RpcOptions rpc_;
  std::uint32_t machines_;
  std::optional<std::uint32_t> response_bytes_, background_bytes_, workers_, slow_percent_;
  bool by_workers_ = false, fasst_ = false, multi_packet_rq_ = false;
  std::uint32_t handler_ns_ = 0;
  std::optional<Picos> rto_;
  std::optional<double> loss_;
};

}  // namespace verbscope
