// The server's part of an endpoint: requests are put together, handled at most once, and answered. Data path.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

// Names a request at the server, for an answer now or later.
struct RpcHandle {
  ServerSlot* slot = nullptr;
  std::uint64_t number = 0;  // the slot may have a later one
  std::uint16_t session = 0;

  std::uint8_t index() const { return static_cast<std::uint8_t>(number % kSessionSlots); }
};

// How long the data of a request is valid: until its handler returns, or until the response is sent, as workers need
// it.
enum class RequestLife : bool { until_return, until_response };

// A request as its handler sees it.
struct RpcRequest {
  RpcHandle handle;
  std::uint8_t type = 0;
  const std::byte* data = nullptr;
  std::uint32_t bytes = 0;
};

using RpcHandler = void (*)(void* context, const RpcRequest& request);

template <class Transport>
class RpcServer {
 public:
  RpcServer(PacketSender<Transport>& sender, EndpointState& state, MessagePool& pool, const RpcOptions& options)
      : sender_(sender), state_(state), pool_(pool), cut_(pool.cut()), options_(options) {
    handlers_.fill({&unserved, this});
  }

  // The server's end of a session.
  std::unique_ptr<ServerSlot[]> make_slots() {
    std::unique_ptr<ServerSlot[]> slots;
    if (used_slots_.empty()) {
      slots = std::make_unique<ServerSlot[]>(kSessionSlots);
    } else {
      slots = std::move(used_slots_.back());
      used_slots_.pop_back();
    }
    for (std::uint32_t i = 0; options_.preallocate && i < kSessionSlots; ++i) {
      slots[i].response = slots[i].preallocated = pool_.allocate(cut_.data);
    }
    return slots;
  }

  // The session is closed: requests whose handlers run get no response, and their handles no longer match.
  void abandon(ServerSlot* slots) const {
    for (std::uint32_t i = 0; i < kSessionSlots; ++i) {
      if (runs(slots[i])) slots[i].number |= kAbandoned;
    }
  }
  // Frees the memory of a closed session but for running handlers. If there are none, takes the slots for another
  // session, and returns true. No queue has its packets.
  bool release(std::unique_ptr<ServerSlot[]>& slots) {
    bool over = true;
    for (std::uint32_t i = 0; i < kSessionSlots; ++i) {
      ServerSlot& slot = slots[i];
      if (runs(slot)) {
        over = false;
        continue;
      }
      if (slot.request.data != nullptr) pool_.free(slot.request);
      if (slot.owns_response) pool_.free(slot.response);
      if (slot.preallocated.data != nullptr) pool_.free(slot.preallocated);
      slot = {};
    }
    if (over) used_slots_.push_back(std::move(slots));
    return over;
  }

  void serve(std::uint8_t type, RpcHandler handler, void* context, RequestLife life) {
    handlers_[type] = {handler, context, life == RequestLife::until_response};
    if (!handlers_[type].keeps_data) return;
    short_way_ = false;
    for (SessionEnd& end : state_.sessions) {
      for (std::uint32_t i = 0; end.served != nullptr && i < kSessionSlots; ++i) end.served[i].plain = false;
    }
  }

