// How an endpoint sends packets: at once, when its rate limiter lets them pass, or when the send queue has room again.
// Data path.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "systems/rpc/packet.hpp"
#include "systems/rpc/session.hpp"
#include "systems/rpc/timing_wheel.hpp"

namespace verbscope {

// A packet to be sent, as long as its slot still has the request.
struct OutgoingPacket {
  std::uint64_t request = 0;
  std::uint32_t number = 0;
  std::uint16_t session = 0;
  std::uint8_t slot = 0;
  PacketKind kind{};
};

template <class Transport>
class PacketSender {
 public:
  PacketSender(Transport& transport, EndpointState& state, const PacketCut& cut, const RpcOptions& options)
      : transport_(transport),
        state_(state),
        cut_(cut),
        options_(options),
        wheel_(options.wheel_horizon(cut.data + kPacketHeaderBytes)) {}

  // True if send_only() may be called for a message of `bytes` bytes.
  bool may_send_only(std::uint32_t bytes) const { return bytes < short_way_below_ && transport_.room() > 0; }
  // Sends the only packet of a message of `bytes` bytes now, without declaring work.
  [[gnu::always_inline]] void send_only(const SessionEnd& end, PacketWords h, const MessageBuffer& message,
                                        std::uint32_t bytes) {
    Transport& transport = transport_;
    std::byte* const data = message.data;
    const std::uint32_t lkey = message.lkey;
    std::memcpy(data - kPacketHeaderBytes, &h, sizeof h);
    transport.append(end.peer, data - kPacketHeaderBytes, data, bytes, lkey);
  }
  // Sends a packet now, or when the send queue has room.
  void transmit(const OutgoingPacket& packet) {
    if (deferred_.empty() && transport_.room() > 0) [[likely]]
      return append(packet);
    if (is_of_client(packet)) ++client_slot(packet).held;
    deferred_.push_back(packet);
    settle();
  }
  // Sends a packet of a client when it is `due`.
  void transmit_at(const OutgoingPacket& packet, Picos due) {
    ++client_slot(packet).held;
    ++state_.counts.limited;
    state_.charge(options_.costs.limiter);
    wheel_.insert(packet, due, state_.now);
    state_.limiter.set(wheel_.size(), state_.now);
    settle();
  }

  // Sends packets that waited for room in the send queue, as many as there is room for.
  void send_deferred() {
    while (deferred_head_ < deferred_.size() && transport_.room() > 0) release(deferred_[deferred_head_++]);
    if (deferred_head_ < deferred_.size()) return;
    if (deferred_.empty()) return;
    deferred_.clear();
    deferred_head_ = 0;
    settle();
  }
  // Call when packets begin or cease to wait, and when work is timed from now on.
  void settle() { short_way_below_ = idle() && !state_.work.measured() ? cut_.data + 1 : 0; }
  // Sends the packets that are due.
  void send_due() {
    if (wheel_.size() == 0) return;
    wheel_.reap(state_.now, [this](const OutgoingPacket& packet) { release(packet); });
    state_.limiter.set(wheel_.size(), state_.now);
    settle();
  }

  // Drops the packets of a session that wait. Their slots must not count them any more.
  void forget(std::uint16_t session) {
    const auto of_session = [session](const OutgoingPacket& packet) { return packet.session == session; };
    wheel_.remove(of_session);
    state_.limiter.set(wheel_.size(), state_.now);
    deferred_.erase(deferred_.begin(),
                    deferred_.begin() + static_cast<std::ptrdiff_t>(std::exchange(deferred_head_, 0)));
    std::erase_if(deferred_, of_session);
    settle();
  }

  bool idle() const { return wheel_.size() == 0 && deferred_.empty(); }
  // When a packet is due; the latest time if there is none.
  Picos next_due() const { return wheel_.size() == 0 ? Picos::max() : wheel_.next_due(); }

 private:
  static bool is_of_client(const OutgoingPacket& packet) {
    return packet.kind == PacketKind::request || packet.kind == PacketKind::request_for_response;
  }
  ClientSlot& client_slot(const OutgoingPacket& packet) {
    return state_.sessions[packet.session].client->slots[packet.slot];
  }
  ServerSlot& server_slot(const OutgoingPacket& packet) { return state_.sessions[packet.session].served[packet.slot]; }

  // A packet was held back; its time has come.
  void release(const OutgoingPacket& packet) {
    if (is_of_client(packet)) {
      ClientSlot& slot = client_slot(packet);
      --slot.held;
      if (!slot.active() || slot.number() != packet.request) return;
      slot.progress = state_.now;  // it is late only if no answer follows this
    } else if (server_slot(packet).number != packet.request) {
      return;
    }
    if (transport_.room() > 0) return append(packet);
    transmit(packet);
  }

  void append(const OutgoingPacket& packet) {
    const WorkBlock work(state_.work, RpcWork::send);
    const SessionEnd& end = state_.sessions[packet.session];
    state_.charge(options_.costs.packet);
    PacketHeader h{};
    h.session = end.header.session();
    h.kind = static_cast<std::uint8_t>(packet.kind) & 3;
    h.number = packet.number & 0x3fff;
    h.request = packet.request & (kRequestNumbers - 1);
    h.epoch = end.header.epoch();
    if (is_of_client(packet)) {
      ClientSlot& slot = client_slot(packet);
      slot.note_sent(packet.number, options_.credits, state_.now);
      if (packet.number < slot.sent_before) state_.flush_due = true;
      h.type = slot.call.type;
      if (packet.kind == PacketKind::request) {
        return append_data(end.peer, h, *slot.call.request, packet.number);
      }
    } else {
      ServerSlot& slot = server_slot(packet);
      if (slot.marked || slot.repeated) [[unlikely]] {
        h.marked = std::exchange(slot.marked, false) ? 1 : 0;
        if (slot.repeated) state_.flush_due = true;
      }
      if (packet.kind == PacketKind::response) {
        h.type = slot.type;
        return append_data(end.peer, h, slot.response, packet.number - (slot.request_packets - 1));
      }
    }
    transport_.append_header(end.peer, h);
  }

  // Packet `index` of a message.
  void append_data(const UdAddress& to, PacketHeader& h, const MessageBuffer& message, std::uint32_t index) {
    h.bytes = message.bytes & 0xffffff;
    std::byte* const header = message.header(index);
    std::memcpy(header, &h, sizeof h);
    transport_.append(to, header, message.data + cut_.offset(index), cut_.length(message.bytes, index), message.lkey);
  }

  Transport& transport_;
  EndpointState& state_;
  const PacketCut cut_;
  const RpcOptions& options_;
  TimingWheel<OutgoingPacket> wheel_;
  std::vector<OutgoingPacket> deferred_;  // packets that wait for room in the send queue: those from deferred_head_ on
  std::size_t deferred_head_ = 0;
  // One byte more than a packet can have, or 0: packets wait, so that some may be held of a slot, or work is timed.
  std::uint32_t short_way_below_ = cut_.data + 1;
};

}  // namespace verbscope
