// RECVs of a server for requests that come as datagrams.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "systems/answers/queue.hpp"

namespace verbscope {

inline constexpr std::uint32_t kMessageRecvList = 16;  // RECVs that are posted at a time

// As many RECVs of a queue of this depth (--rx_depth) as make whole lists. Throws Error: none.
std::uint32_t in_recv_lists(std::uint32_t depth);

// A ring of RECVs on each QP of a thread, in lists, for messages of up to so many bytes. A message begins on a line,
// behind the GRH.
class MessageRecvs {
 public:
  MessageRecvs(const ThreadSetup& setup, std::uint64_t message_bytes);

  // Posts the RECVs of the QPs of the thread's queues. Throws Error.
  std::vector<RecvLane> post(std::span<const AnswerQueue> queues);

 private:
  RecvLane post(ibv_qp* qp, std::uint32_t index);

  std::uint32_t length_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> requests_;
};

// After a pass: posts the lists of RECVs that are free again. False, with `end` set: a post failed.
inline bool give_back_recvs(std::span<RecvLane> lanes, RunEnd& end) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    RecvLane& lane = lanes[i];
    for (; lane.consumed >= lane.list; lane.consumed -= lane.list) {
      if (!post_succeeded(post_next_recvs(lane), static_cast<std::uint32_t>(i), end)) return false;
    }
  }
  return true;
}

}  // namespace verbscope
