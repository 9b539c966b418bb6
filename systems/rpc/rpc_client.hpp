// The client's part of an endpoint: requests in their slots, credits, the rate of each session, and retransmission.
// Data path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

template <class Transport>
class RpcClient {
 public:
  RpcClient(PacketSender<Transport>& sender, EndpointState& state, const PacketCut& cut, const RpcOptions& options)
      : sender_(sender), state_(state), cut_(cut), options_(options) {}

  // The client's end of a session that has this number.
  std::unique_ptr<ClientSession> make_session(std::uint16_t number) const {
    auto session = std::make_unique<ClientSession>(options_);
    session->credits = options_.credits;
    for (std::uint32_t i = 0; i < kSessionSlots; ++i) {
      ClientSlot& slot = session->slots[i];
      slot.session = number;
      slot.number = i;
      slot.sent_at.resize(options_.credits);
      session->free[session->free_count++] = static_cast<std::uint8_t>(kSessionSlots - 1 - i);
    }
    return session;
  }

  void call(ClientSession& s, const RpcCall& call) {
    if (s.free_count == 0) {
      s.backlog.push_back(call);
    } else {
      start(s, s.slots[s.free[--s.free_count]], call);
    }
  }

  void take(ClientSession& s, const PacketHeader& h, const std::byte* packet, std::uint32_t bytes) {
    ClientSlot& slot = s.slots[h.request % kSessionSlots];
    const auto number = static_cast<std::uint32_t>(h.number);
    if (!slot.active || slot.number != h.request || number != slot.num_rx || slot.num_rx == slot.num_tx) {
      ++state_.counts.stale;
      return;
    }
    const bool response = static_cast<PacketKind>(h.kind) == PacketKind::response;
    if (response != (number + 1 >= slot.request_packets) || (response && !has_length(slot, h, bytes))) {
      ++state_.counts.unknown;
      return;
    }
    // A copy of the request is in the rate limiter: after this response the caller would own its bytes.
    if (number + 1 == slot.request_packets && slot.held > 0) {
      ++state_.counts.dropped_for_limiter;
      return;
    }
    const Picos round_trip = state_.now - slot.sent_at[number % options_.credits];
    if (number >= slot.sent_before) note_answer(s, round_trip, h.marked != 0);
    ++slot.num_rx;
    ++s.credits;
    slot.progress = state_.now;
    slot.timeouts = 0;
    if (response) {
      take_response(s, slot, h, packet);
    } else {
      send_more(s, slot);
    }
    if (s.waiting_count > 0 && s.credits > 0) serve_waiting(s);
  }

  // Go-back-N: packets without an answer for a time-out are sent again (section 5.3). Requests that wait for credits
  // or in the rate limiter are not late.
  void resend_lost() {
    for (ClientSlot *slot = active_, *following; slot != nullptr; slot = following) {
      following = slot->following;
      if (slot->num_tx == slot->num_rx || slot->held > 0 || state_.now - slot->progress < options_.rto) continue;
      ClientSession& s = *state_.sessions[slot->session].client;
      state_.timed_out += state_.now - slot->progress;
      slot->progress = state_.now;
      ++state_.counts.timeouts;
      s.credits += slot->num_tx - slot->num_rx;
      state_.counts.retransmitted += slot->num_tx - slot->num_rx;
      slot->sent_before = std::max(slot->sent_before, slot->num_tx);
      slot->num_tx = slot->num_rx;
      if (++slot->timeouts > options_.most_timeouts) {
        finish(s, *slot, RpcStatus::no_answer);  // all copies have left: packets sent again were flushed
      } else {
        send_more(s, *slot);
      }
    }
  }

  bool idle() const { return active_ == nullptr; }

 private:
  void start(ClientSession& s, ClientSlot& slot, const RpcCall& call) {
    slot.call = call;
    slot.number += kSessionSlots;
    slot.request_packets = cut_.packets(call.request->bytes);
    slot.response_packets = 1;
    slot.num_tx = slot.num_rx = slot.sent_before = slot.timeouts = 0;
    slot.progress = state_.now;
    slot.active = true;
    link(slot);
    send_more(s, slot);
  }

  void link(ClientSlot& slot) {
    slot.previous = nullptr;
    slot.following = active_;
    if (active_ != nullptr) active_->previous = &slot;
    active_ = &slot;
  }
  void unlink(ClientSlot& slot) {
    (slot.previous != nullptr ? slot.previous->following : active_) = slot.following;
    if (slot.following != nullptr) slot.following->previous = slot.previous;
  }

