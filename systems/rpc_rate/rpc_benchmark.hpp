// What the programs that measure general RPCs have in common. After eRPC (Kalia, Kaminsky and Andersen, "Datacenter
// RPCs can be General and Fast", NSDI 2019), sections 6 and 7.2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "systems/rpc_rate/rpc_thread.hpp"
#include "systems/rpc_rate/rpc_worker.hpp"

namespace verbscope {

inline constexpr std::uint32_t kSmallResponse = 32;  // bytes

class RpcBenchmark : public Benchmark {
 public:
  Plan draft() const override;
  std::optional<OperationCount> operation_count() const override { return std::nullopt; }
  std::string bounded_rate() const override;
  QueueNeeds needs(const Operation& op, Side side) const override;
  LongestDatagram longest_datagram(const Operation&) const override { return {"--packet_size", load_.packet_bytes}; }
  RegionNeeds region(const Operation&, Side side, std::uint32_t) const override {
    return {.bytes = load_.workers_of(side == Side::server ? 0 : 1) > 0 ? WorkerQueues::bytes(load_.worker_queues) : 0};
  }

  Json results(const std::vector<const Workload*>& threads) const override;
  void finish(Outcome& outcome) const override;
  std::string report(const Json& result) const override;
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_run(cluster, op, ports, Json::object());
  }
  Prediction predict_run(const ClusterWire& cluster, const Operation& op, int ports, const Json& result) const override;

 protected:
  RpcBenchmark(const RpcLoad& load, std::uint32_t machines) : load_(load), machines_(machines) {}

  // Latencies in the record: the prefix of their keys, and the kinds of requests that they are of.
  struct LatencyKinds {
    std::string prefix;
    std::vector<std::uint8_t> kinds;
  };
  virtual std::vector<LatencyKinds> latency_kinds() const = 0;

  // Options of all programs. begin_options() goes first.
  void begin_options(OptionTable& table, std::uint32_t request_bytes);
  void add_batch_options(OptionTable& table);
  void add_protocol_options(OptionTable& table);

  // Checks of all programs. The members below are set between them.
  void begin_adjust(Options& o);
  void check_message(const char* option, std::uint32_t bytes) const;
  void settle_recvs(Options& o);
  void settle_network(Options& o) const;
  // The largest number of sessions that a thread has.
  std::uint32_t sessions() const;

  template <class Work>
  std::unique_ptr<Workload> make_thread(const ThreadSetup& setup, const typename Work::Options& work) const {
    const std::uint32_t endpoints = load_.endpoints_of(setup.topology, machine_of(setup));
    if (setup.thread >= endpoints) {
      return std::make_unique<RpcWorkerOn<Work>>(setup, load_, work, setup.thread - endpoints);
    }
    if (fasst_) {
      return std::make_unique<RpcThreadOn<FasstEndpoint<DatagramTransport>, Work>>(setup, load_, rpc_, work);
    }
    return std::make_unique<RpcThreadOn<RpcEndpoint<DatagramTransport>, Work>>(setup, load_, rpc_, work);
  }

  OptionTable* table_ = nullptr;
  RpcLoad load_;
  RpcOptions rpc_;
  std::uint32_t machines_;
  // Threads of the server and of each client that are not workers.
  std::uint32_t endpoints_ = 1, client_endpoints_ = 1;
  bool fasst_ = false;

 private:
  void settle_recv_queue(const Options& o, std::uint32_t at_once);

  // Packets of one request and its response that have the same length.
  struct RpcPackets {
    std::uint32_t bytes = 0;  // header and data
    double count = 0;
    bool to_server = false;
  };
  std::vector<RpcPackets> packets_per_request(const Operation& op) const;

  bool multi_packet_rq_ = false;
  std::optional<Picos> rto_;
  std::optional<double> loss_;
};

}  // namespace verbscope
