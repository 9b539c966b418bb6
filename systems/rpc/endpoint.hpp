// General RPCs over datagrams: the endpoint of one thread, after eRPC (Kalia, Kaminsky and Andersen, NSDI 2019). The
// client drives the protocol (packet.hpp): each packet of the server answers one of the client. A packet to the server
// takes a credit of its session, and each packet from it returns one. Lost packets are sent again by go-back-N; a
// request is handled at most once.
//
// Transport sends and receives packets (datagram_transport.hpp):
// - room(): packets that may be appended,
// - append(to, header, data, bytes, lkey): a packet with data; the header is in front of it if contiguous,
// - append_header(to, header): one without; the header is copied,
// - post(end), flush(node, end): posts the appended packets; flush also waits until the adapter has sent them,
// - receive(end, take): hands over packets as take(packet, bytes); returns 0 if it took nothing from the adapter, or
//   -1. No packet is longer than the cut allows, and of each the bytes of a header can be read,
// - appended(), received(): packets so far,
// - marked(packet): whether a switch has marked a received packet for congestion,
// - release(end): the received packets have been read.
// Data path.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "machine/node.hpp"
#include "microbench/bench/control.hpp"
#include "systems/rpc/packet.hpp"
#include "systems/rpc/packet_sender.hpp"
#include "systems/rpc/rpc_client.hpp"
#include "systems/rpc/rpc_options.hpp"
#include "systems/rpc/rpc_server.hpp"
#include "systems/rpc/session.hpp"
#include "systems/rpc/sessions.hpp"

namespace verbscope {

// What an endpoint has done in a time.
struct RpcUse {
  RpcCounts counts;
  Picos time{0};
  bool work_measured = false;
  WorkTimes::Times work{};  // by kind; 0 if not measured
  double limiter_mean = 0;  // packets in the rate limiter
  std::size_t limiter_peak = 0;
  double limiter_busy = 0;    // share of the time with packets in it
  double credits_waited = 0;  // share of the time in which requests waited for credits
  Picos timed_out{0};         // sum over requests of the time without progress before time-outs
};

template <class Transport>
class RpcEndpoint {
 public:
  // The arguments must outlive the endpoint.
  RpcEndpoint(Transport& transport, MessagePool& pool, const RpcOptions& options)
      : transport_(transport),
        options_(options),
        sender_(transport, state_, pool.cut(), options),
        client_(sender_, state_, pool.cut(), options),
        server_(sender_, state_, pool, options),
        sessions_(transport, sender_, client_, server_, state_, options) {}
  RpcEndpoint(const RpcEndpoint&) = delete;
  RpcEndpoint& operator=(const RpcEndpoint&) = delete;

  // Opens a session whose requests go to `to`, where it has the number `remote`. Returns its number here. Throws Error
  // if the receive queue is too short for another session.
  std::uint16_t open_client(const UdAddress& to, std::uint16_t remote) {
    const std::uint16_t number = sessions_.reserve().number;
    sessions_.connect(number, to, {remote, kUsualEpoch});
    return number;
  }
  // Opens a session whose requests come from `from`, where it has the number `remote`.
  std::uint16_t open_server(const UdAddress& from, std::uint16_t remote) {
    return sessions_.accept(from, {remote, kUsualEpoch}).number;
  }
  // Opens, fails and closes sessions whose ends ask each other for their names.
  RpcSessions<Transport>& sessions() { return sessions_; }

  // Requests of this type are handled by `handler`, on this thread.
  void serve(std::uint8_t type, RpcHandler handler, void* context, RequestLife life = RequestLife::until_return) {
    server_.serve(type, handler, context, life);
  }

  // Sends a request in a session of open_client() or reserve(). If all slots are in use it waits for one.
  [[gnu::always_inline]] void call(std::uint16_t session, const RpcCall& call) {
    client_.call(state_, state_.sessions[session], session, call);
  }

