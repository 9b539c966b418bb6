// The peers of a thread on the null device, which has no network: they answer the requests of the thread and send it
// requests. This measures the loop of the endpoint.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "machine/node.hpp"
#include "systems/rpc/datagram_transport.hpp"
#include "systems/rpc_rate/rpc_load.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {

// Work: as of RpcThreadOn.
template <class Work>
class PlayedPeers {
 public:
  // Construct it before RECVs are posted to `qp`. Each message is one packet. `work` must outlive it.
  PlayedPeers(ibv_qp* qp, Work& work, const RpcLoad& load)
      : qp_(qp),
        work_(work),
        batch_(load.batch),
        packet_(kPacketHeaderBytes + std::max(load.request_bytes, load.response_bytes)) {
    null_hold_recvs(qp);
  }

  // Requests go to this session of the thread too. Both of its ends have this number.
  void call_in(std::uint16_t session) { callers_.push_back({session}); }

  // Answers the requests that `transport` has sent since the last call. With `calling`, sends a batch of requests if
  // there are sessions for them. A function of its own, so that its cost can be told from the loop's.
  [[gnu::noinline]] void play(const DatagramTransport& transport, bool calling) {
    for (; seen_ < transport.appended(); ++seen_) answer(transport.request(seen_));
    for (std::uint32_t i = 0; calling && !callers_.empty() && i < batch_; ++i) {
      call(callers_[turn_]);
      turn_ = turn_ + 1 == callers_.size() ? 0 : turn_ + 1;
    }
  }

 private:
  struct Caller {
    std::uint16_t session = 0;
    std::uint64_t next = 0;  // number of its next request
  };

  void answer(const ibv_send_wr& sent) {
    const auto* packet = reinterpret_cast<const std::byte*>(sent.sg_list->addr);
    PacketHeader header = load_header(packet);
    if (static_cast<PacketKind>(header.kind) != PacketKind::request) return;
    const std::byte* const data = packet + kPacketHeaderBytes;
    MessageBuffer response{.data = packet_.data() + kPacketHeaderBytes, .bytes = work_.response_bytes()};
    const RpcRequest request{
        {}, static_cast<std::uint8_t>(header.type), data, static_cast<std::uint32_t>(header.bytes)};
    work_.answer(node_, request, first_word(data), response);
    header.kind = static_cast<std::uint8_t>(PacketKind::response) & 3;
    deliver(header, response.bytes);
  }
  void call(Caller& caller) {
    MessageBuffer request{.data = packet_.data() + kPacketHeaderBytes};
    typename Work::Asked asked;
    PacketHeader header{};
    header.type = work_.ask(request, ++tag_, asked);
    header.session = caller.session;
    header.kind = static_cast<std::uint8_t>(PacketKind::request) & 3;
    header.request = caller.next++ & ((std::uint64_t{1} << 44) - 1);
    header.epoch = kUsualEpoch;
    deliver(header, request.bytes);
  }
  // Drops the packet if there is no RECV for it, as an adapter does.
  void deliver(PacketHeader header, std::uint32_t bytes) {
    header.bytes = bytes & 0xffffff;
    std::memcpy(packet_.data(), &header, sizeof header);
    null_deliver(qp_, std::span(packet_).first(kPacketHeaderBytes + bytes));
  }

  HostNode node_;
  ibv_qp* qp_;
  Work& work_;
  std::uint32_t batch_;
  std::vector<std::byte> packet_;
  std::uint64_t seen_ = 0;  // packets of the thread
  std::vector<Caller> callers_;
  std::size_t turn_ = 0;
  std::uint64_t tag_ = 0;  // of the last request
};

}  // namespace verbscope
