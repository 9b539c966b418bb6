// The messages of echo_rate, and the prebuilt requests that send them. A request or a response is written into the
// peer's memory (WRITE) or arrives in a RECV (SEND).
//
// The last eight bytes of a message are its tag: the client, and the number of the request on its QP, which counts from
// 1. A written message ends where its slot ends, so that the tag is one aligned word; slot (number - 1) % outstanding
// held a lower number before, so no stale tag is taken for a new one.
//
// Messages of one QP arrive in order even where some can be lost: a request is lost when a later one has arrived or
// been answered, or when nothing has arrived for a while. It is then no longer outstanding.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/loop/recv_ring.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The verbs of request and response, WRITE or SEND. write_send answers on a UD QP of its own.
enum class EchoMode : std::uint8_t { write_write, write_send, send_send };

struct EchoOptions {
  EchoMode mode = EchoMode::write_write;
  std::uint32_t outstanding = 16;  // requests per QP
  std::uint32_t answer_qps = 1;    // UD QPs of a server thread for responses
  Nanos work{0};                   // computing time of the server per request
  Picos give_up{0};  // a request that can be lost is given up after this long without a response on its QP

  bool requests_written() const { return mode != EchoMode::send_send; }
  bool responses_written() const { return mode == EchoMode::write_write; }
  bool answers_by_datagram(const Operation& op) const {
    return mode == EchoMode::write_send || !facts(op.transport).connected;
  }
};

inline constexpr std::uint32_t kTagBytes = 8;
inline constexpr std::uint64_t kEchoNumbers = std::uint64_t{1} << 40;
constexpr std::uint64_t echo_tag(std::uint32_t client, std::uint64_t number) {
  return client * kEchoNumbers + number % kEchoNumbers;
}
constexpr std::uint64_t number_of(std::uint64_t tag) {
  return tag % kEchoNumbers;
}
constexpr std::uint64_t client_of(std::uint64_t tag) {
  return tag / kEchoNumbers;
}

// Slots in memory for the messages of one QP. A message ends where its slot ends.
struct EchoSlots {
  std::byte* begin = nullptr;
  std::uint64_t stride = 0;
  std::byte* end_of(std::uint64_t index) const { return begin + (index + 1) * stride; }
};

// Bytes from a slot to the next.
inline std::uint64_t echo_stride(std::uint32_t payload) {
  return round_up(payload, kSlotAlignment);
}
// The slots that the peers of `lane` write to.
inline EchoSlots slots_of(const LocalRegion& region, const Lane& lane, std::uint32_t payload) {
  return {region.bytes.data() + slice_of(region.bytes.size(), lane.count, lane.index).offset, echo_stride(payload)};
}
// The slots of the messages that a ring of end_aligned_recvs() receives.
inline EchoSlots slots_of(const RecvLane& ring, std::uint32_t payload) {
  return {ring.payloads + payload - ring.stride, ring.stride};
}

// The number of the next message after number `last` that was written into `slots`, one for each outstanding request;
// 0: none. It looks at `ahead` slots: more than one where messages can be lost.
inline std::uint64_t next_written(const EchoSlots& slots, std::uint64_t outstanding, std::uint64_t last,
                                  std::uint64_t ahead) {
  for (std::uint64_t i = 0; i < ahead; ++i) {
    const auto number = number_of(load_word<std::uint64_t>(slots.end_of((last + i) % outstanding) - kTagBytes));
    if (number <= last) continue;
    // Messages before it may have arrived since their slots were read.
    const std::uint64_t earlier = next_written(slots, outstanding, last, i);
    return earlier != 0 ? earlier : number;
  }
  return 0;
}

// Prebuilt requests, one for each slot: WRITEs go to the same slot of the peer, SENDs to its RECVs.
class EchoSends {
 public:
  EchoSends(const ThreadSetup& setup, std::size_t count) : op_(setup.operation), segments_(count), requests_(count) {}

  // Builds the requests [begin, begin + count) for the messages in `from`, which go to `peer`. `written`: by WRITE.
  std::span<ibv_send_wr> build(std::size_t begin, std::size_t count, std::uint32_t queue, const EchoSlots& from,
                               std::uint32_t lkey, const LanePeer& peer, bool written) {
    for (std::size_t j = 0; j < count; ++j) {
      ibv_send_wr& wr = requests_[begin + j];
      segments_[begin + j] = {reinterpret_cast<std::uint64_t>(from.end_of(j)) - op_.payload, op_.payload, lkey};
      wr.wr_id = send_id(queue);
      wr.sg_list = &segments_[begin + j];
      wr.num_sge = 1;
      wr.opcode = written ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
      if (op_.inlined) wr.send_flags = IBV_SEND_INLINE;
      if (written) {
        const std::uint64_t slot_end = peer.region.address + peer.slice().offset + (j + 1) * echo_stride(op_.payload);
        wr.wr.rdma = {slot_end - op_.payload, peer.region.rkey};
      }
    }
    return {&requests_[begin], count};
  }

 private:
  const Operation op_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
};

}  // namespace verbscope
