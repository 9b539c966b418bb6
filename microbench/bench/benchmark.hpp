// The hooks of a benchmark: description, options, draft of the plan, workloads, results, model. Everything else
// (devices, connections, memory regions, exchange, warm-up, timing, counters, output) is the runner's.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "machine/node.hpp"
#include "microbench/bench/control.hpp"
#include "microbench/bench/option_table.hpp"
#include "microbench/bench/plan.hpp"
#include "microbench/bench/region.hpp"
#include "pcie_model/predict.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

class SimNode;
struct Options;
struct Outcome;

// Where a UD request goes, as a work request names it.
using UdAddress = decltype(ibv_send_wr{}.wr.ud);

// A QP of a peer.
struct PeerQp {
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;  // UD
  ibv_ah* ah = nullptr;    // UD; owned by the node
  std::uint16_t lid = 0;   // the LID of its port; 0 on Ethernet

  UdAddress address() const { return {ah, qpn, qkey}; }
};

// The far end of a lane.
struct LanePeer {
  std::uint32_t node = 0;   // as Partner::node
  std::uint32_t index = 0;  // the QP's number among that node's
  std::uint32_t count = 1;  // QPs of that node
  PeerQp qp;
  PeerQp companion;     // of `qp`, if the benchmark has companions
  RemoteRegion region;  // that node's
  Slice slice() const { return slice_of(region.bytes, count, index); }
};

// One QP of a thread, connected to its peers.
struct Lane {
  std::uint32_t index = 0;  // among this node's QPs
  std::uint32_t count = 1;  // QPs of this node
  Transport transport = Transport::rc;
  std::uint32_t port = 0;  // index among the ports in use
  ibv_qp* qp = nullptr;
  ibv_qp_ex* builder = nullptr;  // the builder of `qp`, with Operation::builder
  ibv_qp* companion = nullptr;   // of `qp`, if the benchmark has companions
  ibv_qp_ex* companion_builder = nullptr;
  std::vector<LanePeer> peers;  // one, or on UD at the server one for every client
};

// The arguments of Benchmark::setup: everything that a thread's data path needs.
struct ThreadSetup {
  const Operation& operation;
  const Topology& topology;
  Side side;
  std::uint32_t node;    // which client; 0 for the server
  std::uint32_t thread;  // the thread's number on the node
  std::uint64_t goal;    // operations to measure in this thread; MeasuredInterval::kNoGoal: the time ends the interval
  const Device& device;
  const Pd& pd;
  ibv_cq* cq;                 // with Operation::cq_per_qp that of the first lane
  ibv_comp_channel* channel;  // the channel of `cq`, with Operation::events; else null
  ibv_srq* srq;               // shared by the thread's QPs, with Operation::shared_recv_queue; else null
  std::uint32_t rd_atomic;    // READs and atomics that an RC QP may have outstanding
  LocalRegion region;
  std::vector<Lane> lanes;
  bool huge_pages;  // false on simulated machines
  // For threads that share QPs: the completions that they poll for each other, and the number of this thread among
  // them.
  SharedCompletions* shared = nullptr;  // null: the thread has its own QPs
  std::uint32_t member = 0;
};

// The data path of one thread: built in setup, run once (WorkloadOn in workload.hpp).
class Workload {
 public:
  virtual ~Workload() = default;

  // Runs until the phase is `stop` and every posted request is complete (active), or until RunControl::quit.
  virtual void run(HostNode& node, const RunControl& control, ThreadTally& tally) = 0;
  virtual void run(SimNode& node, const RunControl& control, ThreadTally& tally) = 0;

  // True if it drives the traffic: it ends by itself after the stop. Others wait for outstanding messages.
  virtual bool active() const = 0;
  // True if it counts operations. Otherwise it has no interval.
  virtual bool counts() const { return true; }
  // After the run: messages sent to a node of the other side, which must count them as received; messages received;
  // messages that failed validation.
  virtual std::uint64_t sent_to(std::uint32_t /*node*/) const { return 0; }
  virtual std::uint64_t received() const { return 0; }
  virtual std::uint64_t wrong() const { return 0; }
  // Operations per round, in which each queue of the thread has one completion, if a completion stands for many
  // operations of one of several queues. 0: operations are counted one by one, or belong to one queue.
  virtual std::uint64_t round() const { return 0; }
  // Messages that were validated.
  virtual std::uint64_t checked() const { return received(); }
  // The memory of the payloads as a line of text, or empty.
  virtual std::string memory() const { return ""; }
  // True if that memory is registered with relaxed ordering.
  virtual bool relaxed() const { return false; }
};

// The capacity that a side's QPs must have.
struct QueueNeeds {
  std::uint32_t send_depth = 1;
  std::uint32_t recv_depth = 1;  // that of the shared receive queue when there is one
  std::uint32_t send_sge = 1;
  std::uint32_t recv_sge = 1;
  std::uint32_t inline_bytes = 0;
  // Largest number of completions in the CQ, per QP or per shared receive queue, in a run without errors.
  std::uint32_t completions = 1;
};

