// The places of echo_rate's messages, and the prebuilt requests that send and receive them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/region.hpp"
#include "microbench/echo/messages.hpp"
#include "microbench/loop/recv_ring.hpp"

namespace verbscope {

// Bytes from one place of a message that is written to the next. A message ends where its place ends.
std::uint64_t echo_stride(std::uint32_t payload);

// RECVs that a QP has when `under_way` messages may come at once: some to spare, so that the adapter can fetch whole
// groups. Throws Error when the receive queue is too short for those messages.
std::uint32_t echo_recvs(const Operation& op, std::uint64_t under_way);

// The RECVs of a queue for `under_way` messages of `payload` bytes that may come at once; each message ends where its
// place ends. `datagram`: each has a GRH before it.
RecvShape echo_recv_shape(const Operation& op, std::uint32_t payload, std::uint64_t under_way, bool datagram);

// The places of the messages that such a ring receives.
EchoSlots slots_of(const RecvLane& ring, std::uint32_t payload);

// One message per place: WRITEs go to the same place of the peer, SENDs to its RECVs.
class EchoSends {
 public:
  EchoSends(const ThreadSetup& setup, std::size_t count);

  // Builds the messages [begin, begin + count), which lie in `from` and go to `peer`. `written`: by WRITE.
  std::span<ibv_send_wr> build(std::size_t begin, std::size_t count, std::uint32_t queue, const EchoSlots& from,
                               std::uint32_t lkey, const LanePeer& peer, bool written);

 private:
  const Operation op_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
};

}  // namespace verbscope
