// The device of one node in a run: its ports in use, the MTU of the path, and the region that peers reach.
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
#include "verbs/endpoint.hpp"
#include "verbs/gid.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// The device that a node runs on.
struct NodePlace {
  Provider* provider = nullptr;
  std::string device;                // its name
  std::vector<int> ports;            // those in use, in order
  int gid_index = -1;                // -1 picks
  std::optional<std::uint32_t> mtu;  // bytes; at most what the port has
  bool huge_pages = true;
  bool alone = false;               // the null device, where the server is its own client
  std::optional<UarChoice> uars{};  // nothing: as the device has them
  QpSettings qps{};
};

// The part that one node plays in a run.
struct NodePart {
  NodePart(const Benchmark& its_benchmark, const Plan& its_plan, Side its_side, std::uint32_t its_client,
           const NodePlace& place);

  const Benchmark& benchmark;
  Plan plan;
  Side side;
  std::uint32_t client;  // which one; 0 at the server
  bool alone;            // it has no peers: the null device
  bool huge_pages;
  bool domains;  // each thread has a doorbell register of its own
  QpSettings settings;
  std::vector<QpPlan> qps;

  // Threads that have QPs; those of one group have the same.
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

class NodeDevice {
 public:
  // Opens the ports of `place`, and registers the region that the benchmark wants. Throws Error. `part` must outlive
  // the device.
  NodeDevice(const NodePart& part, const NodePlace& place);

  const Device& device() const { return ports_.front(); }  // it owns all that the node creates
  const Pd& pd() const { return *pd_; }
  std::size_t ports() const { return ports_.size(); }
  std::uint8_t port_number(std::uint32_t port) const { return ports_[port].port(); }
  // The endpoint of `qp` on a port, without a PSN.
  Endpoint endpoint(std::uint32_t port, const Qp& qp) const;

  std::uint32_t mtu() const { return mtu_; }  // bytes: of the ports, and of the paths that limit_mtu was told
  // Takes a path of `mtu` bytes into account. Throws UsageError when a datagram of the benchmark does not fit.
  void limit_mtu(std::uint32_t mtu);

  int access() const { return access_; }  // rights that peers have through the node's QPs
  LocalRegion region() const;             // empty when the benchmark asked for none
  RemoteRegion shared_region() const;     // the same region as peers address it; zeros when there is none

  // Device, ports and their addresses, and path MTU for the record.
  Json describe() const;
  // The memory of the region for the record; null when there is none.
  Json describe_region() const { return region_ ? Json(region_->describe()) : Json(); }

 private:
  void open_ports(const NodePlace& place);
  void check_settings(const Device& device, const GidChoice& gid) const;
  void create_region();
  void check_datagram_size() const;

  const NodePart& part_;
  std::uint32_t mtu_ = 0;
  int access_ = 0;
  // In the order of dependence: destroyed from the last.
  std::deque<Device> ports_;     // one context each; the first owns everything below
  std::vector<GidChoice> gids_;  // by port
  std::optional<Pd> pd_;
  std::optional<Buffer> region_;
  std::optional<Mr> region_mr_;
};

}  // namespace verbscope