// Access rights of memory that no thread polls: PCIe may reorder writes to it.
constexpr int unwatched(const Operation& op, int access = IBV_ACCESS_LOCAL_WRITE) {
  return op.relaxed_ordering ? access | int{IBV_ACCESS_RELAXED_ORDERING} : access;
}

// The memory region of one node.
struct RegionNeeds {
  std::uint64_t bytes = 0;  // 0: none
  // Rights of the region and of the node's QPs. A device without atomics refuses IBV_ACCESS_REMOTE_ATOMIC.
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  bool huge_pages = false;  // 2 MB
};

// A counter of simulated adapters (`extra` in docs/records.md) that counts each operation of the rate once. It is
// summed over the adapters of `side`; without a side, over all adapters.
struct OperationCount {
  std::optional<Side> side = Side::server;
  std::string name;
};

// The longest message over UD, and the option that sets its bytes.
struct LongestDatagram {
  const char* option = "--size";
  std::uint32_t bytes = 0;
};

struct Description {
  std::string name;       // of the binary, and in the record
  std::string summary;    // one sentence, for --help
  std::string example{};  // options of a run on a simulated cluster, for --help: "-c UD -s 32 -l 16"
};

class Benchmark;

// A program before its options are read.
class Program {
 public:
  virtual ~Program() = default;

  virtual Description describe() const = 0;
  // True if it has no peers: threads of one machine, on the fabric host.
  virtual bool local() const { return false; }
  // Registers its own options. They become part of the record, and both sides must agree on them.
  virtual void options(OptionTable&) {}
  // The payloads of the points to run, in bytes; empty: one point, from the options. Throws UsageError.
  virtual std::vector<std::uint32_t> points(const Options&) const { return {}; }
  // Returns the benchmark of a point, which lives as long as the program or until the next call, with its options
  // checked (Benchmark::adjust).
  virtual Benchmark& select(Options&) = 0;
};

// Most programs are one benchmark.
class Benchmark : public Program {
 public:
  Benchmark& select(Options& options) override {
    adjust(options);
    return *this;
  }
  // Checks the benchmark's own options, and may set common options that these imply. Called for each point, before the
  // common options are checked. Throws UsageError.
  virtual void adjust(Options&) {}
  // The part of the plan that the benchmark decides; make_plan completes it.
  virtual Plan draft() const = 0;
  // Called at the server before the threads are set up. `core`: of the first thread.
  virtual void prepare(const Plan&, int /*core*/) {}
  // The counter of simulated adapters that counts the operations; nothing: an operation is several messages, or a part
  // of one. Default: messages sent, if the side that posts makes the rate, else messages received.
  virtual std::optional<OperationCount> operation_count() const;
  // The key of the result, in Mops, that the model bounds.
  virtual std::string bounded_rate() const { return "rate_mops"; }
  // True if each operation of the rate moves one payload of --size, so that their product is a bandwidth.
  virtual bool moves_payloads() const { return true; }
  virtual QueueNeeds needs(const Operation& operation, Side side) const = 0;
  // The needs of the UD QPs of ClientQps.
  virtual QueueNeeds datagram_needs(const Operation& operation, Side side) const { return needs(operation, side); }
  virtual LongestDatagram longest_datagram(const Operation& operation) const { return {.bytes = operation.payload}; }
  // The region of each node of `side`, which has `qps` QPs; with ClientQps, connected ones.
  virtual RegionNeeds region(const Operation&, Side, std::uint32_t /*qps*/) const { return {}; }
  // Every QP gets a second one of this transport, with the same partners, needs and CQ.
  virtual std::optional<Transport> companion(const Operation&) const { return std::nullopt; }
  // Fills the region, which is zeroed, before its address is sent to the peers.
  virtual void fill(const Operation&, Side, std::span<std::byte> /*region*/) const {}
  virtual std::unique_ptr<Workload> setup(const ThreadSetup& setup) const = 0;

  // After the run: the keys that the threads of one node add to its result (a client's: result.clients[i].result). A
  // client sends them to the server: at most a few kilobytes.
  virtual Json results(const std::vector<const Workload*>& threads) const;
  // At the server, after results, counters and prediction.
  virtual void finish(Outcome&) const {}
  // Lines for the console, each ending in a newline.
  virtual std::string report(const Json& /*result*/) const { return ""; }
  // The console prints several points as a table, each line with the payload first. These are the other columns: the
  // heading, and the cells of a point. Empty: rate and bandwidth.
  virtual std::string row_heading(const Json& /*result*/) const { return ""; }
  virtual std::string row(const Json& /*result*/) const { return ""; }
  // The closed-form model of the machine under test. Throws Error if there is none.
  virtual Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const = 0;
  // The model after the run, if it depends on the result, such as the sizes of batches.
  virtual Prediction predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                                 const Json& /*result*/) const {
    return predict(cluster, operation, ports);
  }
};

// The operation as the model names it.
VerbShape verb_shape(const Operation& operation, int ports);

// The model of a receiver assumes that the adapter fetches whole groups of RECVs. Throws Error if a receive queue of
// `posted` RECVs may hold less than a group while `in_use` of them wait to be posted again.
void check_recv_groups(const ClusterWire& cluster, const Operation& operation, std::uint64_t posted,
                       std::uint64_t in_use);

}  // namespace verbscope
