// The frame that a benchmark fills in: options, setup, step, describe. Everything else (flags, devices, connections,
// memory regions, exchange, warm-up, timing, counters, output) is the runner's.
#pragma once

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
#include "microbench/bench/shared_completions.hpp"
#include "pcie_model/predict.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

class SimNode;
struct Options;
struct Outcome;

// A QP of a peer.
struct PeerQp {
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;  // UD
  ibv_ah* ah = nullptr;    // UD; owned by the node
  std::uint16_t lid = 0;   // the LID of its port; 0 on Ethernet
};

// The far end of a lane.
struct LanePeer {
  std::uint32_t node = 0;   // as Partner::node
  std::uint32_t index = 0;  // the QP's number among that node's
  std::uint32_t count = 1;  // QPs of that node
  PeerQp qp;
  PeerQp companion;     // the companion of `qp`, when the benchmark asked for companions
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
  ibv_qp* companion = nullptr;   // it stands beside `qp`, when the benchmark asked for companions
  ibv_qp_ex* companion_builder = nullptr;
  std::vector<LanePeer> peers;  // one, or on UD at the server one for every client
};

// A thread's part of a run, from which it builds its data path.
struct ThreadSetup {
  const Operation& operation;
  const Topology& topology;
  Side side;
  std::uint32_t node;    // which client; 0 for the server
  std::uint32_t thread;  // the thread's number on the node
  std::uint64_t goal;    // operations to measure in this thread; MeasuredInterval::kNoGoal: as many as the time allows
  const Device& device;
  const Pd& pd;
  ibv_cq* cq;                 // with Operation::cq_per_qp that of the first lane
  ibv_comp_channel* channel;  // the channel of `cq`, with Operation::events; else null
  ibv_srq* srq;               // shared by the thread's QPs, with Operation::shared_recv_queue; else null
  std::uint32_t rd_atomic;    // READs and atomics that an RC QP may have outstanding
  LocalRegion region;
  std::vector<Lane> lanes;
  bool huge_pages;
  // Of the threads that have the same QPs: the completions that they take for each other, and which of them this is.
  SharedCompletions* shared = nullptr;  // null: the QPs are the thread's own
  std::uint32_t member = 0;
};

// The data path of one thread: built in setup, run once (WorkloadOn in workload.hpp).
class Workload {
 public:
  virtual ~Workload() = default;

  // step: runs until the phase is `stop` and what was posted is complete (active), or until told to quit.
  virtual void run(HostNode& node, const RunControl& control, ThreadTally& tally) = 0;
  virtual void run(SimNode& node, const RunControl& control, ThreadTally& tally) = 0;

  // Whether it drives the traffic: it then ends by itself after the stop. Others wait for what is still to come.
  virtual bool active() const = 0;
  // Whether it counts operations at all; one that does not has no window.
  virtual bool counts() const { return true; }
  // After the run. Messages that a node of the other side must have counted in its `received`; messages received; those
  // that validation refused.
  virtual std::uint64_t sent_to(std::uint32_t /*node*/) const { return 0; }
  virtual std::uint64_t received() const { return 0; }
  virtual std::uint64_t wrong() const { return 0; }
  // Operations that are counted while each of its queues completes once, where completions stand for many operations of
  // one of several queues; 0: they are counted one by one, or all of one queue.
  virtual std::uint64_t round() const { return 0; }
  // Messages that validation looked at.
  virtual std::uint64_t checked() const { return received(); }
  // The memory that the payloads lie in, as a line for the person; empty: nothing to say.
  virtual std::string memory() const { return ""; }
  // Whether that memory is registered with relaxed ordering.
  virtual bool relaxed() const { return false; }
};

// The capacity that a side's QPs must have.
struct QueueNeeds {
  std::uint32_t send_depth = 1;
  std::uint32_t recv_depth = 1;  // that of the shared receive queue when there is one
  std::uint32_t send_sge = 1;
  std::uint32_t recv_sge = 1;
  std::uint32_t inline_bytes = 0;
  // Most that a QP, or a shared receive queue, can have waiting in the CQ while all goes well.
  std::uint32_t completions = 1;
};

// Rights of memory that no thread polls, and whose order nobody looks at: writes to it may pass each other on PCIe.
constexpr int unwatched(const Operation& op, int access = IBV_ACCESS_LOCAL_WRITE) {
  return op.relaxed_ordering ? access | int{IBV_ACCESS_RELAXED_ORDERING} : access;
}

