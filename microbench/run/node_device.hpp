// The device of one node in a run: its role, the ports in use, and the region that peers reach.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/bench/region.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

struct DevicePorts {
  std::string device;
  std::vector<int> ports;  // ascending
};

// The device of --ib_dev, by default the first one, with the selected_port or every active one. Throws Error: no
// device, no such port, port not active.
DevicePorts choose_ports(Provider& provider, const Options& options);

// The device that a node runs on.
struct NodePlace {
  Provider* provider = nullptr;
  std::string device;                // its name
  std::vector<int> ports;            // those in use, in order
  int gid_index = -1;                // -1: choose
  std::optional<std::uint32_t> mtu;  // bytes; at most that of the port
  bool huge_pages = true;
  bool alone = false;  // the null device: the server is its own client
  UarChoice uars{};
  QpSettings qps{};
};

// The role of one node in a run.
struct NodePart {
  NodePart(const Benchmark& its_benchmark, const Plan& its_plan, Side its_side, std::uint32_t its_client,
           const NodePlace& place);

  const Benchmark& benchmark;
  Plan plan;
  Side side;
  std::uint32_t client;  // which one; 0 at the server
  bool alone;            // no peers: the null device
  bool huge_pages;
  bool domains;  // each thread has its own doorbell register
  QpSettings settings;
  std::vector<QpPlan> qps;

  // Threads that have QPs, those of one group the same; on the fabric host all.
  std::uint32_t threads() const;
  std::uint32_t group_of(std::size_t thread) const { return static_cast<std::uint32_t>(thread / threads_per_qp()); }
  std::uint32_t threads_per_qp() const { return side == Side::server ? plan.topology.threads_per_qp : 1; }
  std::uint32_t machine() const { return side == Side::server ? 0 : client + 1; }
  std::string name() const { return name_of(machine()); }  // "server", "client0"
  // The name of the peer that Partner::node calls `node`.
  std::string peer(std::uint32_t node) const { return name_of(peer_machine(machine(), node)); }

 private:
  static std::string name_of(std::uint32_t machine);
};

// The ports of a node: opened, with their addresses and the MTU of the path.
class NodePorts {
 public:
  // Opens the ports of `place`. Throws Error for a missing port or GID, UsageError for an MTU or QpSettings that a port
  // does not support and for a datagram of the benchmark that does not fit. `part` must outlive the ports.
  NodePorts(const NodePart& part, const NodePlace& place);

  const Device& device() const { return ports_.front(); }  // owns everything that the node creates
  std::size_t size() const { return ports_.size(); }
  std::uint8_t number(std::uint32_t port) const { return ports_[port].port(); }
  const GidChoice& gid(std::uint32_t port) const { return gids_[port]; }
  // The endpoint of `qp` on a port, without a PSN.
  Endpoint endpoint(std::uint32_t port, const Qp& qp) const;

  std::uint32_t mtu() const { return mtu_; }  // bytes: the least of the ports and of limit_mtu
  // Limits the MTU to that of a path. Throws UsageError when a datagram of the benchmark does not fit.
  void limit_mtu(std::uint32_t mtu);

  // Device, ports and their addresses, and path MTU for the record.
  Json describe() const;

 private:
  void check_settings(const Device& device, const GidChoice& gid) const;
  void check_datagram_size() const;

  const NodePart& part_;
  std::uint32_t mtu_ = 0;
  std::deque<Device> ports_;     // one context each
  std::vector<GidChoice> gids_;  // by port
};

// The device of a node with the region that peers reach.
class NodeDevice {
 public:
  // Opens the ports of `place` and registers the benchmark's region. Throws like NodePorts, and Error. `part` must
  // outlive the device.
  NodeDevice(const NodePart& part, const NodePlace& place);

  const Device& device() const { return ports_.device(); }
  const Pd& pd() const { return pd_; }
  NodePorts& ports() { return ports_; }
  const NodePorts& ports() const { return ports_; }

  int access() const { return access_; }  // rights of peers through the node's QPs
  LocalRegion region() const;             // empty if the benchmark has none
  RemoteRegion shared_region() const;     // the same as peers address it; zeros if none

  bool region_relaxed() const { return region_relaxed_; }  // registered with relaxed ordering
  // The memory of the region for the record; null if there is none.
  Json describe_region() const { return region_ ? Json(region_->describe()) : Json(); }

 private:
  void create_region();

  const NodePart& part_;
  int access_ = 0;
  bool region_relaxed_ = false;
  // In the order of dependence: destroyed from the last.
  NodePorts ports_;
  Pd pd_;
  std::optional<Buffer> region_;
  std::optional<Mr> region_mr_;
};

}  // namespace verbscope
