// The queues between endpoints and worker threads.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "machine/memory.hpp"
#include "systems/rpc/workers.hpp"

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

}  // namespace
}  // namespace verbscope
