// The loops of verb_latency against a device that executes at once and a peer that the test plays. The clock moves by
// 1 ns whenever it is read, so each trip takes exactly 1 ns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "microbench/latency/loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;
using testing::Each;
using testing::ElementsAre;

constexpr std::uint32_t kBox = 128;

struct LatencyEnd {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  alignas(64) std::byte inbox[kBox] = {}, outbox[kBox] = {}, peer[kBox] = {};
  LatencyState state;

  explicit LatencyEnd(ibv_wr_opcode opcode, std::uint32_t signal_every = 1, std::uint32_t bytes = 8) {
    const bool brings = opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_SEND;
    state.bytes = bytes;
    state.segment = {reinterpret_cast<std::uint64_t>((brings ? inbox : outbox) + kBox - bytes), bytes, 1};
    ibv_send_wr& wr = state.request;
    wr.wr_id = send_id(0);
    wr.opcode = opcode;
    wr.sg_list = &state.segment;
    wr.num_sge = 1;
    const auto remote = reinterpret_cast<std::uint64_t>(peer + kBox - bytes);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
      wr.wr.atomic = {remote, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1u : 0u, 1, 1};
    } else {
      wr.wr.rdma = {remote, 1};
    }
    state.queue = {.qp = device.add_qp(), .depth = 128, .room = 128, .signal_every = signal_every};
    state.cq = device.cq();
    state.inbox_end = inbox + kBox;
    state.outbox_end = outbox + kBox;
    state.atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    state.goal = 1000;
    control.phase = Phase::measure;
    node.on_idle = [this] { control.quit = true; };  // a loop that waits for nothing
  }

  // The peer answers each WRITE by its own bytes.
  void answer_writes() {
    device.after = [this](const ibv_send_wr&) { std::memcpy(inbox, peer, kBox); };
  }
};

TEST(LatencyLoop, TimesEachReadToItsCompletion) {
  LatencyEnd thread(IBV_WR_RDMA_READ);
  latency_loop<CompletionTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.state.histogram.count(), 1000u);
  EXPECT_EQ(thread.state.histogram.min(), Picos(1000));
  EXPECT_EQ(thread.state.histogram.max(), Picos(1000));
  EXPECT_EQ(thread.device.most_waiting, 1u);  // one outstanding
}

TEST(LatencyLoop, RecordsNoSampleInTheWarmUp) {
  LatencyEnd thread(IBV_WR_RDMA_READ);
  thread.control.phase = Phase::warmup;
  thread.device.after = [&](const ibv_send_wr&) {
    if (thread.device.requests.size() == 50) thread.control.phase = Phase::measure;
  };
  latency_loop<CompletionTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.device.requests.size(), 1050u);
  EXPECT_EQ(thread.state.histogram.count(), 1000u);
}

TEST(LatencyLoop, ReportsHalfTheRoundTripOfAWrite) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE);
  thread.state.divisor = 2;
  thread.answer_writes();
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.state.histogram.count(), 1000u);
  EXPECT_EQ(thread.state.histogram.max(), Picos(500));
}

TEST(LatencyLoop, IncreasesTheLastByteOfEachMessage) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE);
  std::vector<int> marks;
  thread.device.after = [&](const ibv_send_wr&) {
    std::memcpy(thread.inbox, thread.peer, kBox);
    marks.push_back(std::to_integer<int>(thread.peer[kBox - 1]));
  };
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  for (std::size_t i = 1; i < marks.size(); ++i) EXPECT_NE(marks[i], marks[i - 1]);
  EXPECT_THAT(marks, Each(testing::Gt(0)));
  EXPECT_EQ(marks[0], 1);
  EXPECT_EQ(marks[254], 255);
  EXPECT_EQ(marks[255], 1);
}

TEST(LatencyLoop, IgnoresAStaleByte) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE);
  thread.state.goal = 10;
  int idle = 0;
  thread.node.on_idle = [&] {  // the answer comes only when the loop has looked in vain
    ++idle;
    std::memcpy(thread.inbox, thread.peer, kBox);
  };
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(idle, 11);  // the interval begins after the first trip
}

TEST(LatencyLoop, SignalsFewEchoesWithoutFillingTheQueue) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE, 64);
  thread.answer_writes();
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  const auto signaled = std::ranges::count_if(
      thread.device.requests, [](const ibv_send_wr& wr) { return (wr.send_flags & IBV_SEND_SIGNALED) != 0; });
  EXPECT_EQ(signaled, 1001 / 64);
  EXPECT_EQ(thread.state.queue.room, 128u - 1001 % 64);
}

TEST(LatencyLoop, RecordsExactlyTheGoal) {
  for (const std::uint64_t goal : {1, 10, 100}) {
    LatencyEnd thread(IBV_WR_RDMA_WRITE);
    thread.answer_writes();
    thread.state.goal = goal;
    latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
    EXPECT_EQ(thread.state.histogram.count(), goal);
    EXPECT_TRUE(thread.tally.closed());
  }
}

TEST(LatencyLoop, ChecksEveryByteIfValidating) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE, 1, kBox);
  std::vector<std::byte> pattern(kBox, std::byte{7});
  thread.state.pattern_end = pattern.data() + kBox;
  std::ranges::copy(pattern, thread.outbox);
  thread.device.after = [&](const ibv_send_wr&) {
    std::memcpy(thread.inbox, thread.peer, kBox);
    if (thread.device.requests.size() == 5) thread.inbox[3] = std::byte{8};
  };
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_GE(thread.state.checked, 1000u);
  EXPECT_EQ(thread.state.wrong, 1u);
}

