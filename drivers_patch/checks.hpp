// What `--verify` compares: the WQE that a driver wrote with what was reckoned of its request. What a post shows is
// gathered first, and counted when it is known that it is of this post alone.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "drivers_patch/layout.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"

namespace verbscope::driver {

// Where the WQEs of a QP stand.
struct CheckedQueue {
  static constexpr RecordKind kKind = RecordKind::checked_queue;
  RecordHead head;
  SendQueue queue;  // without memory where there is nothing to look at
  QpRecord* qp = nullptr;
  ContextChecks* checks = nullptr;
  std::atomic<std::uint32_t> guess{0};  // of the position
  // Posts to the QP that began, and that ended: whoever is alone from its beginning to its end knows its own WQEs.
  std::atomic<std::uint32_t> begun{0};
  std::atomic<std::uint32_t> ended{0};
};

// What was reckoned of a request, to be compared with its WQE.
struct ReckonedWqe {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  std::uint32_t elements = 0;
  std::uint64_t length = 0;
  std::uint64_t bytes = 0;  // 0: wire/ knows no such WQE
  std::uint64_t inline_bytes = 0;
};
ReckonedWqe reckon(NicFamily family, const QpFacts& qp, const Request& request);

// The WQEs of one post, one after another from its position on.
class Look {
 public:
  Look(CheckedQueue& queue, std::uint32_t position) : queue_(queue), position_(position) {}

  // The next WQE is to be as reckoned.
  void compare(const ReckonedWqe& reckoned);
  // So many are not compared.
  void leave_out(std::uint64_t wqes) { left_out_ += wqes; }
  // The driver goes on at `next`: it wrote no more WQEs than were compared, and no fewer.
  void compare_end(std::uint32_t next);
  // Behind the WQEs that were compared.
  std::uint32_t position() const { return position_; }
  // Adds what was found to the counts of the context.
  void count() const;

 private:
  struct Found {
    std::uint64_t count = 0;
    DifferenceExample example;
  };

  void differs(std::size_t kind, std::uint64_t reckoned, std::uint64_t found);
  void differs(Difference kind, std::uint64_t reckoned, std::uint64_t found) {
    if (reckoned != found) differs(static_cast<std::size_t>(kind), reckoned, found);
  }

  CheckedQueue& queue_;
  std::uint32_t position_;
  bool lost_ = false;  // where the next WQE begins is not known
  ReckonedWqe latest_;
  std::uint64_t wqes_ = 0, left_out_ = 0;
  std::array<Found, kDifferences> found_{};
};

// The queue of a QP of a context that is verified, which is asked for with the first post; null where there is nothing
// to look at.
CheckedQueue* checked_queue(ibv_qp& qp);

// Where its driver writes next.
inline std::uint32_t next_of(const CheckedQueue& queue) {
  return next_position(queue.queue, queue.guess.load(std::memory_order_relaxed));
}

// A post to a checked queue, from begin_post() to end_post().
struct PostTurn {
  std::uint32_t number = 0;
  bool alone = false;  // none was under way when it began
};
inline PostTurn begin_post(CheckedQueue& queue) {
  const std::uint32_t number = queue.begun.fetch_add(1);
  return {number, queue.ended.load() == number};
}
inline void end_post(CheckedQueue& queue) {
  queue.ended.fetch_add(1);
}
// Whether no other one has been under way since it began.
inline bool is_alone(const CheckedQueue& queue, const PostTurn& turn) {
  return turn.alone && queue.begun.load() == turn.number + 1;
}

void count_left_out(ContextChecks& checks, std::uint64_t wqes);

}  // namespace verbscope::driver
