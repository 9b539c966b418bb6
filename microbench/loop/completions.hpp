// How every loop reads a completion queue: what a wr_id says, and the one way to take completions and to check them.
// Data path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "microbench/bench/control.hpp"

namespace verbscope {

// The highest bit of a wr_id tells requests of a send queue from RECVs. A request's low half is the thread's queue that
// it was posted to, and the bits between are its number where the loop gives it one. A RECV's high half is the queue,
// its low half the place that the message goes to.
inline constexpr std::uint64_t kSendId = std::uint64_t{1} << 63;
constexpr std::uint64_t send_id(std::uint32_t queue, std::uint32_t request = 0) {
  return kSendId | std::uint64_t{request} << 32 | queue;
}
constexpr std::uint64_t recv_id(std::uint32_t queue, std::uint32_t place) {
  return std::uint64_t{queue} << 32 | place;
}

constexpr bool is_send_id(std::uint64_t wr_id) {
  return (wr_id & kSendId) != 0;
}
constexpr std::uint32_t sent_queue(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>(wr_id);
}
constexpr std::uint32_t sent_request(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>((wr_id & ~kSendId) >> 32);
}
constexpr std::uint32_t recv_queue(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>(wr_id >> 32);
}
constexpr std::uint32_t recv_place(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>(wr_id);
}

// Completions that a loop takes in one poll at most.
inline constexpr int kCompletionBatch = 16;
inline constexpr int kRateBatch = 32;  // the loops that measure rates of SEND, RECV, WRITE and READ take more

// Takes the completions that are there, `most` at most and kBatch at most, without waiting; checks each and hands it to
// `on_completion(wc)`, which may return false to give up, after having set `end`. Returns how many there were, or -1
// with `end` set.
template <int kBatch, class OnCompletion>
[[gnu::always_inline]] inline int take_completions(ibv_cq* cq, std::uint64_t most, RunEnd& end,
                                                   OnCompletion&& on_completion) {
  std::array<ibv_wc, kBatch> wcs;
  const int count = ibv_poll_cq(cq, static_cast<int>(std::min<std::uint64_t>(most, kBatch)), wcs.data());
  if (count < 0) [[unlikely]] {
    end = {.kind = EndKind::poll_failed, .code = -count};
    return -1;
  }
  for (const ibv_wc& wc : std::span(wcs).first(static_cast<std::size_t>(count))) {
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
      const std::uint32_t queue = is_send_id(wc.wr_id) ? sent_queue(wc.wr_id) : recv_queue(wc.wr_id);
      end = {EndKind::completion_failed, wc.status, wc.vendor_err, queue};
      return -1;
    }
    if constexpr (std::is_void_v<std::invoke_result_t<OnCompletion&, const ibv_wc&>>) {
      on_completion(wc);
    } else {
      if (!on_completion(wc)) [[unlikely]]
        return -1;
    }
  }
  return count;
}

}  // namespace verbscope
