// A thread of a server that answers client threads by datagrams: its counts, its RECVs, its workload. Data path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/error.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/request_loop.hpp"
#include "systems/requests/peers.hpp"
#include "systems/requests/responses.hpp"

namespace verbscope {

// Counts of a thread in the measured interval.
struct PassCounts {
  BatchCounts batches;
  std::uint64_t passes = 0;
  std::uint64_t empty_passes = 0;
  std::uint64_t full_passes = 0;  // passes that found nearly as many requests as a pass can take
  std::uint64_t blocked = 0;      // requests left for the next pass because the send queue was full

  void merge(const PassCounts& other) {
    batches.merge(other.batches);
    passes += other.passes;
    empty_passes += other.empty_passes;
    full_passes += other.full_passes;
    blocked += other.blocked;
  }
};

// Counts a pass that served `served` of at most `most` requests and left `blocked`.
inline void count_pass(PassCounts& counts, std::uint64_t served, std::uint64_t most, std::uint64_t blocked) {
  ++counts.passes;
  counts.blocked += blocked;
  if (served + blocked == 0) ++counts.empty_passes;
  if (served + blocked >= most - most / 10) ++counts.full_passes;
}

// The state of a server thread. Systems add counts of the measured interval, and `begin_interval()`, which discards
// them.
struct RequestServer : ServerLoopState {
  std::span<SendQueue> queues;
  std::span<ResponsePort> ports;
  bool batching = false;        // the responses of a pass go out with one doorbell per port
  std::uint32_t max_batch = 1;  // largest number of responses per doorbell
  std::uint64_t unknown = 0;    // requests that no client of the run can have sent
};

// Requests by SEND that a pass takes at most: it polls one batch of completions.
inline std::uint64_t most_of_a_pass(const RequestServer& s) {
  return std::min<std::uint64_t>(s.max_batch, kRateBatch);
}

// RECVs per post for requests by datagram.
inline constexpr std::uint32_t kRequestRecvList = 16;

// The RECVs for datagrams of up to `bytes` bytes on each QP of a server's thread: as many whole lists as --rx_depth
// holds. Throws Error if there is none.
inline RecvShape request_recvs(const ThreadSetup& setup, std::uint64_t bytes) {
  const std::uint32_t depth = setup.operation.rx_depth;
  if (depth < kRequestRecvList)
    fail("--rx_depth {}: at least {}, because RECVs are posted that many at a time", depth, kRequestRecvList);
  return datagram_recvs(depth / kRequestRecvList * kRequestRecvList, bytes, kRequestRecvList);
}

// Posts the RECVs of each queue's QP. Throws Error.
inline std::vector<RecvLane> post_recvs(RecvRings& rings, std::span<const SendQueue> queues) {
  std::vector<RecvLane> lanes;
  for (const SendQueue& queue : queues) lanes.push_back(rings.post(queue.qp, static_cast<std::uint32_t>(lanes.size())));
  return lanes;
}

// The workload of a server's thread. Server is a RequestServer with `clients`, which are ResponseTargets.
template <class End, class Server>
class RequestServerEnd : public WorkloadOn<End> {
 public:
  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t sent_to(std::uint32_t node) const override {
    std::uint64_t sum = 0;
    for (const ResponseTarget& client : server_.clients) sum += client.node == node ? client.answered : 0;
    return sum;
  }
  std::uint64_t received() const override { return server_.served; }
  std::uint64_t wrong() const override { return server_.unknown; }

 protected:
  RequestServerEnd(const ThreadSetup& setup, const ResponseBodies& bodies, bool batching, std::uint32_t max_batch)
      : responses_(setup, bodies) {
    server_.cq = setup.cq;
    server_.queues = responses_.queues();
    server_.ports = responses_.ports();
    server_.batching = batching;
    server_.max_batch = max_batch;
  }

  ResponseQueues responses_;
  Server server_;
};

}  // namespace verbscope
