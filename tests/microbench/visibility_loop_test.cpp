// The loops of write_visibility, on memory that the test sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "microbench/visibility/loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;

// Sets up the QPs of one side, whose SENDs are `message`. `recv` receives into the 8 bytes of `segment`.
template <class Side>  // VisibilityReader or VisibilityWriter
void connect(ExecutingDevice& device, Side& state, ibv_send_wr& message, VersionRecv& recv, ibv_sge& segment) {
  for (SendQueue& queue : state.queues) queue = {.qp = device.add_qp(), .depth = 8, .room = 8};
  state.cq = device.cq();
  message.wr_id = send_id(kMessageQueue);
  message.opcode = IBV_WR_SEND;
  message.send_flags = IBV_SEND_SIGNALED;
  recv.qp = state.queues[kMessageQueue].qp;
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
  std::uint64_t replied = 0, received = 0;
  ibv_sge segment{reinterpret_cast<std::uint64_t>(&received), 8, 1};
  VisibilityReader state;

  Reader() {
    connect(device, state, state.reply, state.messages, segment);
    state.words = words;
    state.reply_version = reinterpret_cast<std::byte*>(&replied);
  }
  void write(std::uint64_t version, std::size_t first, std::size_t last) {
    std::fill(words.begin() + static_cast<long>(first), words.begin() + static_cast<long>(last), version);
  }
  void send(std::uint64_t version) { device.deliver(&version, 8); }
};

TEST(ReadPass, CountsNothingInAWholeWrite) {
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

TEST(VisibilityReader, CountsVisibleVersions) {
  Reader reader;
  std::uint64_t version = 0;
  reader.node.on_idle = [&] {
    if (version == 6) {
      reader.control.quit = true;
    } else {
      reader.write(++version, 0, 8);
      reader.send(version);
    }
  };
  read_versions(reader.node, reader.state, reader.control, reader.tally);
  EXPECT_EQ(reader.state.checked[0], 3u);
  EXPECT_EQ(reader.state.checked[1], 3u);
  EXPECT_EQ(reader.state.not_visible[0] + reader.state.not_visible[1], 0u);
  EXPECT_EQ(reader.replied, 6u);
  EXPECT_EQ(reader.device.requests.size(), 6u);
}

TEST(VisibilityReader, CountsAndTimesVersionsThatAreLate) {
  Reader reader;
  int idle = 0;
  reader.node.on_idle = [&] {
    ++idle;
    if (idle == 1) reader.send(2);         // the message arrives before the bytes
    if (idle == 5) reader.write(2, 0, 8);  // which come later
    if (idle == 6) reader.control.quit = true;
  };
  read_versions(reader.node, reader.state, reader.control, reader.tally);
  EXPECT_EQ(reader.state.checked[0], 1u);
  EXPECT_EQ(reader.state.not_visible[0], 1u);
  EXPECT_EQ(reader.state.late[0].count(), 1u);
}

TEST(VisibilityWriter, WritesEachVersionIntoEveryWordAndReadsBehindEverySecond) {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::vector<std::uint64_t> source(8), remote(8);
  std::uint64_t sent = 0, reply = 0, read = 0;
  ibv_sge write_segment{reinterpret_cast<std::uint64_t>(source.data()), 64, 1};
  ibv_sge read_segment{reinterpret_cast<std::uint64_t>(&read), 8, 1};
  ibv_sge recv_segment{reinterpret_cast<std::uint64_t>(&reply), 8, 1};
  VisibilityWriter state;
  connect(device, state, state.message, state.replies, recv_segment);
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
  state.message_version = reinterpret_cast<std::byte*>(&sent);
  state.goal = 10;
  control.phase = Phase::measure;
  node.on_idle = [&] { control.quit = true; };
  device.after = [&](const ibv_send_wr& wr) {
    if (wr.opcode != IBV_WR_SEND) return;
    EXPECT_THAT(remote, testing::Each(sent));
    if (kind_of_version(sent) == 1) {
      EXPECT_EQ(read, sent);
    }
    device.deliver(&sent, 8);
  };
  write_versions(node, state, control, tally);
  EXPECT_EQ(tally.end.kind, EndKind::finished);
  EXPECT_EQ(state.version, 11u);  // the interval begins after the first
  EXPECT_EQ(state.latency[0].count() + state.latency[1].count(), 10u);
  EXPECT_EQ(state.queues[kMessageQueue].posted(), 11u);
}

}  // namespace
}  // namespace verbscope
