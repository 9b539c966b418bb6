#include "systems/rpc_rate/played_peers.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "systems/rpc_rate/rpc_thread.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {

PlayedPeers::PlayedPeers(ibv_qp* qp, std::uint32_t request_bytes, std::uint32_t response_bytes, std::uint32_t batch)
    : qp_(qp),
      request_bytes_(request_bytes),
      response_bytes_(response_bytes),
      batch_(batch),
      packet_(kPacketHeaderBytes + std::max(request_bytes, response_bytes)) {
  null_hold_recvs(qp);
}

// Drops the packet if there is no RECV for it, as an adapter does.
void PlayedPeers::deliver(PacketHeader header, std::uint32_t bytes, std::uint64_t tag) {
  header.bytes = bytes & 0xffffff;
  std::memcpy(packet_.data(), &header, sizeof header);
  fill_words(packet_.data() + kPacketHeaderBytes, bytes, tag);
  null_deliver(qp_, std::span(packet_).first(kPacketHeaderBytes + bytes));
}

void PlayedPeers::play(const DatagramTransport& transport, bool calling) {
  for (; seen_ < transport.appended(); ++seen_) {
    const auto* packet = reinterpret_cast<const std::byte*>(transport.request(seen_).sg_list->addr);
    PacketHeader header = load_header(packet);
    if (static_cast<PacketKind>(header.kind) != PacketKind::request) continue;
    header.kind = static_cast<std::uint8_t>(PacketKind::response) & 3;
    deliver(header, response_bytes_, first_word(packet + kPacketHeaderBytes) | kResponseMark);
  }
  for (std::uint32_t i = 0; calling && !callers_.empty() && i < batch_; ++i) {
    Caller& caller = callers_[turn_];
    turn_ = turn_ + 1 == callers_.size() ? 0 : turn_ + 1;
    PacketHeader header{};
    header.session = caller.session;
    header.kind = static_cast<std::uint8_t>(PacketKind::request) & 3;
    header.request = caller.next++ & ((std::uint64_t{1} << 44) - 1);
    header.epoch = kUsualEpoch;
    deliver(header, request_bytes_, ++tag_);
  }
}

}  // namespace verbscope
