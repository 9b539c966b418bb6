// The queues between endpoints and worker threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "machine/memory.hpp"
#include "systems/rpc/workers.hpp"
#include "tests/systems/rpc_peer.hpp"

namespace verbscope {
namespace {

using Queue = SharedQueue<std::uint64_t>;

struct QueueMemory {
  explicit QueueMemory(std::uint32_t capacity) : memory(Bytes(Queue::bytes(capacity)), false) {}
  Buffer memory;
};

TEST(RpcWorkers, QueueKeepsOrderAndItsPlacesAreUsedAgain) {
  QueueMemory memory(3);
  Queue queue(memory.memory.data(), 3);
  HostNode node;
  std::uint64_t value = 0, next = 0;
  EXPECT_FALSE(queue.pop(node, value));
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 3; ++i) queue.push(node, 3 * round + i);
    for (std::uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(queue.pop(node, value));
      EXPECT_EQ(value, next++);
    }
    EXPECT_FALSE(queue.pop(node, value));
  }
}

// Two threads push what a third one pops: each value arrives once, and those of a thread in order.
TEST(RpcWorkers, QueueServesSeveralThreads) {
  constexpr std::uint64_t kEach = 5000;
  QueueMemory memory(2 * kEach);
  Queue queue(memory.memory.data(), 2 * kEach);
  const auto push = [&queue](std::uint64_t first) {
    HostNode node;
    for (std::uint64_t i = 0; i < kEach; ++i) queue.push(node, first + i);
  };
  std::jthread one(push, 0), two(push, kEach);
  HostNode node;
  std::uint64_t next[2] = {0, kEach};
  const Picos give_up = node.now() + std::chrono::seconds(60);
  for (std::uint64_t taken = 0; taken < 2 * kEach;) {
    ASSERT_LT(node.now(), give_up) << "waited for " << 2 * kEach - taken << " values";
    std::uint64_t value = 0;
    if (!queue.pop(node, value)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    ASSERT_EQ(value, next[value / kEach]++);
  }
}

// The queues of a machine do not overlap: each entry arrives where it was sent.
TEST(RpcWorkers, MachineHasAQueueForEachThread) {
  const WorkerQueues::Shape shape{.endpoints = 3, .workers = 2, .requests = 5};
  Buffer memory(Bytes(WorkerQueues::bytes(shape)), false);
  WorkerQueues queues(memory.data(), shape);
  HostNode node;
  for (std::uint32_t worker = 0; worker < shape.workers; ++worker) {
    for (std::uint32_t i = 0; i < shape.endpoints * shape.requests; ++i) {
      queues.requests(worker).push(node, {.request = {.handle = {.number = 100 * worker + i}}});
    }
  }
  for (std::uint32_t endpoint = 0; endpoint < shape.endpoints; ++endpoint) {
    for (std::uint32_t i = 0; i < shape.requests; ++i) {
      queues.responses(endpoint).push(node, {.number = 1000 * endpoint + i});
    }
  }
  for (std::uint32_t worker = 0; worker < shape.workers; ++worker) {
    WorkerRequest work;
    for (std::uint32_t i = 0; i < shape.endpoints * shape.requests; ++i) {
      ASSERT_TRUE(queues.requests(worker).pop(node, work));
      EXPECT_EQ(work.request.handle.number, 100 * worker + i);
    }
    EXPECT_FALSE(queues.requests(worker).pop(node, work));
  }
  for (std::uint32_t endpoint = 0; endpoint < shape.endpoints; ++endpoint) {
    RpcHandle handle;
    for (std::uint32_t i = 0; i < shape.requests; ++i) {
      ASSERT_TRUE(queues.responses(endpoint).pop(node, handle));
      EXPECT_EQ(handle.number, 1000 * endpoint + i);
    }
  }
}

// The server of two peers gives its requests to worker threads.
struct WorkingPair {
  static constexpr std::uint32_t kWorkers = 2;
  static constexpr WorkerQueues::Shape kShape{.endpoints = 1, .workers = kWorkers, .requests = kSessionSlots};

  WorkingPair() : memory(Bytes(WorkerQueues::bytes(kShape)), false), given({memory.data(), kShape}, 0, 1) {
    pair.client.by_worker = true;
    pair.server.endpoint.serve(
        test::Peer::kByWorker, [](void* self, const RpcRequest& r) { static_cast<WorkingPair*>(self)->take(r); }, this,
        RequestLife::until_response);
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      workers.emplace_back([this, w](const std::stop_token& stop) { work(w, stop); });
    }
  }

  void take(const RpcRequest& request) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, request.data, 4);
    MessageBuffer* const response = pair.server.endpoint.response(request.handle, bytes);
    ASSERT_NE(response, nullptr);
    given.add(request, response, Picos(0));
  }
  void work(std::uint32_t number, const std::stop_token& stop) {
    WorkerQueues queues(memory.data(), kShape);
    HostNode own;
    while (!stop.stop_requested()) {
      const bool worked = queues.work(own, number, [this](const WorkerRequest& r) {
        std::uint64_t id = 0;
        std::memcpy(&id, r.request.data + 4, 8);
        ++begun;
        while (held) std::this_thread::yield();
        for (std::uint32_t i = 12; i < r.request.bytes; ++i) {
          if (r.request.data[i] != test::Peer::byte_of(id, i)) ++wrong;
        }
        for (std::uint32_t i = 0; i < r.response->bytes; ++i) r.response->data[i] = test::Peer::byte_of(~id, i);
        ++handled;
      });
      if (!worked) std::this_thread::yield();
    }
  }
  // Until `done` is true.
  template <class Done>
  void run(const char* what, Done&& done) {
    const Picos give_up = node.now() + std::chrono::seconds(60);
    while (!done()) {
      ASSERT_LT(node.now(), give_up) << "waited for " << what;
      const int sent = given.send_finished(node, pair.server.endpoint);
      pair.step();
      given.give(node);
      if (sent == 0) std::this_thread::yield();
    }
  }

  test::Pair pair{{}, {}, 100};
  Buffer memory;
  HandOver given;
  HostNode node;
  std::atomic<int> begun{0}, handled{0}, wrong{0};
  std::atomic<bool> held{false};
  std::vector<std::jthread> workers;  // the last member: they use the others
};

