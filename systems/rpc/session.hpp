// The state of RPC sessions. A session joins two endpoints: one sends requests in it, the other answers them. It has
// eight slots, each for one request at a time, and further requests wait (eRPC, NSDI 2019, section 4.3).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "systems/rpc/message_buffer.hpp"
#include "systems/rpc/rate_control.hpp"
#include "systems/rpc/rpc_options.hpp"
#include "systems/rpc/work_times.hpp"

namespace verbscope {

inline constexpr std::uint32_t kSessionSlots = 8;

// How a request ended.
enum class RpcStatus : std::uint8_t {
  answered,
  no_answer,       // the peer does not answer, or the session was reset
  response_large,  // the response does not fit into its buffer
};

// Called once for each request when it is over; both of its buffers then belong to the caller again.
using Continuation = void (*)(void* context, std::uint64_t tag, RpcStatus status);

// A request as the caller hands it over. The buffers are the caller's and must outlive the request.
struct RpcCall {
  std::uint8_t type = 0;
  MessageBuffer* request = nullptr;   // request->bytes are sent
  MessageBuffer* response = nullptr;  // response->bytes is set
  Continuation done = nullptr;
  void* context = nullptr;
  std::uint64_t tag = 0;
};

// A request on its way. While its only packet is on its way and was sent once, it takes the short way, otherwise the
// long one. Invariant: num_rx <= num_tx.
struct alignas(64) ClientSlot {
  // On the short way the second header word of the response (PacketWords), otherwise its complement, which no packet
  // for this slot has.
  std::uint64_t expected = 0;
  RpcCall call;
  Picos sent_first{0};  // when packet 0 was
  ClientSlot* next_free = nullptr;

  // The long way:
  std::uint32_t request_packets = 0;   // n; 0 while no request takes the long way
  std::uint32_t response_packets = 0;  // k; 1 until the first packet tells
  std::uint32_t num_tx = 0;            // packets sent, requests for response included
  std::uint32_t num_rx = 0;            // packets received in order
  std::uint32_t sent_before = 0;       // packets below this number are sent again
  std::uint32_t timeouts = 0;          // in a row, without progress
  // Time of the last packet received, of the last time-out, or when a packet that was held back left.
  Picos progress{0};
  std::unique_ptr<Picos[]> sent_later;  // when packet i > 0 was, at place i % credits; null until there is one
  std::uint32_t held = 0;               // packets that wait in the rate limiter or for room in the send queue
  std::uint16_t session = 0;
  std::uint8_t index = 0;  // in the session: the number of each request modulo kSessionSlots
  bool waits = false;      // for credits

  bool on_short_way() const { return expected % kSessionSlots == index; }
  bool on_long_way() const { return request_packets != 0; }
  bool active() const { return on_short_way() || on_long_way(); }
  std::uint32_t packets_out() const { return on_short_way() ? 1 : num_tx - num_rx; }  // each has a credit

  // Of the request, or of the last one.
  std::uint64_t number() const { return (on_short_way() ? expected : ~expected) & (kRequestNumbers - 1); }

  // Begins the next request. Returns what is expected then.
  std::uint64_t begin_short_way() { return expected = ~expected + kSessionSlots; }
  void end_short_way() { expected = ~expected; }
  // The request has this number of packets; `sent` of them are sent.
  void begin_long_way(std::uint32_t packets, std::uint32_t sent, Picos now) {
    end_short_way();
    request_packets = packets;
    response_packets = 1;
    num_tx = sent;
    num_rx = sent_before = timeouts = 0;
    progress = now;
  }
  // Call before anything of the long way is used. Does nothing if no request is on the short way.
  void leave_short_way() {
    if (on_short_way()) begin_long_way(1, 1, sent_first);
  }

  // When packet `packet` was last sent.
  Picos sent_at(std::uint32_t packet, std::uint32_t credits) const {
    return packet == 0 ? sent_first : sent_later[packet % credits];
  }
  void note_sent(std::uint32_t packet, std::uint32_t credits, Picos now) {
    if (packet == 0) {
      sent_first = now;
    } else {
      if (sent_later == nullptr) sent_later = std::make_unique<Picos[]>(credits);
      sent_later[packet % credits] = now;
    }
  }

