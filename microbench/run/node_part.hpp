// The part that one node plays in a run, and the device that it is to play it on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "verbs/provider.hpp"

namespace verbscope {

// The device that a node runs on.
struct NodePlace {
  Provider* provider = nullptr;
  std::string device;                // its name
  std::vector<int> ports;            // those in use, in order
  int gid_index = -1;                // -1 picks
  std::optional<std::uint32_t> mtu;  // bytes; at most what the port has
  bool huge_pages = true;
  bool alone = false;  // the null device, where the server is its own client
  UarChoice uars{};
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

}  // namespace verbscope