  // Sends packets of the slot as credits allow; the others wait for credits.
  void send_more(ClientSession& s, ClientSlot& slot) {
    const std::uint32_t known = slot.known();
    while (slot.num_tx < known && s.credits > 0) {
      --s.credits;
      const std::uint32_t number = slot.num_tx++;
      const bool request = number < slot.request_packets;
      const OutgoingPacket packet{slot.number, number, slot.session, slot_index(slot),
                                  request ? PacketKind::request : PacketKind::request_for_response};
      if (request && limited(s, slot)) {
        limit(s, slot, packet);
      } else {
        sender_.transmit(packet);
      }
    }
    if (slot.num_tx < known && !slot.waits) {
      slot.waits = true;
      s.waiting[(s.waiting_head + s.waiting_count++) % kSessionSlots] = slot_index(slot);
      ++state_.counts.credit_stalls;
      state_.credit_waits.set(state_.credit_waits.length() + 1, state_.now);
    }
  }

  // Whether packets of a request pass through the rate limiter.
  bool limited(const ClientSession& s, const ClientSlot& slot) const {
    if (options_.control == RpcControl::none) return false;
    return !options_.bypass_limiter || !s.rate.at_link_rate() || slot.held > 0;
  }
  void limit(ClientSession& s, ClientSlot& slot, const OutgoingPacket& packet) {
    const WorkBlock work(state_.work, RpcWork::control);
    const std::uint32_t bytes =
        kPacketHeaderBytes + cut_.length(slot.call.request->bytes, packet.number) + options_.frame_overhead;
    const Picos due = std::max(s.next_due, state_.now);
    s.next_due = due + Picos(static_cast<std::int64_t>(1e12 * bytes / s.rate.send(bytes, state_.now)));
    sender_.transmit_at(packet, due);
  }

  static std::uint8_t slot_index(const ClientSlot& slot) {
    return static_cast<std::uint8_t>(slot.number % kSessionSlots);
  }

  void note_answer(ClientSession& s, Picos round_trip, bool marked) {
    if (options_.round_trips != nullptr) options_.round_trips->record(round_trip);
    if (options_.control == RpcControl::none) return;
    if (options_.bypass_timely && s.rate.stays_at_link_rate(round_trip, marked)) return;
    const WorkBlock work(state_.work, RpcWork::control);
    s.rate.sample(round_trip, marked, s.next_due, state_.now);
    ++state_.counts.rate_updates;
    state_.charge(options_.costs.rate_update);
  }

  static std::uint32_t response_index(const ClientSlot& slot, const PacketHeader& h) {
    return static_cast<std::uint32_t>(h.number) - (slot.request_packets - 1);
  }
  // Whether a packet of a response has as many bytes as its place in the message says.
  bool has_length(const ClientSlot& slot, const PacketHeader& h, std::uint32_t bytes) const {
    const std::uint32_t index = response_index(slot, h);
    const std::uint32_t message = index == 0 ? static_cast<std::uint32_t>(h.bytes) : slot.call.response->bytes;
    return bytes == kPacketHeaderBytes + cut_.length(message, index);
  }

  void take_response(ClientSession& s, ClientSlot& slot, const PacketHeader& h, const std::byte* packet) {
    MessageBuffer& to = *slot.call.response;
    const std::uint32_t index = response_index(slot, h);
    if (index == 0) {
      if (h.bytes > to.capacity) return finish(s, slot, RpcStatus::response_large);
      to.bytes = static_cast<std::uint32_t>(h.bytes);
      slot.response_packets = cut_.packets(to.bytes);
    }
    const std::uint32_t length = cut_.length(to.bytes, index);
    send_more(s, slot);  // before the copy, so that the network does not wait for it
    std::memcpy(to.data + cut_.offset(index), packet + kPacketHeaderBytes, length);
    state_.charge(options_.costs.copy(length));
    if (slot.num_rx == slot.packets()) finish(s, slot, RpcStatus::answered);
  }

  void serve_waiting(ClientSession& s) {
    for (std::uint32_t left = s.waiting_count; left > 0 && s.credits > 0; --left) {
      ClientSlot& slot = s.slots[s.waiting[s.waiting_head]];
      s.waiting_head = (s.waiting_head + 1) % kSessionSlots;
      --s.waiting_count;
      state_.credit_waits.set(state_.credit_waits.length() - 1, state_.now);
      slot.waits = false;
      if (slot.active) send_more(s, slot);
    }
  }

  void finish(ClientSession& s, ClientSlot& slot, RpcStatus status) {
    const RpcCall over = slot.call;
    slot.active = false;
    unlink(slot);
    s.credits += slot.num_tx - slot.num_rx;
    slot.num_tx = slot.num_rx;
    if (s.backlog_head < s.backlog.size()) {
      const RpcCall following = s.backlog[s.backlog_head++];
      if (s.backlog_head == s.backlog.size()) {
        s.backlog.clear();
        s.backlog_head = 0;
      }
      start(s, slot, following);
    } else {
      s.free[s.free_count++] = slot_index(slot);
    }
    ++state_.counts.answered;
    const WorkBlock work(state_.work, RpcWork::handler);
    over.done(over.context, over.tag, status);
  }

  PacketSender<Transport>& sender_;
  EndpointState& state_;
  const PacketCut cut_;
  const RpcOptions& options_;
  ClientSlot* active_ = nullptr;  // requests without a response
};

}  // namespace verbscope
