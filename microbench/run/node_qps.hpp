// The QPs of one node in a run with their CQs and SRQs: created, connected to those of the peers, and given to the
// threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/managed_connections.hpp"
#include "microbench/run/node_device.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// The queues of one thread; see ThreadSetup.
struct ThreadQueues {
  std::vector<Lane> lanes;
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_srq* srq = nullptr;
};

class NodeQps {
 public:
  // Creates CQs and QPs. Throws Error. `part` and `device` must outlive the QPs.
  NodeQps(const NodePart& part, NodeDevice& device);

  // Ports, QPs and the region, for the other side.
  Json endpoints() const;
  // Changes the QPs to RTS. `peers`: the endpoints of the peers, in the order of peer_machines. Throws Error.
  void connect(const std::vector<Json>& peers);
  // Connects without a peer: every partner is the QP itself (null device).
  void connect_alone();

  // After the connection.
  ThreadQueues queues(std::size_t thread) const;
  // The settings of RC QPs, chosen by the program if not given, as options.
  Json settled() const;
  std::uint32_t rd_atomic() const { return rd_atomic_; }  // largest number of outstanding READs and atomics per QP
  // A lane for an error message: "RC QP 0x11, peer client0 QP 0x12". `queue` counts among the thread's lanes.
  std::string lane_name(std::size_t thread, std::uint32_t queue) const;

 private:
  struct PeerNode;

  void create_queues();
  QueueNeeds needs_of(const QpPlan& plan) const;
  void create_qp(std::size_t index, Transport transport);
  std::size_t cq_of(std::size_t qp) const { return part_.plan.operation.cq_per_qp ? qp : part_.qps[qp].thread; }
  void connect_nodes(const std::vector<PeerNode>& nodes);
  void agree_on_rd_atomic(const std::vector<PeerNode>& nodes);
  void connect_lane(std::size_t index, const std::vector<PeerNode>& nodes);
  PeerQp connect_to(std::size_t qp, std::uint32_t port, std::uint32_t node_index, const PeerNode& node,
                    std::uint32_t theirs);
  void make_ready(std::size_t qp);
  void to_rtr(std::size_t qp, const PathAddress& path, std::uint32_t peer_qpn, std::uint32_t peer_psn);
  void to_rts(std::size_t qp, std::uint32_t psn);
  void connect_managed();
  bool is_managed(std::size_t qp) const { return managed_ && qps_[qp].transport() == Transport::rc; }
  std::uint8_t timeout() const;
  std::uint8_t retry_count() const;
  PathAddress with_settings(PathAddress path) const;
  std::string peer_text(std::uint32_t node) const;
  Lane make_lane(std::size_t index) const;
  ibv_ah* address_handle(std::uint32_t port, std::uint32_t node, const Endpoint& local, const Endpoint& peer);

  const NodePart& part_;
  NodeDevice& device_;
  std::vector<std::vector<std::size_t>> group_qps_;  // by thread, or group of threads: its QPs in order
  std::uint32_t rd_atomic_ = 1;
  std::uint32_t taken_rd_atomic_ = 1;              // outstanding READs and atomics that a QP accepts from its peer
  std::vector<std::vector<LanePeer>> lane_peers_;  // by QP of the plan
  std::optional<ManagedConnections> managed_;      // with --rdma_cm
  // In the order of dependence: destroyed from the last.
  std::vector<CompChannel> channels_;                    // one per thread, with events
  std::vector<Cq> cqs_;                                  // one per thread, group of threads, or QP of the plan
  std::vector<Srq> srqs_;                                // one per thread, if shared
  std::vector<std::vector<std::optional<Ah>>> handles_;  // by port, then node
  std::vector<ThreadDomain> thread_domains_;             // one per thread with its own doorbell register
  std::vector<Pd> domains_;                              // for the QPs of each
  std::vector<Qp> qps_;                                  // those of the plan, then their companions
};

}  // namespace verbscope