TEST(LatencyLoop, ChecksTheValuesThatAtomicsReturn) {
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    LatencyEnd good(opcode);
    latency_loop<CompletionTrip>(good.node, good.state, good.control, good.tally);
    EXPECT_EQ(good.state.wrong, 0u);
    EXPECT_EQ(load_word<std::uint64_t>(good.peer + kBox - 8), good.state.checked);

    LatencyEnd disturbed(opcode);
    disturbed.device.after = [&](const ibv_send_wr&) {
      if (disturbed.device.requests.size() == 5) disturbed.inbox[kBox - 8] = std::byte{99};
    };
    latency_loop<CompletionTrip>(disturbed.node, disturbed.state, disturbed.control, disturbed.tally);
    EXPECT_EQ(disturbed.state.wrong, 1u);
  }
}

TEST(LatencyLoop, RunsAPingPongOfMessages) {
  LatencyEnd thread(IBV_WR_SEND);
  ibv_sge segment{reinterpret_cast<std::uint64_t>(thread.inbox), 8, 1};
  thread.state.recv.sg_list = &segment;
  thread.state.recv.num_sge = 1;
  thread.state.recv_payload = thread.inbox;
  for (int i = 0; i < 4; ++i) thread.device.recvs.push_back(thread.state.recv);
  thread.device.after = [&](const ibv_send_wr& wr) {
    thread.device.deliver(reinterpret_cast<void*>(wr.sg_list->addr), wr.sg_list->length);
  };
  latency_loop<MessageTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.state.histogram.count(), 1000u);
  EXPECT_EQ(thread.device.recvs.size(), 4u);  // each is posted again
}

TEST(LatencyLoop, EndsOnAFailedCompletion) {
  LatencyEnd thread(IBV_WR_RDMA_READ);
  thread.device.edit = [](ibv_wc& wc) { wc.status = IBV_WC_REM_ACCESS_ERR; };
  latency_loop<CompletionTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(thread.tally.end.code, IBV_WC_REM_ACCESS_ERR);
}

TEST(LatencyLoop, EndsOnAFailedWriteWhileItWaitsForTheResponse) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE);
  thread.device.edit = [](ibv_wc& wc) { wc.status = IBV_WC_RETRY_EXC_ERR; };
  thread.node.on_idle = [] {};
  latency_loop<MemoryTrip>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
}

TEST(WriteResponder, RespondsOnceToEachMessageUntilQuit) {
  LatencyEnd thread(IBV_WR_RDMA_WRITE, 64);
  std::vector<int> answers;
  thread.device.after = [&](const ibv_send_wr&) { answers.push_back(std::to_integer<int>(thread.peer[kBox - 1])); };
  int sent = 0;
  thread.node.on_idle = [&] {
    if (sent == 5) thread.control.quit = true;
    if (sent < 5) thread.inbox[kBox - 1] = std::byte(mark_of_trip(static_cast<std::uint64_t>(sent++)));
  };
  write_responder(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_THAT(answers, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(thread.tally.done_ops, 5u);
}

TEST(SendResponder, ChecksAMessageBeforeItResponds) {
  LatencyEnd thread(IBV_WR_SEND, 64);
  const std::array<std::byte, 8> pattern{std::byte{7}};
  thread.state.pattern_end = pattern.data() + pattern.size();
  ibv_sge segment{reinterpret_cast<std::uint64_t>(thread.inbox), 8, 1};
  thread.state.recv.sg_list = &segment;
  thread.state.recv.num_sge = 1;
  thread.state.recv_payload = thread.inbox;
  for (int i = 0; i < 4; ++i) thread.device.recvs.push_back(thread.state.recv);
  const auto send = [&] { thread.device.deliver(pattern.data(), 8); };
  thread.device.after = [&](const ibv_send_wr&) {  // the peer sends at once, into the place of the last message
    if (thread.device.requests.size() < 100) send();
  };
  send();
  send_responder(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.device.requests.size(), 100u);
  EXPECT_EQ(thread.state.checked, 100u);
  EXPECT_EQ(thread.state.wrong, 0u);
}

TEST(SendResponder, ChecksLengthAndImmediateOfAMessageWithoutPayload) {
  const std::array<std::byte, 1> pattern{};
  std::array<std::byte, 8> text{};
  const auto wrong_of = [&](std::uint32_t length, unsigned flags, std::uint32_t immediate) {
    LatencyEnd thread(IBV_WR_SEND_WITH_IMM, 64, 0);
    thread.state.request.imm_data = 77;
    thread.state.pattern_end = pattern.data() + pattern.size();
    ibv_sge segment{reinterpret_cast<std::uint64_t>(thread.inbox), 8, 1};
    thread.state.recv.sg_list = &segment;
    thread.state.recv_payload = thread.inbox;
    thread.device.recvs.push_back(thread.state.recv);
    thread.device.edit = [&](ibv_wc& wc) {
      wc.wc_flags = flags;
      wc.imm_data = immediate;
    };
    thread.device.deliver(text.data(), length);
    send_responder(thread.node, thread.state, thread.control, thread.tally);
    EXPECT_EQ(thread.state.checked, 1u);
    return thread.state.wrong;
  };
  EXPECT_EQ(wrong_of(0, IBV_WC_WITH_IMM, 77), 0u);
  EXPECT_EQ(wrong_of(4, IBV_WC_WITH_IMM, 77), 1u);
  EXPECT_EQ(wrong_of(0, IBV_WC_WITH_IMM, 78), 1u);
  EXPECT_EQ(wrong_of(0, 0, 77), 1u);
}

}  // namespace
}  // namespace verbscope
