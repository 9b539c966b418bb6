// Fabrics of this machine, in real time: one process runs one node on libibverbs devices (fabric verbs), or the server
// alone, on the null device (null) or without any device (host). Threads are pinned; nodes exchange their endpoints and
// phases over TCP (host_link.hpp).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "counters/collector.hpp"
#include "exchange/exchange.hpp"
#include "exchange/message.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/fabric.hpp"
#include "microbench/run/host_link.hpp"

namespace verbscope {

// The terms that both sides must agree on: the build and every option, except options that belong to one side (device,
// cores, ...).
Terms make_terms(const Benchmark& benchmark, const Options& options, const OptionTable& table);

class HostFabric : public Fabric {
 protected:
  // The node runs on a device of `provider`, which is checked before the peers are contacted. Throws Error. All
  // arguments must outlive the fabric.
  HostFabric(Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider);

  NodeRun& own_node() override { return *node_; }
  void send_failure(const std::string& reason) override;

  const Options& options() const { return options_; }
  Terms terms() const { return make_terms(benchmark(), options_, table_); }
  Plan plan_for(const Options& options) const;
  // Throws if the device cannot run a client of this plan, for example for an MTU that its port does not have.
  void check_client(const Plan& plan) const;
  void make_node(const Plan& plan, Side side, std::uint32_t client);
  const RunCores& cores() const { return *cores_; }
  HostSide host_side(const Plan& plan);
  void add_counters(const NodeReport& own, Outcome& outcome);

  std::vector<Channel> peers_;

 private:
  FabricFacts facts() const;
  NodePlace place() const;

  const Options& options_;
  const OptionTable& table_;
  Provider& provider_;
  DevicePorts ports_;
  FabricFacts facts_;
  std::optional<NodeRun> node_;
  std::optional<RunCores> cores_;
  std::optional<Collector> collector_;

 protected:
  std::unique_ptr<Link> link_;  // last: it refers to the members above
};

// Prints "listening on port N" to standard output before it waits for its clients; on null and host it has none.
class ServerFabric final : public HostFabric {
 public:
  ServerFabric(Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider)
      : HostFabric(benchmark, options, table, provider) {}

 private:
  Plan make_plan() override { return plan_for(options()); }
  Link& open(const Plan& plan, Outcome& outcome) override;
  void complete(const Plan& plan, const NodeReport& own, Outcome& outcome) override;
  void meet_clients(const Plan& plan);
};

// Connects to the server at options.host, which decides the number of clients.
class ClientFabric final : public HostFabric {
 public:
  ClientFabric(Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider)
      : HostFabric(benchmark, options, table, provider) {}

 private:
  Plan make_plan() override;
  Link& open(const Plan& plan, Outcome& outcome) override;
  void complete(const Plan& plan, const NodeReport& own, Outcome& outcome) override;
};

}  // namespace verbscope
