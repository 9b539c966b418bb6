// A thread of HERD's server against a device that executes at once, for tests that play its clients.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "systems/herd/server.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"
#include "tests/systems/answering_queues.hpp"

namespace verbscope::herd {

inline constexpr std::uint32_t kClients = 4;
inline constexpr std::uint32_t kWindow = 2;
inline constexpr std::uint32_t kDepth = 8;
inline constexpr std::uint32_t kValue = 8;  // bytes, as many as a response has

// A response as it was posted.
struct Sent {
  std::uint32_t to = 0;      // client
  std::uint32_t number = 0;  // of its request
  std::string value;         // empty: a status alone
  bool operator==(const Sent&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Sent& sent) {
  return out << "{" << sent.to << ", " << sent.number << ", " << sent.value << "}";
}

inline KeyHash key_of(std::uint64_t name) {
  return {.low = name * 0x9e3779b97f4a7c15u, .high = name | std::uint64_t{1} << 56};
}

// Thread 1 of two, with two UD QPs.
struct ServerEnd {
  SlotLayout places{.servers = 2, .clients = kClients, .window = kWindow, .request_bytes = put_bytes(kValue)};
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(places.bytes() / 8);
  std::byte* region = reinterpret_cast<std::byte*>(memory.data());
  test::ExecutingDevice device;
  test::ScriptedNode node;
  RunControl control;
  RunEnd end;
  MicaStore store{64, Bytes(4096), PageSize::kb4};
  test::AnsweringQueues answering{device, 2, kDepth, 2};
  std::vector<SendQueue>& queues = answering.queues;
  std::vector<ResponsePort> ports;
  std::vector<Client> clients = std::vector<Client>(kClients);
  Server server;
  std::vector<Sent> sent;
  std::uint64_t rings = 0;

  explicit ServerEnd(Prefetching prefetch, bool batching = false) {
    ports = {ResponsePort(queues)};
    for (std::uint32_t c = 0; c < kClients; ++c) {
      clients[c].to.remote_qpn = c;
      clients[c].port = ports.data();
    }
    server.cq = device.cq();
    server.queues = queues;
    server.ports = ports;
    server.clients = clients;
    server.store = &store;
    server.value = kValue;
    server.second_line = second_line_of(MicaStore::item_bytes(kValue));
    server.thread = 1;
    server.tags = tag_of(1, 0);
    server.policy = {.prefetch = prefetch, .batching = batching};
    server.max_batch = 4;
    server.place_slots(region, places);
    control.phase = Phase::measure;
    device.after = [this](const ibv_send_wr& wr) {
      const std::uint32_t tag = be32toh(wr.imm_data);
      EXPECT_EQ(tagged(tag), 1u);
      std::string value;
      if (wr.sg_list->length != 1) value.assign(reinterpret_cast<const char*>(wr.sg_list->addr), wr.sg_list->length);
      sent.push_back({wr.wr.ud.remote_qpn, tag % kTagNumbers, value});
    };
  }

  void get(std::uint32_t client, std::uint64_t number, std::uint64_t key) {
    write_get(region + places.slot_end(1, client, number), key_of(key));
  }
  void put(std::uint32_t client, std::uint64_t number, std::uint64_t key, const char* value) {
    put_at(places.slot_end(1, client, number), key, value);
  }
  void put_again(std::uint32_t client, std::uint64_t number, std::uint64_t key, const char* value) {
    put_at(places.retry_number(1, client, number), key, value);
    ring(client, number);
  }
  void get_again(std::uint32_t client, std::uint64_t number, std::uint64_t key) {
    write_get(region + places.retry_number(1, client, number), key_of(key));
    ring(client, number);
  }
  // Requests come by SEND from now on.
  void receive(test::MessageQueue& messages) {
    server.recvs = messages.lanes;
    server.waiting.resize(messages.ring.size());
  }
  // One pass; the looks that find nothing count on.
  std::vector<Sent> pass() {
    sent.clear();
    pass_of(node);
    return sent;
  }
  template <Node N>
  void pass_of(N& by) {
    begin_pass(server, control);
    dispatch(server.policy, [&]<ServerPolicy kPolicy>() { EXPECT_GE(serve_and_count<kPolicy>(by, server, end), 0); });
  }

 private:
  void put_at(std::uint64_t place, std::uint64_t key, const char* value) {
    write_put(region + place, key_of(key), kValue, [value](std::byte* to) { std::memcpy(to, value, kValue); });
  }
  void ring(std::uint32_t client, std::uint64_t number) {
    store_word(region + places.retry_number(1, client, number), retry_word(number));
    store_word(region + places.bell(1), ++rings);
  }
};

inline constexpr const char* kOne = "value-01";
inline constexpr const char* kTwo = "value-02";

}  // namespace verbscope::herd