// The memory region of one node.
struct RegionNeeds {
  std::uint64_t bytes = 0;  // 0: none
  // Rights of the region and of the node's QPs. IBV_ACCESS_REMOTE_ATOMIC is refused on a device that has no atomics.
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  bool huge_pages = false;  // 2 MB
};

// The counter of a simulated adapter (docs/records.md, extra) that, summed over the adapters of a side, counts
// each operation of the rate once; without a side, over all adapters.
struct OperationCount {
  std::optional<Side> side = Side::server;
  std::string name;
};

struct Description {
  std::string name;       // the binary has it, and the record
  std::string summary;    // one sentence, for --help
  std::string example{};  // options of a run on a simulated cluster, for --help: "-c UD -s 32 -l 16"
};

class Benchmark {
 public:
  virtual ~Benchmark() = default;

  virtual Description describe() const = 0;
  // Registers options of its own; they become part of the record and of what both sides must agree on.
  virtual void options(OptionTable&) {}
  // Called once when the options are read, before they are checked: may set common options that its own imply. Throws
  // UsageError.
  virtual void adjust(Options&) {}
  // The payloads, in bytes, of which each is a point of its own, one after the other; empty: the one point that the
  // options say. Throws UsageError.
  virtual std::vector<std::uint32_t> points(const Options&) const { return {}; }
  virtual Traffic traffic() const = 0;
  // Nothing: no counter does, as where an operation is several messages, or one message several operations. By default
  // the messages of those who post, or the SENDs that those have who receive, where these make the rate.
  virtual std::optional<OperationCount> operation_count() const;
  // The key of the result that the model's bound is a bound of, Mops.
  virtual std::string bounded_rate() const { return "rate_mops"; }
  // Whether each operation of the rate moves one payload of --size, so that their product is a bandwidth.
  virtual bool moves_payloads() const { return true; }
  virtual QueueNeeds needs(const Operation& operation, Side side) const = 0;
  // The needs of the UD QPs of ClientQps.
  virtual QueueNeeds datagram_needs(const Operation& operation, Side side) const { return needs(operation, side); }
  // The region of each node of `side`, which has `qps` QPs; with ClientQps, connected ones.
  virtual RegionNeeds region(const Operation&, Side, std::uint32_t /*qps*/) const { return {}; }
  // Every QP gets a second one of this transport, connected like the first (on UD to the same partners), with the same
  // needs and the same CQ.
  virtual std::optional<Transport> companion(const Operation&) const { return std::nullopt; }
  // Fills the region before peers learn of it; it is zeroed otherwise.
  virtual void fill(const Operation&, Side, std::span<std::byte> /*region*/) const {}
  virtual std::unique_ptr<Workload> setup(const ThreadSetup& setup) const = 0;

  // After the run, what one node's threads found beside their rates: goes into the node's result, of a client into
  // result.clients[i].result (a client sends it to the server: at most a few kilobytes).
  virtual Json results(const std::vector<const Workload*>& threads) const;
  // At the server, with every node's result, the counters and the prediction in place.
  virtual void finish(Outcome&) const {}
  // Lines for the console, each ending in a newline.
  virtual std::string report(const Json& /*result*/) const { return ""; }
  // Of several points the console has a table, a line each, which begins with the payload: its heading and its line
  // behind that. Empty: the rate and what it moves.
  virtual std::string row_heading(const Json& /*result*/) const { return ""; }
  virtual std::string row(const Json& /*result*/) const { return ""; }
  // The closed-form model of the machine under test. Throws Error where it has none.
  virtual Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const = 0;
  // The model after the run, where it must know what the run found, such as the sizes of its batches.
  virtual Prediction predict_run(const ClusterWire& cluster, const Operation& operation, int ports,
                                 const Json& /*result*/) const {
    return predict(cluster, operation, ports);
  }
};

// The operation as the model names it.
VerbShape verb_shape(const Operation& operation, int ports);

// The model of a receiver fetches whole groups of RECVs. Throws Error when a receive queue of `posted` RECVs has no
// whole group left while `in_use` of them are used and not posted again: how many are fetched at once then depends on
// the moment.
void check_recv_groups(const ClusterWire& cluster, const Operation& operation, std::uint64_t posted,
                       std::uint64_t in_use);

}  // namespace verbscope
