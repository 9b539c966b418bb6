// The frame that a benchmark fills in: options, setup, step, describe. Everything else (flags, devices, connections,
// exchange, warm-up, timing, counters, output) is the runner's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "microbench/control.hpp"
#include "microbench/option_table.hpp"
#include "microbench/plan.hpp"
#include "nic_sim/sim_node.hpp"
#include "pcie_model/predict.hpp"
#include "verbs/node.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

// The far end of a lane.
struct LanePeer {
  std::uint32_t node = 0;  // which client; 0 for the server
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;  // UD
  ibv_ah* ah = nullptr;    // UD; owned by the role
};

// One connected QP of a thread.
struct Lane {
  ibv_qp* qp = nullptr;
  std::vector<LanePeer> peers;  // one, or on UD at the server one for every client
};

// What a thread is given to build its data path from.
struct ThreadSetup {
  const Operation& operation;
  Side side;
  std::uint64_t goal;  // operations to measure in this thread; Window::kNoGoal: as many as the time allows
  const Pd& pd;
  ibv_cq* cq;
  std::vector<Lane> lanes;
  bool huge_pages;
};

// The data path of one thread: built in setup, run once.
class Workload {
 public:
  virtual ~Workload() = default;

  // step: runs until the phase is `stop` and what was posted is complete (active), or until told to quit.
  virtual void run(HostNode& node, const RunControl& control, ThreadTally& tally) = 0;
  virtual void run(SimNode& node, const RunControl& control, ThreadTally& tally) = 0;

  // Whether it drives the traffic: it then ends by itself after the stop. Others wait for what is still to come.
  virtual bool active() const = 0;
  // After the run. Messages sent to a node of the other side; messages received; those that validation refused.
  virtual std::uint64_t sent_to(std::uint32_t node) const = 0;
  virtual std::uint64_t received() const = 0;
  virtual std::uint64_t wrong() const = 0;
  // What the payloads lie in, for the person.
  virtual std::string memory() const = 0;
};

// Makes both `run`s from one template: Derived has `template <Node N> void step(N&, const RunControl&, ThreadTally&)`.
template <class Derived>
class WorkloadOn : public Workload {
 public:
  void run(HostNode& node, const RunControl& control, ThreadTally& tally) override {
    self().step(node, control, tally);
  }
  void run(SimNode& node, const RunControl& control, ThreadTally& tally) override { self().step(node, control, tally); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

// What a side's QPs must be able to hold.
struct QueueNeeds {
  std::uint32_t send_depth = 1;
  std::uint32_t recv_depth = 1;
  std::uint32_t send_sge = 1;
  std::uint32_t recv_sge = 1;
  std::uint32_t inline_bytes = 0;
  std::uint32_t completions = 1;  // most that a QP can have waiting in its CQ while all goes well
};

struct Description {
  std::string name;          // of the binary and in records
  std::string summary;       // one sentence, for --help
  bool server_sends = true;  // the machine under test posts the operations that are counted
  std::string operation;     // for the console: "SENDs out", "SENDs in"
};

class Benchmark {
 public:
  virtual ~Benchmark() = default;

  virtual Description describe() const = 0;
  // Registers options of its own; they become part of the record and of what both sides must agree on.
  virtual void options(OptionTable&) {}
  virtual QueueNeeds needs(const Operation& operation, Side side) const = 0;
  virtual std::unique_ptr<Workload> setup(const ThreadSetup& setup) const = 0;
  // The closed-form model of the machine under test.
  virtual Prediction predict(const ClusterWire& cluster, const Operation& operation, int ports) const = 0;
};

// The operation as the model names it.
VerbShape verb_shape(const Operation& operation, int ports);

}  // namespace verbscope
