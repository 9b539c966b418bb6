// Load of each resource at a point: the utilisation that a simulator measured, or else the rate and the counted events
// relative to what the model allows. The load of latency comes from the CPU cost and the round trip of an operation.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "common/json.hpp"
#include "common/record.hpp"
#include "pcie_model/predict.hpp"

namespace verbscope {

// Cost in nanoseconds of each step of posting and polling. The defaults are those of configs/clusters/cib.json, `host`:
// calibrated on the single-core figures of Kalia et al., USENIX ATC 2016, or assumed there.
struct CpuCosts {
  double post_call = 10;
  double post_wqe = 26.2;
  double wc_line = 27;
  double doorbell = 40;
  double poll_call = 15;
  double poll_cqe = 10;
  double post_recv_wqe = 4;
};

// The costs of a simulated node, from the `extra` of its counters. Missing ones have the defaults above.
CpuCosts cpu_costs(const Json& extra);

// Nanoseconds per operation of the model's role. Use only the ratio of two operations.
double cpu_cost_ns(const Prediction& prediction, const CpuCosts& costs);

// Maximum of outstanding READs and atomics per QP: --outs, or the limit of Mellanox adapters.
double max_outstanding_reads(const Record& record);

struct RoundTrip {
  // Load of latency on an idle machine: rate x unloaded round trip / outstanding operations.
  double load = 0;
  // Shares of that trip in which requester and responder units work; 0 if the steps are unknown.
  double requester_share = 0, responder_share = 0;
  // Upper limit of the latency load: a few times the sum of `load` and `burst`. Infinite if unknown.
  double max_latency = std::numeric_limits<double>::infinity();
  bool reads_are_full = false;  // the QP's limit for READs and atomics binds, not the program's options
  double operations = 0;        // outstanding per posting machine; 0 if no option sets it
  bool returns = false;         // READs or atomics: WQEs wait for a response
  double burst = 0;             // share of a QP's outstanding operations that it posts at once
  // Share of the operations that wait for locks held by others. They wait longer when more operations are outstanding.
  double locked = 0;
  // Outstanding operations are counted per thread over all of its QPs (a ring). More QPs do not add any.
  bool ring = false;
};

// Uses the steps in a simulator's record (`steps_ps`), or else the latency of a READ on the adapters of Kalia et al.,
// ATC 2016. `prediction`: the record's, null if it has none.
RoundTrip round_trip(const Record& record, const Prediction* prediction);

// The option that sets the number of outstanding operations.
std::string outstanding_option(const Record& record);

// True if the benchmark always keeps one operation outstanding.
bool keeps_one_outstanding(const Record& record);

// Number of threads of all clients in the record.
double threads_of_clients(const Record& record);

struct Load {
  Resource resource;
  std::string node;        // "server", "client3"
  double utilisation = 0;  // 1: never idle
  double waited = 0;       // units: part of the utilisation spent waiting for QP contexts, addresses or RECVs
  double held_up = 0;      // units: part in which the WQE prefetch or earlier atomics kept work from the units
  // Units: the parts of `waited` for QP contexts and for addresses.
  double waited_contexts = 0, waited_addresses = 0;
  // Shares of these reads that would remain with caches of twice the size.
  double contexts_left = 0, addresses_left = 0;
  // Cost of WQE re-reads. Units: a part of their own work. Link to the NIC: a part of its load.
  double rereading = 0;
  // Resources that are held during link transfers: utilisation if nothing waited for the link, and the part of it in
  // which the link transfers their data. 0: unknown.
  double held_idle = 0, crossing = 0;
  // Link to the NIC: the parts for re-reads of QP contexts and of addresses.
  double contexts_read = 0, addresses_read = 0;
  // CPU: the part in which the thread waits for memory.
  double memory = 0;
  // Part of the load that would vanish if this resource were the limit. CPU and shared line: polling and per-batch
  // work, which do not grow with the batch. Link to the NIC: re-reads of WQEs that wait to be sent.
  double elastic = 0;
};

// The load of a resource on one side; null if there is none.
const Load* find_load(const std::vector<Load>& loads, Resource resource);
// Its utilisation; 0 if there is none.
double load_of(const std::vector<Load>& loads, Resource resource);

// The part of the load in which the resource itself works.
inline double own_work(const Load& load) {
  return load.utilisation - load.waited - load.held_up;
}

// True for resources that are held while they wait for another one, and so may be full because of the other one.
bool is_held_while_waiting(Resource resource);

// True for records of the RPC programs.
bool is_rpc(const Record& record);

// True if the receive queue that the command line gives has no RECVs for twice the credits of an RPC program.
bool recvs_bound_credits(const Record& record);

// What requests wait for if no resource is full: a program's own limit on outstanding operations, or of an RPC program
// its credits, its rate limiter, time-outs, or a receive queue that holds no more credits, or the log device of a
// replicated store.
Resource waited_for(const Record& record);

// Share of the time of its operations in which a replicated store waits until their entries are durable. 0 for other
// programs.
double waited_for_log(const Record& record);

// The CPU of the leader of a replicated store on hosts, as the leader has measured it; null for other records.
std::optional<Load> leader_load(const Record& record);

// The worker threads of an RPC program: adds their load. The CPU's is then that of the other threads.
void add_workers(const Record& record, std::vector<Load>& server);

// True if the switch's queue for the server's port makes up most of the packets' round trips.
bool waits_in_switch(const Record& record);

struct Loads {
  bool measured = false;  // busy times, of a simulator or the program; else inferred from rate, model and counters
  Resource waited_for = Resource::outstanding;
  double waited_share = 1;  // share of the latency in which operations wait for it
  bool alike = false;  // all machines do the same, so that the one under test stands for those that are about as busy
  std::vector<Load> server;
  std::vector<Load> peers;      // per resource, the load of the busiest client
  double atomic_slot_mean = 0;  // only with busy times: mean load of all slots
  CpuCosts cpu_costs;
  RoundTrip trip;
  // WQE cache lines that adapters re-read per operation, and the share of the outstanding WQEs that fits into the
  // cache.
  double wqes_reread = 0;
  double wqes_fit = 1;
  // Share of the re-reads that would remain with a cache of twice the size.
  double rereads_left = 0;
  // Cache size divided by the size of all WQEs that may wait for responses. Below 1 they do not fit. Infinite if
  // unknown.
  double waiting_wqes_fit = std::numeric_limits<double>::infinity();
};

// The known loads of a record that is ok. `prediction`: the record's, null if it has none.
Loads resource_loads(const Record& record, const Prediction* prediction);

// WQE cache lines that adapters re-read per operation.
double wqes_reread_per_op(const Record& record);

// Re-reads per operation above this are no measurement noise.
constexpr double kRereadCounts = 0.02;

// The prediction of a record, if it has one. Throws Error with the point's name if it is malformed.
std::optional<Prediction> prediction_of(const Record& record);

}  // namespace verbscope
