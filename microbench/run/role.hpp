// One side of a run on one node: its device, QPs and workloads, through the steps prepare, connect, run, finish.
// It knows neither how endpoints cross nor what makes its threads run: that is the fabric's driver.
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
#include "verbs/endpoint.hpp"
#include "verbs/gid.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// Where a role lives.
struct RolePlace {
  Provider* provider = nullptr;
  std::string device;                // its name
  std::vector<int> ports;            // in use, in order
  int gid_index = -1;                // -1 picks
  std::optional<std::uint32_t> mtu;  // bytes; at most what the port has
  bool huge_pages = true;
  bool alone = false;  // on the null device, where the server is its own client
};

// What a thread of a role did.
struct ThreadResult {
  std::uint64_t window_ops = 0;
  Picos begin{0};
  Picos window{0};
  double rate_mops = 0;
};

// How many messages should have come to a side, and what became of them; what validation looked at.
struct Delivery {
  std::uint64_t expected = 0;
  std::uint64_t received = 0;
  std::uint64_t checked = 0;  // by --validate
  std::uint64_t wrong = 0;    // refused by it

  std::uint64_t lost() const { return expected > received ? expected - received : 0; }
  Delivery& operator+=(const Delivery& other) {
    expected += other.expected;
    received += other.received;
    checked += other.checked;
    wrong += other.wrong;
    return *this;
  }
};

class Role {
 public:
  // prepare: opens the ports in use, creates CQs and QPs. Throws Error.
  Role(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const RolePlace& place);

  // "server", "client0".
  const std::string& name() const { return name_; }
  // What the other side must know: ports and QPs.
  Json endpoints() const;
  // connect: `peers` are the endpoints of the other side's nodes in order. QPs go to RTS, workloads are built.
  void connect(const std::vector<Json>& peers);
  // The same without a peer: every partner is the QP itself (null device).
  void connect_alone();

  std::size_t threads() const { return cqs_.size(); }
  Workload& workload(std::size_t thread) { return *workloads_[thread]; }
  const Workload& workload(std::size_t thread) const { return *workloads_[thread]; }
  ThreadTally& tally(std::size_t thread) { return tallies_[thread]; }

  // While threads run (conductor).
  bool active_ended() const;    // every thread that drives traffic has ended
  bool windows_opened() const;  // every thread that counts has noted where its window begins; ends
  bool windows_closed() const;
  bool counts() const;  // whether any thread does
  std::uint64_t received() const;
  std::uint64_t completed() const;  // operations of all threads so far: to see that something moves
  std::uint64_t armed() const;      // times that all threads have armed their completion queues so far
  // One line about the first thread that failed; empty while none has.
  std::string failure() const;

  // After the run.
  bool sends() const;
  std::uint64_t sent_to(std::uint32_t node) const;
  Delivery delivery(std::uint64_t expected) const;  // as the workloads say
  ThreadResult thread_result(std::size_t thread) const;
  Json results() const;  // of the benchmark, beside the rates

  bool counted() const { return counted_; }  // this side's windows make the rate
  const Plan& plan() const { return plan_; }

  // For the record: device, ports and their addresses, path MTU, memory of the buffers.
  Json describe() const;
  const Device& device() const { return ports_.front(); }
  std::uint32_t mtu() const { return mtu_; }  // of the path, bytes

 private:
  struct PeerNode;

  void open_ports(const RolePlace& place);
  void create_region(bool alone);
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

  const Benchmark& benchmark_;
  Plan plan_;
  Side side_;
  std::uint32_t node_;  // which client
  bool counted_;
  std::string name_;
  bool huge_pages_;
  std::uint32_t mtu_ = 0;  // bytes: of the ports in use, then of the path
  std::vector<QpPlan> qp_plans_;

  // In the order of dependence: destroyed from the last.
  std::deque<Device> ports_;     // one context each; the first owns everything below
  std::vector<GidChoice> gids_;  // by port
  std::optional<Pd> pd_;
  int access_ = 0;  // of the QPs
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