  // The buffer for a response of `bytes` bytes to a request; the handler fills it, or whoever answers later. Null: the
  // session is closed or the client has given the request up: it needs no answer.
  [[gnu::always_inline]] MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) {
    ServerSlot& slot = *handle.slot;
    if (slot.number != handle.number) [[unlikely]] {
      note_abandoned(slot, handle);
      return nullptr;
    }
    if (bytes - 1 >= slot.response.capacity) [[unlikely]]  // or 0 bytes
      allocate_response(slot, bytes);
    slot.response.bytes = bytes;
    return &slot.response;
  }
  // Sends the response that was filled.
  [[gnu::always_inline]] void respond(EndpointState& state, const RpcHandle& handle) {
    ServerSlot& slot = *handle.slot;
    if (slot.number != handle.number || slot.responded) [[unlikely]]
      return note_abandoned(slot, handle);
    slot.responded = true;
    if (slot.plain && sender_.may_send_only(slot.response.bytes)) [[likely]] {
      const SessionEnd& end = state.sessions[handle.session];
      sender_.send_only(end, end.header.with(slot.type, slot.response.bytes, handle.number), slot.response,
                        slot.response.bytes);
    } else {
      respond_slowly(slot, handle);
    }
  }

  // Takes a new request of one packet that its handler may read where it is. Returns false, and does nothing, if the
  // packet is something else.
  [[gnu::always_inline]] bool take_expected(EndpointState& state, const SessionEnd& end, const ReceivedHeader& h,
                                            const std::byte* packet, std::uint32_t length) {
    if (end.served == nullptr) [[unlikely]]
      return false;
    ServerSlot& slot = end.served[h.second_word() % kSessionSlots];
    const std::uint64_t number = h.second_word() ^ end.own;  // kRequestNumbers or more in another epoch
    if (!slot.plain || number <= slot.number || number >= kRequestNumbers || h.bytes() != length) [[unlikely]]
      return false;
    slot.number = number;
    slot.request_bytes = length;
    slot.request_packets = 1;
    slot.num_rx = 1;
    slot.type = h.type();
    slot.responded = false;
    ++state.counts.handled;
    state.counts.request_bytes += length;
    const Handler& handler = handlers_[h.type()];
    handler.function(handler.context, {{&slot, number, h.session()}, h.type(), packet + kPacketHeaderBytes, length});
    return true;
  }

  // A packet of this request was marked: its answer says so.
  void note_mark(std::uint16_t session, const PacketHeader& h) {
    ++state_.counts.marks;
    state_.sessions[session].served[h.request % kSessionSlots].marked = true;
  }

  void take(std::uint16_t session, const PacketHeader& h, const std::byte* packet, std::uint32_t bytes) {
    const auto index = static_cast<std::uint8_t>(h.request % kSessionSlots);
    ServerSlot& slot = state_.sessions[session].served[index];
    const auto number = static_cast<std::uint32_t>(h.number);
    const bool request = static_cast<PacketKind>(h.kind) == PacketKind::request;
    if (slot.used && h.request < slot.number) {
      ++state_.counts.stale;
      return;
    }
    if (request && h.bytes > cut_.most_bytes()) {
      ++state_.counts.unknown;
      return;
    }
    if (!slot.used || h.request > slot.number) {
      if (!request || number != 0) {  // its first packet is missing
        ++state_.counts.stale;
        return;
      }
      // The client has given up the request whose data a worker reads, or a copy of the response is not posted yet.
      if (slot.in_use || (slot.repeated && state_.flush_due)) [[unlikely]] {
        ++state_.counts.stale;
        return;
      }
      begin_request(slot, h);
    }
    const std::uint32_t total = slot.request_packets;
    if (request != (number < total) || (request && h.bytes != slot.request_bytes)) {
      ++state_.counts.unknown;
      return;
    }
    if (number != slot.num_rx) {
      if (number < slot.num_rx) answer_again(session, index, slot, number);
      ++state_.counts.stale;
      return;
    }
    if (!request) {
      if (!slot.responded || number - (total - 1) >= cut_.packets(slot.response.bytes)) {
        ++state_.counts.unknown;
        return;
      }
      ++slot.num_rx;
      return sender_.transmit({slot.number, number, session, index, PacketKind::response});
    }
    const std::uint32_t length = cut_.length(slot.request_bytes, number);
    if (bytes != kPacketHeaderBytes + length) {
      ++state_.counts.unknown;
      return;
    }
    ++slot.num_rx;
    state_.counts.request_bytes += length;
    const std::byte* data = packet + kPacketHeaderBytes;
    if (slot.request.data != nullptr) {
      std::memcpy(slot.request.data + cut_.offset(number), data, length);
      state_.charge(options_.costs.copy(length));
      data = slot.request.data;
    }
    if (number + 1 < total) return sender_.transmit({slot.number, number, session, index, PacketKind::credit_return});
    handle(session, slot, data);
  }

 private:
  struct Handler {
    RpcHandler function = nullptr;
    void* context = nullptr;
    bool keeps_data = false;
  };

  // Nothing handles requests of the type.
  static void unserved(void* server, const RpcRequest&) {
    RpcCounts& counts = static_cast<RpcServer*>(server)->state_.counts;
    --counts.handled;
    ++counts.unknown;
  }

  // A handler has taken the request and not answered it.
  bool runs(const ServerSlot& slot) const {
    return slot.used && !slot.responded && slot.num_rx >= slot.request_packets &&
           handlers_[slot.type].function != &unserved;
  }
  // The handler of a request of a closed session is over.
  void note_abandoned(ServerSlot& slot, const RpcHandle& handle) {
    if (slot.number != (handle.number | kAbandoned) || slot.responded) return;
    slot.responded = true;
    state_.end_later(handle.session);
  }

  // The request before it in the slot is over: its response has arrived.
  void begin_request(ServerSlot& slot, const PacketHeader& h) {
    if (slot.owns_response) pool_.free(std::exchange(slot.response, slot.preallocated));
    if (slot.request.data != nullptr) pool_.free(slot.request);
    slot.owns_response = false;
    slot.request = {};
    slot.number = h.request;
    slot.used = true;
    slot.responded = slot.repeated = false;
    slot.type = static_cast<std::uint8_t>(h.type);
    slot.num_rx = 0;
    slot.request_bytes = static_cast<std::uint32_t>(h.bytes);
    slot.request_packets = cut_.packets(slot.request_bytes);
    if (slot.request_packets > 1 || !options_.zero_copy || handlers_[slot.type].keeps_data) {
      slot.request = pool_.allocate(slot.request_bytes);
      state_.charge(options_.costs.allocate);
    }
    slot.plain = short_way_ && slot.request.data == nullptr && slot.response.data != nullptr &&
                 !state_.work.measured() && options_.control != RpcControl::dcqcn;
  }
  [[gnu::noinline]] void respond_slowly(ServerSlot& slot, const RpcHandle& handle) {
    slot.in_use = false;
    if (slot.request.data != nullptr) pool_.free(std::exchange(slot.request, {}));
    sender_.transmit({slot.number, slot.request_packets - 1, handle.session, handle.index(), PacketKind::response});
  }
  [[gnu::noinline]] void allocate_response(ServerSlot& slot, std::uint32_t bytes) {
    if (slot.response.data != nullptr && bytes <= slot.response.capacity) return;
    if (slot.owns_response) pool_.free(slot.response);
    slot.response = pool_.allocate(bytes);
    slot.owns_response = true;
    slot.plain = false;
    state_.charge(options_.costs.allocate);
  }

  // A packet that was taken before arrives again: its answer may be lost.
  void answer_again(std::uint16_t session, std::uint8_t index, ServerSlot& slot, std::uint32_t number) {
    if (number + 1 < slot.request_packets) {
      sender_.transmit({slot.number, number, session, index, PacketKind::credit_return});
    } else if (slot.responded) {
      slot.repeated = true;
      slot.plain = false;
      sender_.transmit({slot.number, number, session, index, PacketKind::response});
    }
  }

  void handle(std::uint16_t session, ServerSlot& slot, const std::byte* data) {
    const Handler& handler = handlers_[slot.type];
    ++state_.counts.handled;
    slot.in_use = handler.keeps_data;
    const WorkBlock work(state_.work, RpcWork::handler);
    handler.function(handler.context, {{&slot, slot.number, session}, slot.type, data, slot.request_bytes});
  }

  PacketSender<Transport>& sender_;
  EndpointState& state_;
  MessagePool& pool_;
  const PacketCut cut_;
  const RpcOptions& options_;
  std::array<Handler, 256> handlers_{};                    // by type
  bool short_way_ = true;                                  // no handler keeps the data of its requests
  std::vector<std::unique_ptr<ServerSlot[]>> used_slots_;  // of closed sessions, for later ones
};

}  // namespace verbscope
