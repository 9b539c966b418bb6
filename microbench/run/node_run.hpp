// One node's part of a run: its device, QPs and workloads, through the steps prepare, connect, run, report. It knows
// neither how endpoints cross nor what makes its threads run: that is the link's affair (phase_machine.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/run/report.hpp"
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
  bool alone = false;  // the null device, where the server is its own client
};

class NodeRun {
 public:
  // prepare: opens the ports in use, creates CQs and QPs. Throws Error.
  NodeRun(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const NodePlace& place);

  // "server", "client0".
  const std::string& name() const { return name_; }
  // Ports, QPs and the region, for the other side.
  Json endpoints() const;
  // connect: `peers` are the endpoints of the other side's nodes in order. QPs go to RTS, workloads are built.
  void connect(const std::vector<Json>& peers);
  // Connects without a peer: every partner is the QP itself (null device).
  void connect_alone();

  std::size_t threads() const { return cqs_.size(); }
  Workload& workload(std::size_t thread) { return *workloads_[thread]; }
  const Workload& workload(std::size_t thread) const { return *workloads_[thread]; }
  ThreadTally& tally(std::size_t thread) { return tallies_[thread]; }

  // While threads run.
  bool active_ended() const;    // every thread that drives traffic has ended
  bool windows_opened() const;  // every thread that counts has noted where its window begins; ends
  bool windows_closed() const;
  bool counts() const;  // whether any thread does
  std::uint64_t received() const;
  std::uint64_t completed() const;  // operations of all threads so far: to see that something moves
  std::uint64_t armed() const;      // times that all threads have armed their completion queues so far
  // One line about the first thread that failed; empty while none has.
  std::string failure() const;

  bool sends() const;                        // a thread drives traffic
  bool counted() const { return counted_; }  // this side's windows make the rate

  // After the run: the messages that this node has sent to `node` of the other side.
  std::uint64_t sent_to(std::uint32_t node) const;
  // After the threads have ended: their account of `window`. `expected` messages should have come; thread i had
  // cores[i]. Sets `failure`, when it is empty, if this side's windows make the rate and a thread measured nothing.
  NodeReport report(const WindowUse& window, std::uint64_t expected, const std::vector<int>& cores,
                    std::string& failure) const;

  // For the record: device, ports and their addresses, path MTU, memory of the buffers.
  Json describe() const;
  const Device& device() const { return ports_.front(); }
  std::uint32_t mtu() const { return mtu_; }  // bytes, that of the path

 private:
  struct PeerNode;

  void open_ports(const NodePlace& place);
  void create_region();
  void create_queues();
  QueueNeeds needs_of(const QpPlan& plan) const;
  void create_qp(const QpPlan& plan, Transport transport);
  void connect_nodes(const std::vector<PeerNode>& nodes);
  void agree_on_rd_atomic(const std::vector<PeerNode>& nodes);
  void connect_lane(std::size_t index, const std::vector<PeerNode>& nodes);
  PeerQp face(std::size_t qp, std::uint32_t port, std::uint32_t node_index, const PeerNode& node, std::uint32_t theirs);
  void make_ready(std::size_t qp);
  std::string peer_name(std::uint32_t node) const;
  Lane make_lane(std::size_t index) const;
  ibv_ah* address_handle(std::uint32_t port, std::uint32_t node, const Endpoint& local, const Endpoint& peer);
  void build_workloads();
  void check_datagram_size(std::uint32_t mtu) const;
  std::string describe_end(std::size_t thread, const RunEnd& end) const;
  ThreadReport thread_report(std::size_t thread, int core) const;
  void judge_thread(std::size_t thread, const ThreadReport& report, std::string& failure) const;
  Delivery delivery(std::uint64_t expected) const;

  const Benchmark& benchmark_;
  Plan plan_;
  Side side_;
  std::uint32_t node_;  // which client
  bool counted_;
  bool alone_;
  std::string name_;
  bool huge_pages_;
  std::uint32_t mtu_ = 0;  // bytes: of the ports in use, then of the path
  std::vector<QpPlan> qp_plans_;

  // In the order of dependence: destroyed from the last.
  std::deque<Device> ports_;     // one context each; the first owns everything below
  std::vector<GidChoice> gids_;  // by port
  std::optional<Pd> pd_;
  int access_ = 0;  // rights of the QPs
  std::optional<Buffer> region_;
  std::optional<Mr> region_mr_;
  std::vector<CompChannel> channels_;  // one a thread, with events
  std::vector<Cq> cqs_;                // one a thread
  std::vector<Srq> srqs_;              // one a thread, when shared
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<std::vector<std::optional<Ah>>> handles_;  // by port, then node
  std::vector<Qp> qps_;                                  // those of the plan, then their companions
  std::uint32_t rd_atomic_ = 1;                          // READs and atomics that a QP may have outstanding
  std::uint32_t taken_rd_atomic_ = 1;                    // and those that it takes
  std::vector<std::vector<LanePeer>> lane_peers_;        // by QP of the plan
  std::vector<std::vector<std::size_t>> thread_qps_;     // by thread: its QPs in order
  std::deque<ThreadTally> tallies_;
};

}  // namespace verbscope
