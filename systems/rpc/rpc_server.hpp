// The server's part of an endpoint: requests are put together, handled at most once, and answered. Data path.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

// Names a request at the server, for an answer now or later.
struct RpcHandle {
  std::uint16_t session = 0;
  std::uint8_t slot = 0;
  std::uint64_t number = 0;
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
      : sender_(sender), state_(state), pool_(pool), cut_(pool.cut()), options_(options) {}

  std::unique_ptr<ServerSession> make_session() {
    auto session = std::make_unique<ServerSession>();
    for (ServerSlot& slot : session->slots) {
      if (options_.preallocate) slot.preallocated = pool_.allocate(cut_.data);
    }
    return session;
  }

  void serve(std::uint8_t type, RpcHandler handler, void* context, RequestLife life) {
    handlers_[type] = {handler, context, life == RequestLife::until_response};
  }

  // The buffer for a response of `bytes` bytes to a request; the handler fills it, or whoever answers later. Null: the
  // client has given the request up.
  MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) {
    ServerSlot& slot = slot_of(handle);
    if (slot.number != handle.number || slot.responded) return nullptr;
    if (slot.preallocated.data != nullptr && bytes <= slot.preallocated.capacity) {
      slot.response = slot.preallocated;
    } else {
      slot.response = pool_.allocate(bytes);
      slot.owns_response = true;
      state_.charge(options_.costs.allocate);
    }
    slot.response.bytes = bytes;
    return &slot.response;
  }
  // Sends the response that was filled.
  void respond(const RpcHandle& handle) {
    ServerSlot& slot = slot_of(handle);
    if (slot.number != handle.number || slot.responded) return;
    slot.responded = true;
    slot.in_use = false;
    if (slot.request.data != nullptr) pool_.free(std::exchange(slot.request, {}));
    sender_.transmit({slot.number, slot.request_packets - 1, handle.session, handle.slot, PacketKind::response});
  }

  // A packet of this request was marked: its answer says so.
  void note_mark(std::uint16_t session, const PacketHeader& h) {
    ++state_.counts.marks;
    state_.sessions[session].server->slots[h.request % kSessionSlots].marked = true;
  }

  void take(std::uint16_t session, const PacketHeader& h, const std::byte* packet, std::uint32_t bytes) {
    const auto index = static_cast<std::uint8_t>(h.request % kSessionSlots);
    ServerSlot& slot = state_.sessions[session].server->slots[index];
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
      if (slot.in_use) [[unlikely]] {  // the client has given up the request whose data a worker reads
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
    handle(session, index, slot, data);
  }

 private:
  struct Handler {
    RpcHandler function = nullptr;
    void* context = nullptr;
    bool keeps_data = false;
  };

  ServerSlot& slot_of(const RpcHandle& handle) { return state_.sessions[handle.session].server->slots[handle.slot]; }

  // The request before it in the slot is over: its response has arrived.
  void begin_request(ServerSlot& slot, const PacketHeader& h) {
    if (slot.owns_response) pool_.free(slot.response);
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
  }

  // A packet that was taken before arrives again: its answer may be lost.
  void answer_again(std::uint16_t session, std::uint8_t index, ServerSlot& slot, std::uint32_t number) {
    if (number + 1 < slot.request_packets) {
      sender_.transmit({slot.number, number, session, index, PacketKind::credit_return});
    } else if (slot.responded) {
      slot.repeated = true;
      sender_.transmit({slot.number, number, session, index, PacketKind::response});
    }
  }

  void handle(std::uint16_t session, std::uint8_t index, ServerSlot& slot, const std::byte* data) {
    const Handler& handler = handlers_[slot.type];
    if (handler.function == nullptr) [[unlikely]] {
      ++state_.counts.unknown;
      return;
    }
    ++state_.counts.handled;
    slot.in_use = handler.keeps_data;
    const WorkBlock work(state_.work, RpcWork::handler);
    handler.function(handler.context, {{session, index, slot.number}, slot.type, data, slot.request_bytes});
  }

  PacketSender<Transport>& sender_;
  EndpointState& state_;
  MessagePool& pool_;
  const PacketCut cut_;
  const RpcOptions& options_;
  std::array<Handler, 256> handlers_{};  // by type
};

}  // namespace verbscope
