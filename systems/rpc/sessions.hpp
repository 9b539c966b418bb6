// The life of the sessions of an endpoint: they are opened, fail or are closed, and their numbers are used again (eRPC,
// NSDI 2019, section 4.3 and appendix B).
//
// When a client's end fails, its packets leave the rate limiter at once, and its calls end once the adapter has read
// all packets that were posted. A server's end is kept until its running handlers have answered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/rpc_client.hpp"
#include "systems/rpc/rpc_server.hpp"
#include "systems/rpc/session.hpp"

namespace verbscope {

// Called when the end of a client fails by time-outs.
using SessionFailure = void (*)(void* context, std::uint16_t session);

template <class Transport>
class RpcSessions {
 public:
  RpcSessions(Transport& transport, PacketSender<Transport>& sender, RpcClient<Transport>& client,
              RpcServer<Transport>& server, EndpointState& state, const RpcOptions& options)
      : transport_(transport), sender_(sender), client_(client), server_(server), state_(state), options_(options) {
    state_.sessions.reserve(options.most_sessions());  // handlers and continuations may open sessions
  }

  void on_failure(SessionFailure function, void* context) {
    failure_ = function;
    failure_context_ = context;
  }

  // A client's end whose calls wait for connect(). Throws Error if the receive queue is too short for another session.
  SessionName reserve() {
    const SessionName name = take_number();
    state_.sessions[name.number].client = client_.make_session();
    return name;
  }
  // The peer has opened its end. Does nothing if the session has failed.
  void connect(std::uint16_t number, const UdAddress& to, const SessionName& remote) {
    SessionEnd& end = state_.sessions[number];
    if (end.client == nullptr || end.client->phase != ClientPhase::connecting) return;
    end.peer = to;
    end.header = PacketWords::of(PacketKind::request, remote);
    client_.begin(end, number);
  }
  // A server's end for requests from `from`. Throws like reserve().
  SessionName accept(const UdAddress& from, const SessionName& remote) {
    const SessionName name = take_number();
    SessionEnd& end = state_.sessions[name.number];
    end.peer = from;
    end.header = PacketWords::of(PacketKind::response, remote);
    end.served = server_.make_slots();
    return name;
  }

  // Fails a client's end: its calls end with RpcStatus::no_answer in the next pass, and so do later ones.
  void fail(std::uint16_t number) {
    SessionEnd& end = state_.sessions[number];
    if (end.client == nullptr || end.client->phase == ClientPhase::failed) return;
    const bool sent = end.client->phase == ClientPhase::open;
    cut_off(number, sent);
    client_.fail(*end.client);
    state_.end_later(number);
  }
  // Continuations of the calls that were made so far are not called. Close their sessions before the next pass.
  void forget_calls() {
    for (SessionEnd& end : state_.sessions) {
      if (end.client != nullptr) client_.forget_calls(*end.client);
    }
  }
  // Fails the sessions that timed out.
  void fail_expired() {
    for (const std::uint16_t number : std::exchange(state_.expired, {})) {
      if (state_.sessions[number].client->phase == ClientPhase::failed) continue;
      fail(number);
      if (failure_ != nullptr) failure_(failure_context_, number);
    }
  }
  // Closes an end. Its number and its RECVs are free when its calls have ended, or its handlers have answered.
  void close(std::uint16_t number) {
    SessionEnd& end = state_.sessions[number];
    if (end.closing || (end.client == nullptr && end.served == nullptr)) return;
    end.closing = true;
    if (end.client != nullptr) {
      fail(number);
    } else {
      cut_off(number, true);
      server_.abandon(end.served.get());
    }
    state_.end_later(number);
  }

  // Before the send queue is flushed: appends a packet behind those of the sessions that end, so that the flush waits
  // for them. Their peers drop it. Returns false if there is no room.
  bool prepare_flush() {
    const auto unflushed =
        std::ranges::find_if(state_.ending, [this](std::uint16_t number) { return state_.sessions[number].unflushed; });
    if (unflushed == state_.ending.end()) return true;
    if (transport_.room() == 0) return false;
    const SessionEnd& end = state_.sessions[*unflushed];
    PacketHeader h{};
    h.session = end.header.session();
    h.epoch = end.header.epoch();
    h.kind =
        static_cast<std::uint8_t>(end.client != nullptr ? PacketKind::request_for_response : PacketKind::response) & 3;
    transport_.append_header(end.peer, h);
    return true;
  }
  // No queue refers to the sessions that end.
  void end_flushed() {
    for (const std::uint16_t number : std::exchange(state_.ending, {})) {
      state_.sessions[number].unflushed = false;
      end_session(number);
    }
  }

 private:
  void end_session(std::uint16_t number) {
    if (state_.sessions[number].client != nullptr) {
      ClientSession& s = *state_.sessions[number].client;
      if (s.phase != ClientPhase::failed) return;
      client_.end_calls(s);  // continuations may open sessions, and call in this one
      if (!s.backlog.empty()) return;
    } else if (state_.sessions[number].served != nullptr) {
      if (!state_.sessions[number].closing || !server_.release(state_.sessions[number].served)) return;
    }
    SessionEnd& end = state_.sessions[number];
    if (!std::exchange(end.closing, false)) return;
    end.client.reset();
    end.served.reset();
    --open_;
    free_.push_back(number);
  }

  SessionName take_number() {
    if (open_ >= options_.most_sessions()) {
      verbscope::fail("{} sessions: at most {}, because each has {} credits and the receive queue {} RECVs", open_ + 1,
                      options_.most_sessions(), options_.credits, options_.recvs);
    }
    ++open_;
    std::uint16_t number = static_cast<std::uint16_t>(state_.sessions.size());
    if (free_.empty()) {
      state_.sessions.emplace_back().set_epoch(options_.first_epoch);
    } else {
      number = free_.back();
      free_.pop_back();
    }
    return {number, state_.sessions[number].epoch()};
  }

  // Packets of the session are neither sent nor received any more.
  void cut_off(std::uint16_t number, bool sent) {
    SessionEnd& end = state_.sessions[number];
    end.set_epoch(static_cast<std::uint16_t>(end.epoch() + 1));
    end.unflushed = sent;
    sender_.forget(number);
  }

  Transport& transport_;
  PacketSender<Transport>& sender_;
  RpcClient<Transport>& client_;
  RpcServer<Transport>& server_;
  EndpointState& state_;
  const RpcOptions& options_;
  SessionFailure failure_ = nullptr;
  void* failure_context_ = nullptr;
  std::vector<std::uint16_t> free_;  // numbers
  std::uint32_t open_ = 0;           // numbers in use
};

}  // namespace verbscope