// Requests and responses of one packet and of several.
TEST(RpcWorkers, WorkersReadRequestsAndFillResponsesOfAnEndpoint) {
  constexpr int kCalls = 300;
  WorkingPair all;
  for (std::uint32_t i = 0; i < kCalls; ++i) all.pair.client.send(0, i + 1, 12 + i, 1 + 3 * i, 1000);
  all.run("answers", [&] { return all.pair.client.all_over(); });
  for (const auto& call : all.pair.client.calls) EXPECT_EQ(call.status, RpcStatus::answered);
  EXPECT_EQ(all.handled, kCalls);
  EXPECT_EQ(all.wrong, 0);
  EXPECT_EQ(all.pair.client.wrong, 0);
  EXPECT_EQ(all.given.given(), 0u);
}

// Its memory stays until the workers are done.
TEST(RpcWorkers, ASessionIsClosedWhileWorkersHaveItsRequests) {
  WorkingPair all;
  RpcEndpoint<test::NetworkPort>& server = all.pair.server.endpoint;
  all.held = true;
  for (std::uint32_t i = 0; i < kSessionSlots; ++i) all.pair.client.send(0, i + 1, 500, 700, 1000);
  all.run("requests", [&] { return all.given.given() == kSessionSlots && all.begun > 0; });
  server.sessions().close(0);
  for (int i = 0; i < 100; ++i) all.pair.step();
  all.held = false;
  all.run("workers", [&] { return all.given.given() == 0 && server.drained(); });
  EXPECT_EQ(all.handled, static_cast<int>(kSessionSlots));
  EXPECT_EQ(all.wrong, 0);
  for (const auto& call : all.pair.client.calls) EXPECT_EQ(call.over, 0);
  EXPECT_EQ(server.sessions().reserve().number, 0) << "the number is not free";
}

}  // namespace
}  // namespace verbscope
