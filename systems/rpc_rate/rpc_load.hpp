// The load of the RPC benchmarks, and the part of each thread in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "systems/rpc/datagram_transport.hpp"
#include "systems/rpc/rpc_options.hpp"
#include "systems/rpc/workers.hpp"

namespace verbscope {

struct RpcLoad {
  bool all_serve = true;               // every machine calls and serves; otherwise machine 0 serves the others
  bool serves = true;                  // false: on the null device, where only the played peers serve
  std::uint32_t played = 0;            // on the null device: peers of each thread
  std::uint32_t background_bytes = 0;  // of messages of the last thread of each client, to those of others; 0: none
  std::uint32_t batch = 3;         // requests that are sent together, and must all be answered before the next batch
  std::uint32_t outstanding = 60;  // requests of a thread: a multiple of `batch`
  std::uint32_t request_bytes = 32;
  std::uint32_t response_bytes = 32;
  std::uint32_t packet_bytes = 1024;    // header and data
  WorkerQueues::Shape worker_queues{};  // 0 workers: the thread of the endpoint handles slow requests
  bool clients_have_workers = true;

  std::uint32_t workers_of(std::uint32_t machine) const {
    return machine == 0 || clients_have_workers ? worker_queues.workers : 0;
  }
  // Threads of a machine that are not workers.
  std::uint32_t endpoints_of(const Topology& topology, std::uint32_t machine) const {
    return topology.threads_of(machine) - workers_of(machine);
  }
};

// The type of a request is its kind. Requests of this kind may be given to workers.
inline constexpr std::uint8_t kUsualRequest = 0, kSlowRequest = 1;

// The first word of each request and response is the tag of the request; that of a response also has this mark.
inline constexpr std::uint64_t kResponseMark = std::uint64_t{1} << 63;
// A tag has the number of the caller above these bits, and the number of the request among the caller's in them.
inline constexpr unsigned kSequenceBits = 40;
inline constexpr std::uint32_t kLeastMessage = 8;  // bytes: the tag
inline std::uint64_t first_word(const std::byte* message) {
  std::uint64_t word;
  std::memcpy(&word, message, sizeof word);
  return word;
}

// RECVs of a queue that are consumed, and wait to be posted again with a whole list: at most this many.
constexpr std::uint32_t unposted_recvs(const Operation& operation) {
  return DatagramTransport::recv_list(operation) - 1;
}
// RECVs of a thread's queue: whole lists.
std::uint32_t recvs_of(const ThreadSetup& setup);

// The place of a thread among those that call and serve each other.
struct RpcRole {
  bool background = false;
  std::uint32_t first_machine = 0;  // machines below it have no thread of this role
  std::uint32_t members = 1;        // threads of its machine with this role that use the same port
  std::uint32_t rank = 0;           // of this thread among them
  bool all_serve = true;
  bool calls = true;

  // The place of this thread of `own` among the peers of its role of a thread of `machine`, in the order of machines.
  // All machines between them have as many members.
  std::uint16_t place_at(std::uint32_t own, std::uint32_t machine) const {
    return static_cast<std::uint16_t>((peer_number(machine, own) - first_machine) * members + rank);
  }
};

std::uint32_t machine_of(const ThreadSetup& setup);
RpcRole role_of(const ThreadSetup& setup, const RpcLoad& load);
// The load of this thread, which may be in the background.
RpcLoad load_of(const ThreadSetup& setup, RpcLoad load);
// The peers of the thread's role.
std::vector<LanePeer> peers_of(const ThreadSetup& setup, const RpcLoad& load, const RpcRole& role);
// The number of this thread among the endpoints and workers of all machines, from 1 on.
std::uint64_t caller_number(const ThreadSetup& setup);
// The options of the thread's endpoint, which records the round trips of packets.
RpcOptions complete(RpcOptions options, const ThreadSetup& setup, const RpcLoad& load, Histogram& round_trips);

}  // namespace verbscope
