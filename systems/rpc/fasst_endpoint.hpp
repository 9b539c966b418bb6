// RPCs as in FaSST (Kalia, Kaminsky and Andersen, "FaSST: Fast, Scalable and Simple Distributed Transactions with
// Two-Sided (RDMA) Datagram RPCs", OSDI 2016, section 4): one datagram each way, without sessions, credits, congestion
// control or retransmission. A lost packet is a request without an answer. The baseline of eRPC (NSDI 2019, figure 4).
//
// It has the members of RpcEndpoint (endpoint.hpp) that the benchmarks use, over the same transports. Data path.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "machine/node.hpp"
#include "microbench/bench/control.hpp"
#include "systems/rpc/endpoint.hpp"
#include "systems/rpc/message_buffer.hpp"
#include "systems/rpc/packet.hpp"
#include "systems/rpc/rpc_options.hpp"
#include "systems/rpc/rpc_server.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

template <class Transport>
class FasstEndpoint {
 public:
  // The arguments must outlive the endpoint.
  FasstEndpoint(Transport& transport, MessagePool& pool, const RpcOptions& options)
      : transport_(transport), pool_(pool), options_(options) {}
  FasstEndpoint(const FasstEndpoint&) = delete;
  FasstEndpoint& operator=(const FasstEndpoint&) = delete;

  // A peer whose packets name this endpoint by the returned number. It knows this endpoint by the number `remote`.
  std::uint16_t open_client(const UdAddress& to, std::uint16_t remote) {
    peers_.push_back({to, remote, {}});
    return static_cast<std::uint16_t>(peers_.size() - 1);
  }
  std::uint16_t open_server(const UdAddress& from, std::uint16_t remote) { return open_client(from, remote); }

  // Requests of this type are handled by `handler`, which answers before it returns.
  void serve(std::uint8_t type, RpcHandler handler, void* context, RequestLife = RequestLife::until_return) {
    handlers_.resize(std::max<std::size_t>(handlers_.size(), type + 1u));
    handlers_[type] = {handler, context};
  }

