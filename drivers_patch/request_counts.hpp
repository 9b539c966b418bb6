// Counts the requests of a QP by shape: equal requests share one count, and their cost is computed when it is read.
// Also samples the time from a post to its completion. The completion is found by counting, since sends of a QP
// complete in the order of posting. QPs that several threads post to or poll, and those that had an error or a reset,
// are not sampled.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "drivers_patch/layout.hpp"
#include "drivers_patch/process.hpp"

namespace verbscope::driver {

// A request's shape in two words. `head`: elements, opcode (from bit 32), flags (from bit 40), posted alone (bit 63).
// `data`: offset, length (from bit 32).
struct Shape {
  std::uint64_t head;
  std::uint64_t data;
};

inline constexpr std::uint64_t kAlone = std::uint64_t{1} << 63;
inline constexpr unsigned kFlagsAt = 40;

// Elements and opcode in one word, as a request stores them.
inline std::uint64_t kind_word(const ibv_send_wr& wr) {
  static_assert(offsetof(ibv_send_wr, opcode) == offsetof(ibv_send_wr, num_sge) + 4 && sizeof wr.opcode == 4);
  std::uint64_t kind;
  std::memcpy(&kind, &wr.num_sge, sizeof kind);
  return kind;
}
// Elements, opcode and flags.
inline std::uint64_t shape_head(const ibv_send_wr& wr) {
  return kind_word(wr) | std::uint64_t{wr.send_flags} << kFlagsAt;
}
// For a request with one element.
inline std::uint64_t shape_data(const ibv_sge& element, std::uint64_t offset_mask) {
  return std::uint64_t{element.length} << 32 | (element.addr & offset_mask);
}

constexpr Request request_of(const Shape& shape) {
  return {.opcode = static_cast<ibv_wr_opcode>(shape.head >> 32 & 0xff),
          .flags = static_cast<unsigned>(shape.head >> kFlagsAt & 0xffff),
          .elements = static_cast<std::uint32_t>(shape.head),
          .length = shape.data >> 32,
          .offset = shape.data & 0xffffffff,
          .alone = (shape.head & kAlone) != 0};
}

// The request as it is counted. `alone` is not set.
Request posted_request(const ibv_send_wr& wr);

// The count of a shape; null if all its possible slots are taken by others.
std::uint64_t* count_of(QpCounts& counts, const Shape& shape);

// Counts `weight` requests like `wr`, which has several elements; a weight of -1 takes one back. `alone`: it was posted
// as a list of one.
void count_several(QpCounts& counts, const ibv_send_wr& wr, bool alone, std::uint64_t weight);
void count_shape(QpCounts& counts, const Shape& shape, std::uint64_t weight);

// Received RECVs of one length. `shape`: the length, or kWithoutMemory if nothing was written to their buffers.
inline constexpr std::uint64_t kWithoutMemory = std::uint64_t{1} << 32;
void count_received(QpCounts& counts, std::uint64_t shape, std::uint64_t weight);

// Adds 1 to the class of a number: 0, 1, 2 to 3, 4 to 7, ... The last class includes all larger numbers.
template <std::size_t classes>
void add_class(std::uint64_t (&counts)[classes], std::uint64_t number) {
  add(counts[std::min<std::size_t>(std::bit_width(number), classes - 1)]);
}

// Signaled requests that this thread has posted to the QP.
std::uint64_t signaled_requests(const QpCounts& counts);

// One request in this many is sampled; a power of two. Requests posted singly are counted per shape.
inline constexpr std::int64_t kSampleEvery = 1024;

// Call before posting a list. `signaled`: it has a signaled request. `uncounted`: signaled requests of it that `counts`
// does not contain yet. Returns true if the list's last signaled request is sampled.
bool sample_post(QpCounts& counts, bool signaled, std::uint64_t uncounted);
constexpr bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
// Call before posting an atomic on this address. The first kAtomicsNoted that are posted singly are recorded, and later
// samples.
void note_atomic(QpCounts& counts, std::uint64_t remote_address);
inline constexpr std::uint64_t kAtomicsNoted = 64;
inline constexpr int kAtomicsOfList = 16;  // recorded per list
// Estimates the outstanding READs and atomics of a QP and keeps the maximum. `uncounted`, `uncounted_signaled`:
// requests that are being posted and are not in `counts` yet.
void sample_reads(QpCounts& counts, std::uint64_t uncounted, std::uint64_t uncounted_signaled);
// Records atomics and outstanding READs of a list that begins with `first` and has been counted.
void sample_requests(QpCounts& counts, const ibv_send_wr& first);

// Call if the list was not posted.
void forget_sample(QpCounts& counts);
// Call after polling completions of sends of a QP with a pending sample.
void sample_completed(QpCounts& counts);
// Call at the first completion that this thread polls of the QP.
void note_poller(QpCounts& counts);

}  // namespace verbscope::driver