  std::uint32_t packets() const { return request_packets + response_packets - 1; }
  // Packets that may be sent by now: requests for response follow the first packet of the response.
  std::uint32_t known() const { return num_rx < request_packets ? request_packets : packets(); }
};

enum class ClientPhase : std::uint8_t {
  connecting,  // calls wait for the peer's answer
  open,
  failed,  // calls end with RpcStatus::no_answer
};

struct ClientSession {
  ClientPhase phase = ClientPhase::connecting;
  std::unique_ptr<ClientSlot[]> slots;                // kSessionSlots, from the first call on
  ClientSlot* short_way = nullptr;                    // the same while responses may take the short way, else null
  ClientSlot* free = nullptr;                         // a stack, by ClientSlot::next_free; none unless open
  std::array<std::uint8_t, kSessionSlots> waiting{};  // slots that wait for credits, in order: a ring
  std::uint32_t waiting_head = 0, waiting_count = 0;
  std::vector<RpcCall> backlog;  // calls that wait for a slot: those from backlog_head on
  std::size_t backlog_head = 0;
  std::uint32_t credits = 0;
  bool limited = false;   // packets of requests pass through the rate limiter
  bool watched = false;   // the scan for lost packets looks at the session
  bool direct = false;    // requests may take the short way
  Picos steady_below{0};  // an answer without a mark after a shorter round trip does not change the rate
  RateControl rate;
  Picos next_due{0};  // of the rate limiter

  explicit ClientSession(const RpcOptions& options) : rate(options) {}
};

// Set in the number of a request at the server whose session is closing, so that its handle no longer matches.
inline constexpr std::uint64_t kAbandoned = std::uint64_t{1} << 63;

// A request at the server. Its response stays until the next request in the slot arrives. Slots stay as long as the
// endpoint.
struct ServerSlot {
  std::uint64_t number = 0;  // of the request; valid if `used`
  std::uint32_t request_bytes = 0;
  std::uint32_t request_packets = 0;
  std::uint32_t num_rx = 0;  // packets taken in order: of the request, and requests for response
  std::uint8_t type = 0;
  bool used = false;
  bool responded = false;
  bool owns_response = false;  // `response` is not the preallocated buffer
  bool repeated = false;       // a response packet was sent again: those that follow are flushed
  bool in_use = false;         // a worker reads the request and fills the response
  bool marked = false;         // the next answer tells the client that a packet was marked
  bool plain = false;          // the next request of one packet may take the short way (RpcServer::take_expected)
  MessageBuffer response;      // data is null if there is none
  MessageBuffer request;       // of several packets, or copied; data is null if there is none
  MessageBuffer preallocated;  // data is null if there is none
};

// This endpoint's end of a session.
struct alignas(64) SessionEnd {
  UdAddress peer{};
  PacketWords header;     // of each packet that is the only one of its message: without type, bytes and request
  std::uint64_t own = 0;  // second word of the packets to this end, without the number of the request
  std::unique_ptr<ClientSession> client;  // one of the two, or the number is free: it sends requests,
  std::unique_ptr<ServerSlot[]> served;   // or it answers them, in kSessionSlots slots
  bool closing = false;                   // the number becomes free once nothing refers to the session
  bool unflushed = false;                 // packets of the session may be in the send queue

  std::uint16_t epoch() const { return PacketWords{0, own}.epoch(); }
  void set_epoch(std::uint16_t epoch) { own = PacketWords::second_of(epoch); }
};

// What the parts of an endpoint share.
struct EndpointState {
  std::vector<SessionEnd> sessions;
  RpcCounts counts;
  std::uint64_t begun = 0;  // requests that were given slots; those of before clear_counts() too that are not over
  Picos now{0};             // the last time stamp
  Picos cost{0};            // computing time that is declared, and not spent yet
  bool flush_due = false;   // a packet was sent again: nothing may refer to it when its response arrives
  WorkTimes work;
  Occupancy limiter;                   // packets in the rate limiter
  Occupancy credit_waits;              // requests that wait for credits
  Picos timed_out{0};                  // sum over requests of the time without progress before each time-out
  Picos counted_since{0};              // beginning of the counts and times
  std::vector<std::uint16_t> expired;  // sessions that timed out in this pass
  std::vector<std::uint16_t> ending;   // sessions with calls or memory to give back after the next flush

  // Gives back the calls or the memory of a session once the send queue is flushed.
  void end_later(std::uint16_t session) {
    ending.push_back(session);
    flush_due = true;
  }

  // Declares computing time on a simulated machine.
  void charge(Picos time) {
    cost += time;
    work.charge(time);
  }
  // Begins counts and times anew.
  void clear_counts() {
    begun -= counts.answered;
    counts = {};
    work.clear();
    limiter.clear(now);
    credit_waits.clear(now);
    timed_out = Picos(0);
    counted_since = now;
  }
};

}  // namespace verbscope
