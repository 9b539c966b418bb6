// The messages of echo_rate. A request or a response is written into the peer's memory (WRITE) or arrives in a RECV
// (SEND).
//
// The last eight bytes of a message are its tag: who asked, and the number of the request on its QP, which counts from
// 1. A message that is written ends where its slot ends, so that the tag is one aligned word; slot (number - 1) %
// outstanding held a lower number before, so no stale tag is taken for a new one.
//
// Messages of one QP come in order even where some can be lost: a request is lost when a later one has come,
// or been answered, or when nothing has come for a while. It is then outstanding no more.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

inline constexpr std::uint32_t kTagBytes = 8;
inline constexpr std::uint64_t kTagNumbers = std::uint64_t{1} << 40;
constexpr std::uint64_t echo_tag(std::uint32_t client, std::uint64_t number) {
  return client * kTagNumbers + number % kTagNumbers;
}
constexpr std::uint64_t number_of(std::uint64_t tag) {
  return tag % kTagNumbers;
}
constexpr std::uint64_t client_of(std::uint64_t tag) {
  return tag / kTagNumbers;
}

// Equal places in memory for messages of one QP.
struct EchoSlots {
  std::byte* begin = nullptr;
  std::uint64_t stride = 0;
  std::byte* end_of(std::uint64_t index) const { return begin + (index + 1) * stride; }
};

// The number of the next message that has been written into `slots`, one for each of those outstanding, behind number
// `last`; 0: none. It looks `ahead` slots: over one where those before it may be lost.
inline std::uint64_t next_written(const EchoSlots& slots, std::uint64_t outstanding, std::uint64_t last,
                                  std::uint64_t ahead) {
  for (std::uint64_t i = 0; i < ahead; ++i) {
    const auto number = number_of(load_word<std::uint64_t>(slots.end_of((last + i) % outstanding) - kTagBytes));
    if (number <= last) continue;
    // Messages before it may have come since they were looked at.
    const std::uint64_t earlier = next_written(slots, outstanding, last, i);
    return earlier != 0 ? earlier : number;
  }
  return 0;
}

// Posts the oldest RECV of the ring that has completed. False, with `end` set: the post failed.
inline bool post_recv(RecvLane& ring, std::uint32_t queue, RunEnd& end) {
  return post_succeeded(post_next_recvs(ring), queue, end);
}

}  // namespace verbscope
