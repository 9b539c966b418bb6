// The plan of a point: the operation, the machines with their QPs, and the times. The benchmark drafts it; options and
// fabric complete it before any device is opened. Pure functions: every side computes the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/units.hpp"
#include "microbench/bench/options.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

enum class Side { server, client };

// The operation of a point.
struct Operation {
  // Decided by the benchmark (Benchmark::draft).
  Verb verb = Verb::send;
  Side driver = Side::server;          // posts the operations
  Side counted = Side::server;         // its threads' intervals make the rate
  std::uint32_t most_outstanding = 0;  // operations of a QP at a time; 0: as many as the queue holds
  std::uint32_t recv_list = 0;         // RECVs per post; 0: recv_list(rx_depth)
  // Outstanding requests by message of a client thread at one QP of the server. Without --rx_depth the server has RECVs
  // for those of all threads.
  std::uint32_t requests_per_client_thread = 0;
  std::uint32_t recvs_per_descriptor = 1;  // of UD QPs; more than 1: multi-packet receive queues
  bool shared_recv_queue = false;          // one per thread
  bool cq_per_qp = false;                  // a completion queue per QP, instead of one per thread
  std::string label = "SENDs out";         // of the rate, for the console
  bool datagrams_beside = false;           // some messages also go over UD
  std::uint32_t inline_up_to = 0;  // bytes: inline payloads up to this size, or the device's limit, not --inline_size
  bool immediate = false;          // WRITEs with an immediate, which complete a RECV at the target
  bool both_ways = false;          // both sides post, and the rate is that of both

  // Decided by make_plan.
  Transport transport = Transport::rc;
  std::uint32_t payload = 0;  // bytes
  bool header_only = false;   // 4-byte immediate
  bool inlined = false;
  std::uint32_t inline_limit = 0;  // bytes asked of the QP
  std::uint32_t post_list = 1;
  std::uint32_t signal_every = 1;
  std::uint32_t tx_depth = 128;
  std::uint32_t rx_depth = kUsualRxDepth;
  std::uint64_t messages_at_once = 0;  // outstanding requests at a QP of the server; 0: unknown
  std::uint32_t inline_recv = 0;       // bytes; 0: off
  bool builder = false;                // ibv_wr_* instead of ibv_post_send
  bool events = false;                 // sleep on completion events instead of polling
  bool validate = false;
  bool relaxed_ordering = false;  // of memory that no thread polls
  std::uint64_t seed = 1;

  bool reliable() const { return facts(transport).reliable && !datagrams_beside; }
  std::uint32_t outstanding() const {
    return most_outstanding == 0 || most_outstanding > tx_depth ? tx_depth : most_outstanding;
  }
};

// QPs that each thread of each client has for itself, instead of sharing those of the server's threads.
struct ClientQps {
  bool connected = false;  // one to the server, of the run's transport
  bool datagram = false;   // one on UD; the server's threads have --qp on each port, which all clients of that port use
};

// The machines of a point, their threads and QPs.
struct Topology {
  // Decided by make_plan.
  bool local = false;  // threads of one machine without any QP (fabric host)
  Transport transport = Transport::rc;
  std::uint32_t threads = 1;         // of the server
  std::uint32_t qps_per_thread = 1;  // at the server
  std::uint32_t clients = 1;
  std::uint32_t client_threads = 1;
  std::uint32_t ports = 1;  // of each side

  // Decided by the benchmark.
  std::optional<ClientQps> client_qps{};
  // Not 0: each thread of each machine, server and clients alike, has this many connected QPs to the thread of the same
  // number of each other machine. Then --threads and --client_threads are equal, unless any_thread is set.
  std::uint32_t qps_per_pair = 0;
  // With qps_per_pair, on UD: a QP sends to those of all threads of the other machines that use the same port, machine
  // by machine in the order of their threads; not only to those of the thread of the same number.
  bool any_thread = false;
  // This many consecutive threads of the server share the QPs and the completion queue of the first of them.
  std::uint32_t threads_per_qp = 1;
  bool clients_may_leave = false;  // if a client dies, it is counted and the run continues

  std::uint32_t machines() const { return clients + 1; }
  std::uint32_t threads_of(std::uint32_t machine) const { return machine == 0 ? threads : client_threads; }
  // Groups of the server's threads that share QPs; the last may have fewer threads.
  std::uint32_t groups() const { return (threads + threads_per_qp - 1) / threads_per_qp; }
  std::uint32_t server_qps() const { return groups() * qps_per_thread; }
  // Threads of all clients; with client_qps thread t of client c has the number c * client_threads + t.
  std::uint32_t all_client_threads() const { return clients * client_threads; }
};

