// `--verify`: compares the WQEs that a driver wrote with those computed from their requests. Results of a post are
// collected first and counted only if no other post overlapped it.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "drivers_patch/layout.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"

namespace verbscope::driver {

// The WQE that a request should have.
struct ExpectedWqe {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  std::uint32_t elements = 0;
  std::uint64_t length = 0;
  std::uint64_t bytes = 0;  // 0: wire/ has no such WQE
  std::uint64_t inline_bytes = 0;
};
ExpectedWqe expected_wqe(NicFamily family, const QpFacts& qp, const Request& request);

// Compares the WQEs of one post, in order, starting at its position.
class PostCheck {
 public:
  PostCheck(CheckedQueue& queue, std::uint32_t position) : queue_(queue), position_(position) {}

  // Compares the next WQE with `expected`.
  void compare(const ExpectedWqe& expected);
  // Counts WQEs that are not compared.
  void skip(std::uint64_t wqes) { left_out_ += wqes; }
  // Checks that the driver continues at `next`, so that it wrote exactly the WQEs that were compared.
  void compare_end(std::uint32_t next);
  // The position after the WQEs that were compared.
  std::uint32_t position() const { return position_; }
  // Adds the results to the counts of the context.
  void count() const;

 private:
  struct Found {
    std::uint64_t count = 0;
    DifferenceExample example;
  };

  void differs(std::size_t kind, std::uint64_t expected, std::uint64_t found);
  void differs(Difference kind, std::uint64_t expected, std::uint64_t found) {
    if (expected != found) differs(static_cast<std::size_t>(kind), expected, found);
  }

  CheckedQueue& queue_;
  std::uint32_t position_;
  bool position_unknown_ = false;  // the position of the next WQE is unknown
  ExpectedWqe latest_;
  std::uint64_t wqes_ = 0, left_out_ = 0;
  std::array<Found, kDifferences> found_{};
};

// The queue of a QP whose context is verified, looked up at its first post; null if it cannot be read.
CheckedQueue* checked_queue(ibv_qp& qp);

// The position where its driver writes next.
inline std::uint32_t next_position_of(const CheckedQueue& queue) {
  return next_position(queue.queue, queue.guess.load(std::memory_order_relaxed));
}

// A post to a checked queue, between begin_post() and end_post().
struct PendingPost {
  std::uint32_t number = 0;
  bool alone = false;  // no other post was in progress when it began
};
inline PendingPost begin_post(CheckedQueue& queue) {
  const std::uint32_t number = queue.begun.fetch_add(1);
  return {number, queue.ended.load() == number};
}
inline void end_post(CheckedQueue& queue) {
  queue.ended.fetch_add(1);
}
// True if no other post was in progress since it began.
inline bool is_only_post(const CheckedQueue& queue, const PendingPost& post) {
  return post.alone && queue.begun.load() == post.number + 1;
}

void count_skipped(ContextChecks& checks, std::uint64_t wqes);

// Enables checks of a context's WQEs: ibv_post_send passes through a call that checks the WQEs after the provider wrote
// them. No effect if the adapter's queue memory cannot be read. The caller holds process.control.
void verify_context(WrappedContext& context);

// Replaces the provider's calls by calls that check the WQEs of a batch before wr_complete, while the provider still
// locks the queue. Call it before wrap_builder(), which then counts and calls these. `calls` belongs to the QP's
// builder.
void verify_builder(ibv_qp_ex& extended, BuilderCalls& calls);

}  // namespace verbscope::driver
