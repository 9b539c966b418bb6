// The RECVs of a thread's queues, and the memory that they fill.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// RECV j of a queue fills place j % places.
struct RecvShape {
  std::uint32_t count = 0;     // RECVs of each queue: a multiple of `list`
  std::uint32_t list = 1;      // RECVs per post
  std::uint32_t places = 0;    // of each queue; 0: one for each RECV
  std::uint64_t bytes = 0;     // of the longest message
  std::uint64_t stride = 0;    // bytes from a place to the next
  std::uint64_t offset = 0;    // bytes from the beginning of a place to its message
  std::uint32_t headroom = 0;  // bytes before the message that the adapter fills: a GRH
  int access = IBV_ACCESS_LOCAL_WRITE;
};

// Datagrams with a GRH: each message begins on a cache line.
RecvShape datagram_recvs(std::uint32_t count, std::uint64_t bytes, std::uint32_t list = 1);

// RECVs beyond those for the messages that may arrive at once: twice what an adapter is assumed to fetch at a time.
inline constexpr std::uint32_t kSpareRecvs = 32;
// RECVs of a QP for `at_once` messages that may arrive at once: some to spare, so that the adapter can fetch whole
// groups. Throws Error if the receive queue is too short for those messages.
std::uint32_t recvs_for(const Operation& op, std::uint64_t at_once);
// The shape of RECVs for messages of `payload` bytes, each at the end of its place. `datagram`: with a GRH.
RecvShape end_aligned_recvs(const Operation& op, std::uint32_t payload, std::uint64_t at_once, bool datagram);

class RecvRings {
 public:
  // Registers memory for `queues` rings; wr_ids name them from `first` on. Throws Error.
  RecvRings(const ThreadSetup& setup, std::size_t queues, const RecvShape& shape, std::uint32_t first = 0);

  // The ring of queue `index`; none of its RECVs is posted.
  RecvLane ring(ibv_qp* qp, std::uint32_t index);
  // The same, with all of them posted to `qp` or, if given, `srq`. Throws Error.
  RecvLane post(ibv_qp* qp, std::uint32_t index, ibv_srq* srq = nullptr);

  std::uint32_t lkey() const { return mr_.lkey(); }
  std::string memory() const { return buffer_.describe(); }

 private:
  std::uint32_t places() const { return shape_.places == 0 ? shape_.count : shape_.places; }

  RecvShape shape_;
  std::uint32_t first_;
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> requests_;
};

// Posts the lists of RECVs that are free again. `queues`: the send queues of the same QPs, which name the lanes. False,
// with `end` set: a post failed.
inline bool give_back_recvs(std::span<RecvLane> rings, std::span<const SendQueue> queues, RunEnd& end) {
  for (std::size_t i = 0; i < rings.size(); ++i) {
    RecvLane& ring = rings[i];
    for (; ring.consumed >= ring.list; ring.consumed -= ring.list) {
      if (!post_succeeded(post_next_recvs(ring), queues[i].index, end)) return false;
    }
  }
  return true;
}

}  // namespace verbscope