// A simulated run without progress for this many retransmission timeouts (67 ms each by default) is stuck.
inline constexpr int kRetransmissions = 3;

struct Schedule {
  Picos warmup{0};
  Picos duration{0};
  std::optional<std::uint64_t>
      iters{};                  // per QP, with client_qps per thread: ends the interval instead of the duration
  bool forever = false;         // measure one interval after the other, and print the rate of each
  bool threads_end_it = false;  // the threads end the interval: decided by the benchmark, or by --iters
  Picos timeout{0};
  // Latest end of an interval, from the start of the threads, unless the threads end it.
  Picos longest{0};
  // Simulated: if nothing has completed for this long, the run is stuck.
  Picos stuck{0};
  // Largest accepted difference between the rates of the two halves of an interval, as a share. If it is larger,
  // another interval follows, twice as long.
  double steady_within = 0;
};

struct Plan {
  Operation operation{};
  Topology topology{};
  Schedule schedule{};
};

// The facts of the fabric that the plan depends on.
struct FabricFacts {
  bool simulated = false;
  bool local = false;                  // host: there are no QPs
  bool alone = false;                  // null and host: there are no clients
  std::uint32_t server_cores = 1;      // threads that fit, each on a core of its own
  std::uint32_t client_cores = 1;      // likewise
  std::uint32_t threads_per_core = 1;  // that fit if they are asked for
  std::uint32_t ports = 1;             // that --ib_port selects
  std::uint32_t default_clients = 1;   // enough that they are not the limit
  std::uint32_t max_inline = 0;        // bytes that the device inlines, if Operation::inline_up_to is set
};

// Completes the draft of a benchmark. Throws UsageError: more threads than cores, clients that would have no QP, a verb
// that the transport does not have.
Plan make_plan(const Options& options, const FabricFacts& facts, const Plan& draft);

// The plan as it overrides options in the record's config.
Json plan_json(const Plan& plan);

// The default of --cq_mod: at most 64 and half the queue, and small enough that a full queue always has a signaled
// request. It is a multiple or a divisor of the post list, so that the ring stays short, and divides `goal` (operations
// of a QP to measure exactly).
std::uint32_t default_signal_every(std::uint32_t post_list, std::uint32_t depth, std::optional<std::uint64_t> goal);

// The far end of a QP.
struct Partner {
  std::uint32_t node = 0;  // which client, 0 for the server; with Topology::qps_per_pair see peer_machine
  std::uint32_t qp = 0;    // index among that node's QPs
};

struct QpPlan {
  std::uint32_t port = 0;         // index among the ports in use
  std::uint32_t thread = 0;       // with Topology::threads_per_qp the server's group of threads
  std::vector<Partner> partners;  // one on RC and UC; on UD at the server one for every client
  Transport transport = Transport::rc;
};

// The QPs of one side. Server: QP k belongs to thread k / qps_per_thread and port k % ports; on RC and UC its peer is
// client k % clients. A client has its ends of the server's QPs in order, dealt to its threads in turn.
// With client_qps, client thread g (counted over all clients) uses port g % ports. The server has first its ends of the
// connected QPs, that of g in thread g % threads, then the UD QPs by thread, QP and port. A client has first the
// connected QPs of its threads, then their UD QPs. Each of these has every UD QP of the server on its port as a
// partner.
std::vector<QpPlan> plan_qps(const Topology& topology, Side side, std::uint32_t client);

// Machine 0 is the server, machine c + 1 is client c. Each machine numbers its peers from 0: peer_number is the number
// of `peer` at `machine`, peer_machine the machine of such a number. Without qps_per_pair a client has one peer, the
// server. With qps_per_pair thread t of each machine uses port t % ports.
constexpr std::uint32_t peer_number(std::uint32_t machine, std::uint32_t peer) {
  return peer < machine ? peer : peer - 1;
}
constexpr std::uint32_t peer_machine(std::uint32_t machine, std::uint32_t number) {
  return number < machine ? number : number + 1;
}

// The machines that `machine` is connected with, by these numbers.
std::vector<std::uint32_t> peer_machines(const Topology& topology, std::uint32_t machine);

// Threads, or groups of threads, that have at least one QP.
std::uint32_t used_threads(const std::vector<QpPlan>& qps);

}  // namespace verbscope
