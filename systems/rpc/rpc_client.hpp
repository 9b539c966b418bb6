// The client's part of an endpoint: requests in their slots, credits, the rate of each session, and retransmission.
// Data path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

template <class Transport>
class RpcClient {
 public:
  RpcClient(PacketSender<Transport>& sender, EndpointState& state, const PacketCut& cut, const RpcOptions& options)
      : sender_(sender), state_(state), cut_(cut), options_(options), round_trips_(options.round_trips) {}

  // The client's end of a session. Its calls wait until begin().
  std::unique_ptr<ClientSession> make_session() const {
    auto session = std::make_unique<ClientSession>(options_);
    session->credits = options_.credits;
    settle_rate(*session);
    return session;
  }

  // The peer has answered: the session is open.
  void begin(SessionEnd& end, std::uint16_t number) {
    ClientSession& s = *end.client;
    s.phase = ClientPhase::open;
    unsent_ -= s.backlog.size();
    for (const RpcCall& waiting : std::exchange(s.backlog, {})) call(state_, end, number, waiting);
  }
  // The session has failed: nothing of it is sent or received any more. Its packets are out of the rate limiter.
  void fail(ClientSession& s) {
    if (s.phase == ClientPhase::connecting) unsent_ -= s.backlog.size();
    s.phase = ClientPhase::failed;
    s.free = nullptr;
    state_.credit_waits.set(state_.credit_waits.length() - s.waiting_count, state_.now);
    s.waiting_count = 0;
    s.credits = options_.credits;
    for (std::uint32_t i = 0; s.slots != nullptr && i < kSessionSlots; ++i) {
      ClientSlot& slot = s.slots[i];
      slot.leave_short_way();
      slot.num_tx = slot.num_rx;
      slot.held = 0;
      slot.waits = false;
    }
  }
  // Ends all calls of a failed session, in their order. No queue has their packets.
  void end_calls(ClientSession& s) {
    std::vector<ClientSlot*> slots;
    for (std::uint32_t i = 0; s.slots != nullptr && i < kSessionSlots; ++i) {
      if (s.slots[i].active()) slots.push_back(&s.slots[i]);
    }
    std::ranges::sort(slots, {}, [](const ClientSlot* slot) { return slot->number(); });
    std::vector<RpcCall> over;
    for (ClientSlot* slot : slots) {
      slot->request_packets = 0;
      over.push_back(slot->call);
    }
    state_.begun += s.backlog.size() - s.backlog_head;
    while (s.backlog_head < s.backlog.size()) over.push_back(next_of_backlog(s));
    state_.counts.answered += over.size();
    for (const RpcCall& call : over) call.done(call.context, call.tag, RpcStatus::no_answer);
  }

  // Those who made the calls are gone: the continuations are not called.
  static void forget_calls(ClientSession& s) {
    constexpr auto kNobody = [](void*, std::uint64_t, RpcStatus) {};
    for (std::uint32_t i = 0; s.slots != nullptr && i < kSessionSlots; ++i) s.slots[i].call.done = kNobody;
    for (RpcCall& waiting : s.backlog) waiting.done = kNobody;
  }

  // `end`: a session of this endpoint as client, with this number.
  [[gnu::always_inline]] void call(EndpointState& state, SessionEnd& end, std::uint16_t number, const RpcCall& call) {
    ClientSession& s = *end.client;
    if (s.free == nullptr) [[unlikely]] {
      if (RpcCall* const later = make_room(end, number); later != nullptr) {
        *later = call;
        return;
      }
    }
    ClientSlot& slot = *s.free;
    s.free = slot.next_free;
    start(state, end, s, slot, call);
  }

  // Takes the response to a request whose only packet is on its way. Returns false, and does nothing, if the packet is
  // something else.
  [[gnu::always_inline]] bool take_expected(EndpointState& state, ClientSession& s, const ReceivedHeader& h,
                                            const std::byte* packet, std::uint32_t length) {
    if (s.short_way == nullptr) [[unlikely]]
      return false;
    const std::uint64_t second = h.second_word();
    ClientSlot& slot = s.short_way[second % kSessionSlots];
    if (second != slot.expected || h.bytes() != length) [[unlikely]]
      return false;
    MessageBuffer& to = *slot.call.response;
    const Picos round_trip = state.now - slot.sent_first;
    if (length > to.capacity || round_trip > s.steady_below) [[unlikely]]
      return false;
    slot.end_short_way();
    ++s.credits;
    to.bytes = length;
    copy_short(to.data, packet + kPacketHeaderBytes, length);
    if (round_trips_ != nullptr) round_trips_->record(round_trip);
    finish_untimed(state, s, slot, RpcStatus::answered);
    return true;
  }