  // The buffer for a response of `bytes` bytes to a request; the handler fills it, or whoever answers later. Null: the
  // session is closed or the client has given the request up: it needs no answer.
  [[gnu::always_inline]] MessageBuffer* response(const RpcHandle& handle, std::uint32_t bytes) {
    return server_.response(handle, bytes);
  }
  // Sends the response that was filled.
  [[gnu::always_inline]] void respond(const RpcHandle& handle) { server_.respond(state_, handle); }

  // Measures the time of each kind of work from now on, by the clock of `node`. Required on a simulated machine, which
  // declares it.
  template <Node N>
  void time_work(const N& node) {
    state_.work.start([](const void* of) { return static_cast<const N*>(of)->now(); }, &node,
                      !std::is_same_v<N, HostNode>);
    sender_.settle();
  }

  // One pass of the event loop. Returns a positive number if anything moved, or -1 with `end` set.
  template <Node N>
  int pass(N& node, RunEnd& end) {
    const WorkTimes::Times before = state_.work.times();
    stamp(node);
    const WorkBlock work(state_.work, RpcWork::send);
    state_.work.turn(RpcWork::receive);
    const int received = options_.batched_stamps ? receive(end) : receive_stamped(node, end);
    if (received < 0) return -1;
    state_.work.turn(RpcWork::send);
    sender_.send_deferred();  // after the responses: copies of requests leave before the next ones arrive
    sender_.send_due();
    if (state_.now >= scan_at_) [[unlikely]] {
      client_.resend_lost();
      sessions_.fail_expired();
      scan_at_ = state_.now + options_.rto / 10;
    }
    state_.work.turn(RpcWork::send);
    spend(node);
    if (state_.flush_due) [[unlikely]] {
      if (!flush(node, end)) return -1;
    } else if (!transport_.post(end)) {
      return -1;
    }
    // A pass in vain is not work for a request.
    if (received == 0 && transport_.appended() == appended_) state_.work.restore(before);
    count_packets();
    state_.work.turn(RpcWork::receive);
    return transport_.release(end) ? received : -1;
  }

  // True if no request is outstanding and no packet waits to be sent.
  bool drained() const { return client_.idle() && sender_.idle() && state_.ending.empty(); }
  // When the rate limiter or the scan for lost packets must run, if nothing arrives before.
  Picos wake_at() const { return state_.flush_due ? state_.now : std::min(scan_at_, sender_.next_due()); }
  Picos now() const { return state_.now; }  // the last time stamp

  // Declares work of a handler or a continuation; costs nothing on a host.
  void charge(Picos time) { state_.charge(time); }

  // Credits of all sessions that have not come back. 0 once drained.
  std::uint64_t credits_out() const {
    std::uint64_t out = 0;
    for (const SessionEnd& end : state_.sessions) {
      if (end.client != nullptr) out += options_.credits - end.client->credits;
    }
    return out;
  }

  const RpcCounts& counts() const { return state_.counts; }
  // Counts and times since the last clear_counts().
  RpcUse use() const {
    return {.counts = state_.counts,
            .time = state_.now - state_.counted_since,
            .work_measured = state_.work.measured(),
            .work = state_.work.times(),
            .limiter_mean = state_.limiter.mean(state_.now),
            .limiter_peak = state_.limiter.peak(),
            .limiter_busy = state_.limiter.busy(state_.now),
            .credits_waited = state_.credit_waits.busy(state_.now),
            .timed_out = state_.timed_out};
  }
  void clear_counts() { state_.clear_counts(); }
  // A session of open_client().
  const ClientSession& client(std::uint16_t session) const { return *state_.sessions[session].client; }

 private:
  // Waits until the adapter has sent all packets, and ends the sessions that wait for it.
  template <Node N>
  bool flush(N& node, RunEnd& end) {
    const bool prepared = sessions_.prepare_flush();
    ++state_.counts.flushes;
    state_.flush_due = !prepared;
    if (!transport_.flush(node, end)) return false;
    if (prepared) sessions_.end_flushed();
    return true;
  }

