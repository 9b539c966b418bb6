// The loops of atomic_rate against a device that executes atomics at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "microbench/atomic/loop.hpp"
#include "microbench/atomic/slot_probe.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;
using testing::Each;
using testing::ElementsAre;

constexpr std::uint32_t kOutstanding = 4;

struct AtomicEnd {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<std::uint64_t> memory;  // the server's counters
  std::vector<ibv_send_wr> requests = std::vector<ibv_send_wr>(2 * kOutstanding);
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(2 * kOutstanding);
  std::vector<std::uint64_t> results = std::vector<std::uint64_t>(2 * kOutstanding);
  std::vector<std::uint64_t> counter = std::vector<std::uint64_t>(2 * kOutstanding);
  std::vector<std::uint64_t> seen;
  std::vector<SendQueue> queues;
  std::vector<AtomicPlaces> places;
  AtomicState state;

  // Two QPs with four atomics outstanding on each.
  AtomicEnd(std::uint64_t counters, bool random, bool swap) : memory(counters), seen(swap ? counters : 0) {
    for (std::uint32_t q = 0; q < 2; ++q) {
      for (std::uint32_t j = q * kOutstanding; j < (q + 1) * kOutstanding; ++j) {
        segments[j] = {reinterpret_cast<std::uint64_t>(&results[j]), 8, 1};
        requests[j].wr_id = send_id(q);
        requests[j].opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
        requests[j].sg_list = &segments[j];
        requests[j].num_sge = 1;
        requests[j].wr.atomic.compare_add = 1;
      }
      queues.push_back({.qp = device.add_qp(),
                        .index = q,
                        .depth = kOutstanding,
                        .ring = {&requests[q * kOutstanding], kOutstanding}});
      places.push_back({.results = {&results[q * kOutstanding], kOutstanding},
                        .counter = {&counter[q * kOutstanding], kOutstanding},
                        .base = reinterpret_cast<std::uint64_t>(memory.data())});
    }
    state.cq = device.cq();
    state.queues = queues;
    state.places = places;
    state.choice = Choice(counters, random, 3, 0);
    state.seen = seen;
    state.goal = 1000;
    control.phase = Phase::measure;
    node.on_idle = [this] { control.quit = true; };
  }

  std::uint64_t sum() const { return std::accumulate(memory.begin(), memory.end(), std::uint64_t{0}); }
  std::uint64_t retired() const { return queues[0].completed() + queues[1].completed(); }
};

TEST(AtomicLoop, CountersSumUpToTheFetchAndAdds) {
  for (const bool random : {false, true}) {
    AtomicEnd thread(16, random, false);
    client_loop(thread.node, thread.state, thread.control, thread.tally);
    EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
    EXPECT_EQ(thread.sum(), thread.retired());
    EXPECT_EQ(thread.tally.interval.end_ops - thread.tally.interval.begin_ops, 1000u);
    EXPECT_THAT(thread.memory, Each(testing::Gt(0u)));
  }
}

TEST(AtomicLoop, KeepsTheLimitOfOutstandingOperations) {
  AtomicEnd thread(1, false, false);
  client_loop(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.device.most_waiting, 2 * kOutstanding);
  for (const SendQueue& queue : thread.queues) EXPECT_EQ(queue.room, queue.depth);  // all complete at the end
}

TEST(AtomicLoop, VisitsStridedCountersInOrder) {
  AtomicEnd thread(3, false, false);
  thread.state.stride = 8;
  client_loop(thread.node, thread.state, thread.control, thread.tally);
  std::vector<std::uint64_t> first;
  for (int i = 0; i < 6; ++i) {
    first.push_back(
        (thread.device.requests[static_cast<std::size_t>(i)].wr.atomic.remote_addr - thread.places[0].base) / 8);
  }
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(AtomicLoop, CountersSumUpToTheSuccessfulSwaps) {
  AtomicEnd thread(64, true, true);
  client_loop(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.sum(), thread.state.swapped);
  EXPECT_LE(thread.state.swapped, thread.retired());
  EXPECT_GT(thread.state.swapped, thread.retired() / 2);
}

TEST(AtomicLoop, AFailedSwapUpdatesTheExpectedValue) {
  AtomicEnd thread(1, false, true);
  thread.memory[0] = 77;  // not what the thread expects
  client_loop(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.memory[0], 77 + thread.state.swapped);
  EXPECT_GT(thread.state.swapped, 0u);
  // The swaps that are outstanding all expect the same value, and one of them finds it.
  EXPECT_LT(thread.state.swapped, thread.retired() / 2);
}

TEST(AtomicLoop, EndsOnAFailedCompletion) {
  AtomicEnd thread(1, false, false);
  thread.device.edit = [](ibv_wc& wc) { wc.status = IBV_WC_REM_INV_REQ_ERR; };
  client_loop(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
}

TEST(Choice, ChoosesEachCounterAboutEquallyOften) {
  Choice choice(10, true, 1, 0);
  std::vector<int> hits(10);
  for (int i = 0; i < 100'000; ++i) ++hits[choice.next()];
  // Binomial: 10000 expected, standard deviation 95.
  EXPECT_THAT(hits, Each(testing::AllOf(testing::Gt(9500), testing::Lt(10500))));
}

struct Probe {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(8);
  std::array<std::uint64_t, 2> results{};
  std::array<ibv_sge, 2> segments{};
  SlotProbe probe;

  Probe() {
    probe.cq = device.cq();
    probe.base = reinterpret_cast<std::uint64_t>(memory.data());
    for (std::uint32_t i = 0; i < 2; ++i) {
      segments[i] = {reinterpret_cast<std::uint64_t>(&results[i]), 8, 1};
      probe.queues[i] = {.qp = device.add_qp(), .index = i, .depth = kOutstanding};
      probe.atomics[i] = {};
      probe.atomics[i].wr_id = send_id(i);
      probe.atomics[i].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      probe.atomics[i].sg_list = &segments[i];
      probe.atomics[i].num_sge = 1;
      probe.atomics[i].wr.atomic.compare_add = 1;
      probe.reads[i] = probe.atomics[i];
      probe.reads[i].opcode = IBV_WR_RDMA_READ;
    }
  }
};

TEST(SlotProbe, PairUsesBothAddressesAndDrains) {
  Probe p;
  const double rate = measure_slots(p.node, p.probe, {SlotMeasurement::Kind::pair, 8, 40}, p.control, p.tally);
  // The clock moves by 1 ns between the first and the last counted operation.
  EXPECT_NEAR(rate, static_cast<double>(kProbeOps) * 1e9, kProbeOps * 0.05 * 1e9);
  EXPECT_EQ(p.memory[1] + p.memory[5], p.probe.done);
  EXPECT_NEAR(static_cast<double>(p.memory[1]), static_cast<double>(p.memory[5]), kOutstanding);
  EXPECT_EQ(p.probe.queues[0].due + p.probe.queues[1].due, 0u);
}

TEST(SlotProbe, MeasuresOneQueueAndReads) {
  Probe p;
  measure_slots(p.node, p.probe, {SlotMeasurement::Kind::solo, 16, 16}, p.control, p.tally);
  EXPECT_EQ(p.memory[2], p.probe.done);
  EXPECT_EQ(p.probe.queues[1].posted(), 0u);
  measure_slots(p.node, p.probe, {SlotMeasurement::Kind::reads, 24, 24}, p.control, p.tally);
  EXPECT_EQ(p.memory[3], 0u);
}

}  // namespace
}  // namespace verbscope