  void take(SessionEnd& end, const PacketHeader& h, const std::byte* packet, std::uint32_t bytes) {
    ClientSession& s = *end.client;
    if (s.slots == nullptr) {
      ++state_.counts.stale;
      return;
    }
    ClientSlot& slot = s.slots[h.request % kSessionSlots];
    const auto number = static_cast<std::uint32_t>(h.number);
    slot.leave_short_way();
    if (!slot.on_long_way() || slot.number() != h.request || number != slot.num_rx || slot.num_rx == slot.num_tx) {
      ++state_.counts.stale;
      return;
    }
    const bool response = static_cast<PacketKind>(h.kind) == PacketKind::response;
    if (response != (number + 1 >= slot.request_packets) || (response && !has_length(slot, h, bytes))) {
      ++state_.counts.unknown;
      return;
    }
    // A copy of the request is in the rate limiter, or not posted yet: after this response the caller would own its
    // bytes.
    if (number + 1 == slot.request_packets && (slot.held > 0 || (slot.sent_before > 0 && state_.flush_due))) {
      ++state_.counts.dropped_for_limiter;
      return;
    }
    if (number >= slot.sent_before) note_answer(s, state_.now - slot.sent_at(number, options_.credits), h.marked != 0);
    ++slot.num_rx;
    ++s.credits;
    slot.progress = state_.now;
    slot.timeouts = 0;
    if (response) {
      take_response(s, slot, h, packet);
    } else {
      send_more(s, slot);
    }
    serve_waiting(s);
  }

  // Go-back-N: packets without an answer for a time-out are sent again (section 5.3). Requests that wait for credits
  // or in the rate limiter are not late. Sessions with too many time-outs in a row are added to `expired`.
  void resend_lost() {
    std::erase_if(watched_, [this](const SessionName& name) {
      const SessionEnd& end = state_.sessions[name.number];
      if (end.epoch() != name.epoch) return true;  // it has failed
      ClientSession& s = *end.client;
      s.watched = s.credits < options_.credits;
      settle(s);
      for (std::uint32_t i = 0; s.watched && i < kSessionSlots; ++i) {
        if (is_late(s.slots[i])) go_back(s, s.slots[i]);
      }
      return !s.watched;
    });
  }

  bool idle() const { return state_.begun == state_.counts.answered && unsent_ == 0; }

 private:
  static RpcCall next_of_backlog(ClientSession& s) {
    const RpcCall call = s.backlog[s.backlog_head++];
    if (s.backlog_head == s.backlog.size()) {
      s.backlog.clear();
      s.backlog_head = 0;
    }
    return call;
  }

  // No slot is free: the first call of an open session makes them, others wait. Returns where the call waits, or null.
  [[gnu::noinline]] RpcCall* make_room(const SessionEnd& end, std::uint16_t number) {
    ClientSession& s = *end.client;
    if (s.slots != nullptr || s.phase != ClientPhase::open) {
      if (s.phase == ClientPhase::connecting) ++unsent_;
      if (s.phase == ClientPhase::failed) state_.end_later(number);
      return &s.backlog.emplace_back();
    }
    s.slots = std::make_unique<ClientSlot[]>(kSessionSlots);
    for (std::uint32_t i = kSessionSlots; i-- > 0;) {
      ClientSlot& slot = s.slots[i];
      slot.session = number;
      slot.index = static_cast<std::uint8_t>(i);
      slot.expected = ~(end.own | i);
      slot.next_free = std::exchange(s.free, &slot);
    }
    watched_.reserve(state_.sessions.size());
    return nullptr;
  }

  [[gnu::always_inline]] void start(EndpointState& state, SessionEnd& end, ClientSession& s, ClientSlot& slot,
                                    const RpcCall& call) {
    const std::uint32_t bytes = call.request->bytes;
    slot.call = call;
    slot.sent_first = state.now;
    const std::uint64_t expected = slot.begin_short_way();
    ++state.begun;
    if ((s.direct || watch(end, slot.session)) && sender_.may_send_only(bytes)) [[likely]] {
      if (--s.credits == 0) [[unlikely]]
        settle(s);
      const PacketWords h = end.header.with(call.type, bytes, expected ^ end.own);
      sender_.send_only(end, h, *call.request, bytes);
    } else {
      slot.begin_long_way(cut_.packets(bytes), 0, state.now);
      send_more(s, slot);
    }
  }
  // The scan for lost packets looks at the session from now on, until it finds all credits back. Returns whether
  // requests may take the short way.
  [[gnu::noinline]] bool watch(const SessionEnd& end, std::uint16_t number) {
    ClientSession& s = *end.client;
    if (!std::exchange(s.watched, true)) watched_.push_back({number, end.epoch()});
    settle(s);
    return s.direct;
  }
  // Decides whether packets may take the short way. Call when the last credit was taken, when the long way has changed
  // the credits, and when `limited` or `watched` may have changed.
  [[gnu::noinline]] static void settle(ClientSession& s) {
    const bool may = s.credits > 0 && s.waiting_count == 0;
    s.short_way = may ? s.slots.get() : nullptr;
    s.direct = may && s.watched && !s.limited;
  }
  bool is_late(const ClientSlot& slot) const {
    if (slot.on_short_way()) return state_.now - slot.sent_first >= options_.rto;
    return slot.num_tx != slot.num_rx && slot.held == 0 &&
           state_.now - slot.progress >= options_.wait_after(slot.timeouts);
  }
  void go_back(ClientSession& s, ClientSlot& slot) {
    slot.leave_short_way();
    state_.timed_out += state_.now - slot.progress;
    slot.progress = state_.now;
    ++state_.counts.timeouts;
    s.credits += slot.num_tx - slot.num_rx;
    state_.counts.retransmitted += slot.num_tx - slot.num_rx;
    slot.sent_before = std::max(slot.sent_before, slot.num_tx);
    slot.num_tx = slot.num_rx;
    if (++slot.timeouts > options_.most_timeouts) {
      state_.expired.push_back(slot.session);
    } else {
      send_more(s, slot);
    }
  }

