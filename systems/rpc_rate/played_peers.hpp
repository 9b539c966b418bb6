// The peers of a thread on the null device, which has no network: they answer the requests of the thread and send it
// requests. This measures the loop of the endpoint.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "systems/rpc/datagram_transport.hpp"

namespace verbscope {

class PlayedPeers {
 public:
  // Construct it before RECVs are posted to `qp`. Each message is one packet. `batch`: requests per call of play().
  PlayedPeers(ibv_qp* qp, std::uint32_t request_bytes, std::uint32_t response_bytes, std::uint32_t batch);

  // Requests go to this session of the thread too. Both of its ends have this number.
  void call_in(std::uint16_t session) { callers_.push_back({session}); }

  // Answers the requests that `transport` has sent since the last call. With `calling`, sends a batch of requests if
  // there are sessions for them. A function of its own, so that its cost can be told from the loop's.
  [[gnu::noinline]] void play(const DatagramTransport& transport, bool calling);

 private:
  struct Caller {
    std::uint16_t session = 0;
    std::uint64_t next = 0;  // number of its next request
  };

  void deliver(PacketHeader header, std::uint32_t bytes, std::uint64_t tag);

  ibv_qp* qp_;
  std::uint32_t request_bytes_, response_bytes_, batch_;
  std::vector<std::byte> packet_;
  std::uint64_t seen_ = 0;  // packets of the thread
  std::vector<Caller> callers_;
  std::size_t turn_ = 0;
  std::uint64_t tag_ = 0;  // of the last request
};

}  // namespace verbscope
