// A program that calls and serves on an endpoint for RPCs, and checks every byte; and two of them with a session.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

#include "tests/systems/rpc_network.hpp"

namespace verbscope::test {

inline constexpr Picos kStep{100'000};
inline constexpr std::uint32_t kMostResponse = 4096;
inline constexpr unsigned char kOver = 0xdd;  // fills the response's buffer of a call that is over

// An endpoint with its own memory, which calls and serves. A response has as many bytes as the first four bytes of its
// request say, or none if the request has none.
struct Peer {
  Peer(RpcNetwork& network, std::uint32_t number, std::uint32_t data, const RpcOptions& given)
      : options(given), pool({data}, nullptr, false), endpoint(network.port(number), pool, options) {
    endpoint.serve(kUsual, &on_request, this);
    endpoint.serve(kByWorker, &on_request, this, RequestLife::until_response);
  }

  static constexpr std::uint8_t kUsual = 1, kByWorker = 2;  // types

  static void on_request(void* self, const RpcRequest& request) { static_cast<Peer*>(self)->serve(request); }
  static void on_done(void* self, std::uint64_t index, RpcStatus status) {
    static_cast<Peer*>(self)->done(index, status);
  }

  static std::byte byte_of(std::uint64_t call, std::uint32_t at) {
    return static_cast<std::byte>(call * 31 + at * 7 + 1);
  }

  struct Call {
    MessageBuffer request, response;
    std::uint32_t response_bytes;
    std::uint64_t id;
    int over = 0;
    RpcStatus status{};
  };

  void send(std::uint16_t session, std::uint64_t id, std::uint32_t bytes, std::uint32_t response_bytes,
            std::uint32_t room) {
    calls.push_back({pool.allocate(bytes), pool.allocate(room), response_bytes, id});
    Call& call = calls.back();
    call.request.bytes = bytes;
    for (std::uint32_t i = 0; i < bytes; ++i) call.request.data[i] = byte_of(id, i);
    if (bytes >= 12) {
      std::memcpy(call.request.data, &response_bytes, 4);
      std::memcpy(call.request.data + 4, &id, 8);
    }
    endpoint.call(session,
                  {by_worker ? kByWorker : kUsual, &call.request, &call.response, &on_done, this, calls.size() - 1});
  }

  void serve(const RpcRequest& request) {
    std::uint32_t bytes = 0;
    std::uint64_t id = 0;
    if (request.bytes >= 12) {
      std::memcpy(&bytes, request.data, 4);
      bytes %= kMostResponse;  // of a forged request
      std::memcpy(&id, request.data + 4, 8);
      ++handled[id];
    }
    for (std::uint32_t i = 12; i < request.bytes; ++i) wrong += request.data[i] == byte_of(id, i) ? 0 : 1;
    Waiting waits{request, bytes, id};
    if (request.type == kByWorker) waits.response = endpoint.response(request.handle, bytes);
    if (answer_later || request.type == kByWorker) {
      waiting.push_back(waits);
    } else {
      answer(waits);
    }
  }
  struct Waiting {
    RpcRequest request;
    std::uint32_t bytes;
    std::uint64_t id;
    MessageBuffer* response = nullptr;  // of a worker, which also reads the request until it is answered
  };
  void answer(const Waiting& waits) {
    const RpcRequest& request = waits.request;
    MessageBuffer* response = waits.response;
    if (request.type != kByWorker) {
      response = endpoint.response(request.handle, waits.bytes);
    } else {
      for (std::uint32_t i = 12; i < request.bytes; ++i) wrong += request.data[i] == byte_of(waits.id, i) ? 0 : 1;
    }
    if (response == nullptr) return;
    for (std::uint32_t i = 0; i < waits.bytes; ++i) response->data[i] = byte_of(~waits.id, i);
    endpoint.respond(request.handle);
  }

  void done(std::uint64_t index, RpcStatus status) {
    Call& call = calls[index];
    ++call.over;
    call.status = status;
    if (status == RpcStatus::answered) {
      wrong += call.response.bytes == call.response_bytes ? 0 : 1;
      for (std::uint32_t i = 0; i < call.response.bytes; ++i) {
        wrong += call.response.data[i] == byte_of(~call.id, i) ? 0 : 1;
      }
    }
    std::memset(call.request.data, 0xee, call.request.bytes);  // whoever reads it now reads wrong bytes
    std::memset(call.response.data, kOver, call.response.capacity);
    if (after != nullptr) after(call);
  }

  // Bytes that were written into the buffers of calls after their end.
  int late_bytes() const {
    int late = 0;
    for (const Call& call : calls) {
      for (std::uint32_t i = 0; call.over > 0 && i < call.response.capacity; ++i) {
        late += call.response.data[i] == std::byte{kOver} ? 0 : 1;
      }
    }
    return late;
  }

  bool all_over() const {
    return std::ranges::all_of(calls, [](const Call& call) { return call.over > 0; });
  }

  RpcOptions options;
  MessagePool pool;
  RpcEndpoint<NetworkPort> endpoint;
  std::deque<Call> calls;
  std::function<void(const Call&)> after;  // called at the end of each continuation
  std::map<std::uint64_t, int> handled;
  std::deque<Waiting> waiting;
  bool answer_later = false;
  bool by_worker = false;  // its calls are of the type that workers answer
  int wrong = 0;
};

inline void expect_credits_kept(const Peer& peer, std::uint16_t session) {
  const ClientSession& s = peer.endpoint.client(session);
  std::uint32_t sum = s.credits;
  for (std::uint32_t i = 0; s.slots != nullptr && i < kSessionSlots; ++i) {
    const ClientSlot& slot = s.slots[i];
    ASSERT_LE(slot.num_rx, slot.num_tx);
    sum += slot.packets_out();
  }
  ASSERT_EQ(sum, peer.options.credits);
}

// Two peers with one session from the first to the second.
struct Pair {
  Pair(const NetworkFaults& faults, const RpcOptions& options, std::uint32_t data)
      : network(2, faults, 1), client(network, 0, data, options), server(network, 1, data, options) {
    client.endpoint.open_client(RpcNetwork::address(1), 0);
    server.endpoint.open_server(RpcNetwork::address(0), 0);
  }
  void run(int steps) {
    for (int i = 0; i < steps && !client.all_over(); ++i) step();
  }
  void step() {
    StillNode node = network.node();
    RunEnd end;
    ASSERT_GE(client.endpoint.pass(node, end), 0);
    ASSERT_GE(server.endpoint.pass(node, end), 0);
    network.advance(kStep);
  }
  RpcNetwork network;
  Peer client, server;
};
// Every packet is lost. A call may have 3 time-outs in a row.
inline Pair pair_without_network() {
  RpcOptions options;
  options.rto = Picos(2'000'000);
  options.most_timeouts = 3;
  NetworkFaults dead;
  dead.loss = 1;
  return {dead, options, 100};
}

// Calls run(seed) for each of `count` seeds, until a check fails. Returns their number: the address sanitizer leaves
// time for `sanitized` only.
template <class Run>
std::uint64_t for_each_seed(std::uint64_t count, [[maybe_unused]] std::uint64_t sanitized, Run&& run) {
#if defined(VERBSCOPE_ADDRESS_SANITIZER)
  count = sanitized;
#endif
  for (std::uint64_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    run(seed);
  }
  return count;
}

}  // namespace verbscope::test