  // Spends the declared computing time. A host has spent its own.
  template <Node N>
  void spend(N& node) {
    if constexpr (std::is_same_v<N, HostNode>) {
      state_.cost = Picos(0);
    } else {
      const auto whole = std::chrono::duration_cast<Nanos>(state_.cost);
      state_.cost -= whole;
      node.compute(whole);
      state_.work.skip();
    }
  }

  // Adds the packets since the last time.
  void count_packets() {
    state_.counts.packets_sent += transport_.appended() - std::exchange(appended_, transport_.appended());
    state_.counts.packets_received += transport_.received() - std::exchange(received_, transport_.received());
  }

  template <Node N>
  void stamp(N& node) {
    const WorkBlock work(state_.work, RpcWork::control);
    state_.charge(options_.costs.stamp);
    state_.now = node.now();
  }

  [[gnu::always_inline]] int receive(RunEnd& end) {
    return transport_.receive(
        end, [&](const std::byte* packet, std::uint32_t bytes) __attribute__((always_inline)) { take(packet, bytes); });
  }
  // With a time stamp per packet.
  template <Node N>
  [[gnu::noinline]] int receive_stamped(N& node, RunEnd& end) {
    return transport_.receive(end, [&](const std::byte* packet, std::uint32_t bytes) {
      stamp(node);
      take(packet, bytes);
    });
  }

  // A new request of one packet, and the response to one, take a short way. It declares no work, so it is closed where
  // work is timed.
  [[gnu::always_inline]] void take(const std::byte* packet, std::uint32_t bytes) {
    const ReceivedHeader h(packet);
    const std::uint32_t length = bytes - kPacketHeaderBytes;  // of no message if the packet has no whole header
    SessionEnd* const end = state_.sessions.data() + h.session();
    if (end < std::to_address(state_.sessions.end())) [[likely]] {
      if (h.is_first(PacketKind::response)) {
        if (end->client != nullptr && client_.take_expected(state_, *end->client, h, packet, length)) return;
      } else if (h.is_first(PacketKind::request) && server_.take_expected(state_, *end, h, packet, length)) {
        return;
      }
    }
    take_other(packet, length);
  }

  [[gnu::noinline]] void take_other(const std::byte* packet, std::uint32_t length) {
    state_.charge(options_.costs.packet);
    const std::uint32_t bytes = kPacketHeaderBytes + length;
    if (bytes < kPacketHeaderBytes) {
      ++state_.counts.unknown;
      return;
    }
    const PacketHeader h = load_header(packet);
    const auto kind = static_cast<PacketKind>(h.kind);
    const bool to_server = kind == PacketKind::request || kind == PacketKind::request_for_response;
    if (h.session >= state_.sessions.size() || h.epoch != state_.sessions[h.session].epoch() ||
        (to_server ? state_.sessions[h.session].served == nullptr : state_.sessions[h.session].client == nullptr)) {
      ++state_.counts.strange;
      return;
    }
    if (to_server) {
      if (options_.control == RpcControl::dcqcn && transport_.marked(packet)) [[unlikely]] {
        server_.note_mark(static_cast<std::uint16_t>(h.session), h);
      }
      server_.take(static_cast<std::uint16_t>(h.session), h, packet, bytes);
    } else {
      client_.take(state_.sessions[h.session], h, packet, bytes);
    }
  }

  Transport& transport_;
  const RpcOptions& options_;
  EndpointState state_;
  PacketSender<Transport> sender_;
  RpcClient<Transport> client_;
  RpcServer<Transport> server_;
  RpcSessions<Transport> sessions_;
  Picos scan_at_{0};                           // for lost packets
  std::uint64_t appended_ = 0, received_ = 0;  // packets until the end of the last pass
};

}  // namespace verbscope