  // Sends packets of the slot as credits allow; the others wait for credits.
  void send_more(ClientSession& s, ClientSlot& slot) {
    const std::uint32_t known = slot.known();
    while (slot.num_tx < known && s.credits > 0) {
      --s.credits;
      const std::uint32_t number = slot.num_tx++;
      const bool request = number < slot.request_packets;
      const OutgoingPacket packet{slot.number(), number, slot.session, slot.index,
                                  request ? PacketKind::request : PacketKind::request_for_response};
      if (request && limited(s, slot)) {
        limit(s, slot, packet);
      } else {
        sender_.transmit(packet);
      }
    }
    if (slot.num_tx < known && !slot.waits) {
      slot.waits = true;
      s.waiting[(s.waiting_head + s.waiting_count++) % kSessionSlots] = slot.index;
      ++state_.counts.credit_stalls;
      state_.credit_waits.set(state_.credit_waits.length() + 1, state_.now);
    }
    settle(s);
  }

  // Whether packets of a request pass through the rate limiter.
  bool limited(const ClientSession& s, const ClientSlot& slot) const {
    return s.limited || (slot.held > 0 && options_.control != RpcControl::none);
  }
  // Call when the rate of the session may have changed.
  void settle_rate(ClientSession& s) const {
    const bool free = options_.control == RpcControl::none;
    s.limited = !free && (!options_.bypass_limiter || !s.rate.at_link_rate());
    settle(s);
    s.steady_below = free ? Picos::max() : options_.bypass_timely ? s.rate.steady_below() : Picos::min();
  }
  void limit(ClientSession& s, ClientSlot& slot, const OutgoingPacket& packet) {
    const WorkBlock work(state_.work, RpcWork::control);
    const std::uint32_t bytes =
        kPacketHeaderBytes + cut_.length(slot.call.request->bytes, packet.number) + options_.frame_overhead;
    const Picos due = std::max(s.next_due, state_.now);
    s.next_due = due + Picos(static_cast<std::int64_t>(1e12 * bytes / s.rate.send(bytes, state_.now)));
    settle_rate(s);
    sender_.transmit_at(packet, due);
  }

  void note_answer(ClientSession& s, Picos round_trip, bool marked) {
    if (round_trips_ != nullptr) round_trips_->record(round_trip);
    if (options_.control == RpcControl::none || (round_trip <= s.steady_below && !marked)) return;
    const WorkBlock work(state_.work, RpcWork::control);
    s.rate.sample(round_trip, marked, s.next_due, state_.now);
    settle_rate(s);
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
      if (slot.on_long_way()) send_more(s, slot);
    }
    settle(s);
  }

  void finish(ClientSession& s, ClientSlot& slot, RpcStatus status) {
    const WorkBlock work(state_.work, RpcWork::handler);
    slot.request_packets = 0;
    finish_untimed(state_, s, slot, status);
  }
  [[gnu::always_inline]] void finish_untimed(EndpointState& state, ClientSession& s, ClientSlot& slot,
                                             RpcStatus status) {
    ++state.counts.answered;
    if (s.free == nullptr && !s.backlog.empty()) [[unlikely]]
      return finish_and_start(s, slot, status);
    slot.next_free = s.free;
    s.free = &slot;
    slot.call.done(slot.call.context, slot.call.tag, status);
  }
  // The next request that waits for a slot takes this one.
  [[gnu::noinline]] void finish_and_start(ClientSession& s, ClientSlot& slot, RpcStatus status) {
    const RpcCall over = slot.call;
    start(state_, state_.sessions[slot.session], s, slot, next_of_backlog(s));
    over.done(over.context, over.tag, status);
  }

  PacketSender<Transport>& sender_;
  EndpointState& state_;
  const PacketCut cut_;
  const RpcOptions& options_;
  Histogram* const round_trips_;      // may be null
  std::size_t unsent_ = 0;            // calls that wait until their session is open
  std::vector<SessionName> watched_;  // sessions with packets on their way, and some without
};

}  // namespace verbscope