  void call(std::uint16_t peer, const RpcCall& call) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    slots_[index] = {call, ++sequence_ << kSlotBits | index, now_, peer, true};
    send({peer, index, false});
  }

  // The buffer for the response. The client reuses a slot when it has the response to its last request there, so that
  // no queue refers to the buffer of the slot any more.
  MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) {
    MessageBuffer& buffer = answer_of(handle).buffer;
    buffer.bytes = bytes;
    return &buffer;
  }
  void respond(const RpcHandle& handle) { send({handle.session, slot_of(handle.number), true}); }

  // One pass of the event loop. Returns a positive number if anything moved, or -1 with `end` set.
  template <Node N>
  int pass(N& node, RunEnd& end) {
    charge(options_.costs.stamp);
    now_ = node.now();
    send_deferred();
    const int received =
        transport_.receive(end, [&](const std::byte* packet, std::uint32_t bytes) { take(packet, bytes); });
    if (received < 0) return -1;
    if (now_ >= scan_at_) [[unlikely]]
      give_up_lost();
    const auto whole = std::chrono::duration_cast<Nanos>(cost_);
    cost_ -= whole;
    node.compute(whole);
    if (!transport_.post(end)) return -1;
    return transport_.release(end) ? received : -1;
  }

  // True if no request is outstanding and no packet waits to be sent.
  static constexpr std::uint64_t credits_out() { return 0; }  // it has none
  bool drained() const { return free_.size() == slots_.size() && deferred_.empty(); }
  // When requests without an answer must be looked for, if nothing arrives before.
  Picos wake_at() const { return scan_at_; }
  Picos now() const { return now_; }  // the last time stamp

  // Declares computing time; costs nothing on a host.
  void charge(Picos time) { cost_ += time; }

  // Kinds of work are not measured.
  template <Node N>
  void time_work(const N&) {}
  RpcUse use() const { return {.counts = counts_, .time = now_ - counted_since_}; }
  void clear_counts() {
    counts_ = {};
    counted_since_ = now_;
  }

 private:
  static constexpr unsigned kSlotBits = 16;  // of the number of a request

  struct Slot {
    RpcCall call;
    std::uint64_t number = 0;
    Picos sent{0};
    std::uint16_t peer = 0;
    bool active = false;
  };
  struct Answer {
    MessageBuffer buffer;
    std::uint64_t number = 0;  // of the request
    std::uint8_t type = 0;
  };
  struct Peer {
    UdAddress address;
    std::uint16_t remote;
    std::vector<Answer> answers;  // by slot of the peer
  };
  struct Outgoing {
    std::uint16_t peer;
    std::uint32_t slot;
    bool response;
  };
  struct Handler {
    RpcHandler function = nullptr;
    void* context = nullptr;
  };

  static std::uint32_t slot_of(std::uint64_t number) { return number & ((1u << kSlotBits) - 1); }
  Answer& answer_of(const RpcHandle& handle) { return peers_[handle.session].answers[slot_of(handle.number)]; }

  void send(const Outgoing& packet) {
    if (!deferred_.empty() || transport_.room() == 0) [[unlikely]] {
      deferred_.push_back(packet);
    } else {
      append(packet);
    }
  }
  void send_deferred() {
    while (deferred_head_ < deferred_.size() && transport_.room() > 0) append(deferred_[deferred_head_++]);
    if (deferred_head_ < deferred_.size()) return;
    deferred_.clear();
    deferred_head_ = 0;
  }

  void append(const Outgoing& packet) {
    const Peer& peer = peers_[packet.peer];
    if (packet.response) {
      const Answer& answer = peer.answers[packet.slot];
      append(peer, PacketKind::response, answer.type, answer.number, answer.buffer);
    } else {
      const Slot& slot = slots_[packet.slot];
      append(peer, PacketKind::request, slot.call.type, slot.number, *slot.call.request);
    }
  }
  void append(const Peer& peer, PacketKind kind, std::uint8_t type, std::uint64_t number,
              const MessageBuffer& message) {
    ++counts_.packets_sent;
    charge(options_.costs.fasst_packet);
    PacketHeader h{};
    h.type = type;
    h.bytes = message.bytes & 0xffffff;
    h.session = peer.remote;
    h.kind = static_cast<std::uint8_t>(kind) & 3;
    h.request = number & kNumberMask;
    h.epoch = kUsualEpoch;
    std::byte* const header = message.header(0);
    std::memcpy(header, &h, sizeof h);
    transport_.append(peer.address, header, message.data, message.bytes, message.lkey);
  }

  void take(const std::byte* packet, std::uint32_t bytes) {
    charge(options_.costs.fasst_packet);
    ++counts_.packets_received;
    const PacketHeader h = bytes < kPacketHeaderBytes ? PacketHeader{} : load_header(packet);
    const auto kind = static_cast<PacketKind>(h.kind);
    if (h.epoch != kUsualEpoch || h.session >= peers_.size() || h.bytes + kPacketHeaderBytes != bytes) [[unlikely]] {
      ++counts_.unknown;
    } else if (kind == PacketKind::request) {
      handle(h, packet + kPacketHeaderBytes);
    } else {
      take_response(h, packet + kPacketHeaderBytes);
    }
  }

  void handle(const PacketHeader& h, const std::byte* data) {
    if (h.type >= handlers_.size() || handlers_[h.type].function == nullptr) [[unlikely]] {
      ++counts_.unknown;
      return;
    }
    const auto session = static_cast<std::uint16_t>(h.session);
    const std::uint32_t slot = slot_of(h.request);
    std::vector<Answer>& answers = peers_[session].answers;
    while (answers.size() <= slot) answers.push_back({pool_.allocate(pool_.cut().data)});
    const auto type = static_cast<std::uint8_t>(h.type);
    answers[slot].number = h.request;
    answers[slot].type = type;
    ++counts_.handled;
    const Handler& handler = handlers_[type];
    handler.function(handler.context, {{nullptr, h.request, session}, type, data, static_cast<std::uint32_t>(h.bytes)});
  }

  void take_response(const PacketHeader& h, const std::byte* data) {
    const std::uint32_t index = slot_of(h.request);
    if (index >= slots_.size() || !slots_[index].active || (slots_[index].number & kNumberMask) != h.request) {
      ++counts_.stale;
      return;
    }
    MessageBuffer& to = *slots_[index].call.response;
    if (h.bytes > to.capacity) return finish(index, RpcStatus::response_large);
    to.bytes = static_cast<std::uint32_t>(h.bytes);
    std::memcpy(to.data, data, to.bytes);
    charge(options_.costs.copy(to.bytes));
    if (options_.round_trips != nullptr) options_.round_trips->record(now_ - slots_[index].sent);
    finish(index, RpcStatus::answered);
  }

  void give_up_lost() {
    for (std::uint32_t index = 0; index < slots_.size(); ++index) {
      if (!slots_[index].active || now_ - slots_[index].sent < options_.rto) continue;
      ++counts_.timeouts;
      finish(index, RpcStatus::no_answer);
    }
    scan_at_ = now_ + options_.rto / 10;
  }

  void finish(std::uint32_t index, RpcStatus status) {
    slots_[index].active = false;
    free_.push_back(index);
    ++counts_.answered;
    const RpcCall over = slots_[index].call;
    over.done(over.context, over.tag, status);
  }

  static constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 44) - 1;  // of the header's field

  Transport& transport_;
  MessagePool& pool_;
  const RpcOptions& options_;
  std::vector<Handler> handlers_;  // by type
  std::vector<Peer> peers_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // slots
  std::vector<Outgoing> deferred_;   // packets that wait for room in the send queue: those from deferred_head_ on
  std::size_t deferred_head_ = 0;
  std::uint64_t sequence_ = 0;
  RpcCounts counts_;
  Picos now_{0};
  Picos counted_since_{0};
  Picos cost_{0};  // declared, and not spent yet
  Picos scan_at_{0};
};

}  // namespace verbscope
