// write_visibility judges memory that the test sets by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "microbench/visibility/loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

// Makes the QPs of one side, whose SENDs are `tell`; `recv` takes the other's into the 8 bytes of `segment`.
template <class Side>  // VisibilityReader or VisibilityWriter
void connect(ExecutingDevice& device, Side& state, ibv_send_wr& tell, VersionRecv& recv, ibv_sge& segment) {
  for (SendQueue& queue : state.queues) queue = {.qp = device.add_qp(), .depth = 8, .room = 8};
  state.cq = device.cq();
  tell.wr_id = send_id(kTellQueue);
  tell.opcode = IBV_WR_SEND;
  tell.send_flags = IBV_SEND_SIGNALED;
  recv.qp = state.queues[kTellQueue].qp;
  recv.place = reinterpret_cast<std::byte*>(segment.addr);
  recv.request.sg_list = &segment;
  recv.request.num_sge = 1;
  device.recvs.push_back(recv.request);
}

struct Reader {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(8);
  std::uint64_t answered = 0, told = 0;
  ibv_sge segment{reinterpret_cast<std::uint64_t>(&told), 8, 1};
  VisibilityReader state;

  Reader() {
    connect(device, state, state.answer, state.tellings, segment);
    state.words = words;
    state.answered = reinterpret_cast<std::byte*>(&answered);
  }
  void write(std::uint64_t version, std::size_t first, std::size_t last) {
    std::fill(words.begin() + static_cast<long>(first), words.begin() + static_cast<long>(last), version);
  }
  void tell(std::uint64_t version) { device.deliver(&version, 8); }
};

TEST(ReadPass, SeesNoOrderInAWholeWrite) {
  Reader reader;
  reader.write(3, 0, 8);
  EXPECT_EQ(read_pass(reader.state), 3u);
  EXPECT_EQ(reader.state.passes, 1u);
  EXPECT_EQ(reader.state.passes_within, 0u);
  EXPECT_EQ(reader.state.in_order + reader.state.out_of_order, 0u);
}

TEST(ReadPass, CountsANewLeftPartAsInOrder) {
  Reader reader;
  reader.write(1, 0, 5);
  EXPECT_EQ(read_pass(reader.state), 0u);
  EXPECT_EQ(reader.state.passes_within, 1u);
  EXPECT_EQ(reader.state.in_order, 1u);
  EXPECT_EQ(reader.state.out_of_order, 0u);
}

TEST(ReadPass, CountsANewRightPartAsOutOfOrder) {
  Reader reader;
  reader.write(1, 3, 8);
  read_pass(reader.state);
  EXPECT_EQ(reader.state.out_of_order, 1u);
  reader.write(2, 4, 5);  // a new word in the midst of older ones: one boundary of each kind
  read_pass(reader.state);
  EXPECT_EQ(reader.state.out_of_order, 3u);
  EXPECT_EQ(reader.state.in_order, 1u);
}

TEST(VisibilityReader, CountsWhatIsVisibleWhenTold) {
  Reader reader;
  std::uint64_t version = 0;
  reader.node.on_idle = [&] {
    if (version == 6) {
      reader.control.quit = true;
    } else {
      reader.write(++version, 0, 8);
      reader.tell(version);
    }
  };
  read_versions(reader.node, reader.state, reader.control, reader.tally);
  EXPECT_EQ(reader.state.told[0], 3u);
  EXPECT_EQ(reader.state.told[1], 3u);
  EXPECT_EQ(reader.state.not_visible[0] + reader.state.not_visible[1], 0u);
  EXPECT_EQ(reader.answered, 6u);
  EXPECT_EQ(reader.device.requests.size(), 6u);
}

TEST(VisibilityReader, CountsAndTimesWhatIsNotYetVisible) {
  Reader reader;
  int idle = 0;
  reader.node.on_idle = [&] {
    ++idle;
    if (idle == 1) reader.tell(2);         // told before the bytes are there
    if (idle == 5) reader.write(2, 0, 8);  // which come later
    if (idle == 6) reader.control.quit = true;
  };
  read_versions(reader.node, reader.state, reader.control, reader.tally);
  EXPECT_EQ(reader.state.told[0], 1u);
  EXPECT_EQ(reader.state.not_visible[0], 1u);
  EXPECT_EQ(reader.state.late[0].count(), 1u);
}

TEST(VisibilityWriter, WritesEachVersionIntoEveryWordAndReadsBehindEverySecond) {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<std::uint64_t> source(8), remote(8);
  std::uint64_t told = 0, answer = 0, read = 0;
  ibv_sge write_segment{reinterpret_cast<std::uint64_t>(source.data()), 64, 1};
  ibv_sge read_segment{reinterpret_cast<std::uint64_t>(&read), 8, 1};
  ibv_sge recv_segment{reinterpret_cast<std::uint64_t>(&answer), 8, 1};
  VisibilityWriter state;
  connect(device, state, state.tell, state.answers, recv_segment);
  state.source = source;
  state.write.wr_id = send_id(kWriteQueue);
  state.write.opcode = IBV_WR_RDMA_WRITE;
  state.write.send_flags = IBV_SEND_SIGNALED;
  state.write.sg_list = &write_segment;
  state.write.num_sge = 1;
  state.write.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(remote.data());
  state.write_then_read = {state.write, state.write};
  state.write_then_read[0].send_flags = 0;
  state.write_then_read[0].next = &state.write_then_read[1];
  state.write_then_read[1].opcode = IBV_WR_RDMA_READ;
  state.write_then_read[1].sg_list = &read_segment;
  state.told = reinterpret_cast<std::byte*>(&told);
  state.goal = 10;
  control.phase = Phase::measure;
  node.on_idle = [&] { control.quit = true; };
  device.after = [&](const ibv_send_wr& wr) {
    if (wr.opcode != IBV_WR_SEND) return;
    EXPECT_THAT(remote, testing::Each(told));
    if (kind_of_version(told) == 1) {
      EXPECT_EQ(read, told);
    }
    device.deliver(&told, 8);
  };
  write_versions(node, state, control, tally);
  EXPECT_EQ(tally.end.kind, EndKind::finished);
  EXPECT_EQ(state.version, 11u);  // the window opens behind the first
  EXPECT_EQ(state.latency[0].count() + state.latency[1].count(), 10u);
  EXPECT_EQ(state.queues[kTellQueue].posted(), 11u);
}

}  // namespace
}  // namespace verbscope
