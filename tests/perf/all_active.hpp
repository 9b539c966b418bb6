// A load under which every machine of a simulated cluster is busy, as requester and as responder: each thread of each
// node keeps a window of signaled operations on some RC QPs, whose peers are spread over all other nodes. What a node
// does is the same whatever the number of nodes, so that the costs per operation of two clusters can be compared.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>

#include "nic_sim/cluster.hpp"

namespace verbscope::test {

struct AllActiveLoad {
  int nodes = 2;                            // a power of two
  ibv_wr_opcode opcode = IBV_WR_RDMA_READ;  // or IBV_WR_RDMA_WRITE
  std::uint64_t operations = 1;             // of each thread
  int qps = 4;                              // of each thread
  int window = 4;                           // of each QP
  SimWork work{};

  static constexpr int threads = 16;  // of each node
  static constexpr std::uint32_t bytes = 64;
};

// Nodes that follow one another are in one partition.
SimWork shared_out(int nodes, std::size_t partitions, std::size_t threads);

class AllActive {
 public:
  // Sets the cluster up: `cib` with 16 cores.
  explicit AllActive(const AllActiveLoad& load);
  ~AllActive();
  AllActive(const AllActive&) = delete;
  AllActive& operator=(const AllActive&) = delete;

  // Runs the load to its end, once; yields how many operations all threads have done. Throws when one fails.
  std::uint64_t run();

 private:
  struct Lane;
  struct Thread;
  struct Machine;

  void connect();

  AllActiveLoad load_;
  SimCluster cluster_;
  std::deque<Machine> machines_;
};

}  // namespace verbscope::test
