// Messages arrive unchanged: bytes, length, immediate data, source, and offset in the buffer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::uint64_t kOut = 0;            // offset of a's outgoing data
constexpr std::uint32_t kRoom = 128 * 1024;  // per message

struct Shape {
  ibv_qp_type type;
  std::uint32_t length;
  bool inlined;
  std::string cluster;
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    return out << name_of(shape.type) << '_' << shape.length << (shape.inlined ? "_inline_" : "_by_dma_")
               << shape.cluster;
  }
};

class Delivery : public testing::TestWithParam<Shape> {};

TEST_P(Delivery, MessageArrivesUnchanged) {
  const Shape& shape = GetParam();
  Pair pair(shape.type, {.mtu = shape.cluster == "cx" ? IBV_MTU_2048 : IBV_MTU_4096}, steady_profile(shape.cluster));
  fill(pair.a.memory(kOut), shape.length, 5);
  const std::uint32_t head = grh_room(shape.type);
  ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, kRoom, 77), 0);
  const unsigned flags = kSignaled | (shape.inlined ? kInline : 0);
  ASSERT_EQ(pair.send({.offset = kOut, .length = shape.length, .id = 33, .flags = flags}), 0);
  if (shape.inlined) std::memset(pair.a.memory(kOut), 0, shape.length);  // the buffer may be reused after the post
  const auto received = pair.await(pair.b.recv_cq(), 1);
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[0].wr_id, 77u);
  EXPECT_EQ(received[0].byte_len, shape.length + head);
  EXPECT_EQ(received[0].qp_num, pair.qb->qp_num);
  EXPECT_EQ(received[0].wc_flags, 0u);
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + head), shape.length, 5));
  // Nothing is written after the message.
  EXPECT_EQ(*pair.b.memory(kIn + head + shape.length), 0);
  const auto sent = pair.await(pair.a.send_cq(), 1);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent[0].opcode, IBV_WC_SEND);
  EXPECT_EQ(sent[0].wr_id, 33u);
  EXPECT_EQ(sent[0].qp_num, pair.qa->qp_num);
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    for (const std::uint32_t length : {0u, 1u, 3u, 60u, 64u, 255u, 256u}) {
      all.push_back({type, length, true, "cib"});
      all.push_back({type, length, true, "cx3"});
    }
    for (const std::uint32_t length : {0u, 1u, 64u, 2048u, 4096u}) all.push_back({type, length, false, "cib"});
    all.push_back({type, 2048, false, "cx"});  // cx's MTU
  }
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    for (const std::uint32_t length : {4097u, 8192u, 50'000u}) all.push_back({type, length, false, "cib"});
    all.push_back({type, 5000, false, "cx"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, Delivery, testing::ValuesIn(shapes()), testing::PrintToStringParamName());

class EveryTransport : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, EveryTransport, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

// Gathers from three pieces and scatters into four.
TEST_P(EveryTransport, PiecesAreGatheredAndScattered) {
  for (const unsigned flags : {0u, kInline}) {
    Pair pair(GetParam());
    const std::uint32_t head = grh_room(GetParam());
    std::vector<std::uint8_t> message(100 + 7 + 43);
    fill(message.data(), message.size(), 9);
    std::memcpy(pair.a.memory(1000), &message[0], 100);
    std::memcpy(pair.a.memory(11), &message[100], 7);
    std::memcpy(pair.a.memory(5003), &message[107], 43);
    ibv_sge from[]{pair.a.sge(1000, 100), pair.a.sge(2000, 0), pair.a.sge(11, 7), pair.a.sge(5003, 43)};
    ibv_send_wr send{};
    send.sg_list = from;
    send.num_sge = 4;
    send.opcode = IBV_WR_SEND;
    send.send_flags = flags;
    send.wr.ud.ah = pair.ah;
    send.wr.ud.remote_qpn = pair.qb->qp_num;
    send.wr.ud.remote_qkey = 0x1111;
    ibv_sge to[]{pair.b.sge(100, head + 1), pair.b.sge(3000, 60), pair.b.sge(700, 0), pair.b.sge(9000, 500)};
    ibv_recv_wr recv{.wr_id = 1, .next = nullptr, .sg_list = to, .num_sge = 4};
    ibv_recv_wr* bad_recv = nullptr;
    ibv_send_wr* bad_send = nullptr;
    ASSERT_EQ(ibv_post_recv(pair.qb, &recv, &bad_recv), 0);
    ASSERT_EQ(ibv_post_send(pair.qa, &send, &bad_send), 0);
    const auto received = pair.await(pair.b.recv_cq(), 1);
    ASSERT_THAT(received, SizeIs(1));
    EXPECT_EQ(received[0].byte_len, 150 + head);
    std::vector<std::uint8_t> got(150);
    got[0] = *pair.b.memory(100 + head);
    std::memcpy(&got[1], pair.b.memory(3000), 60);
    std::memcpy(&got[61], pair.b.memory(9000), 89);
    EXPECT_EQ(got, message);
  }
}

TEST_P(EveryTransport, ImmediateArrivesInCompletion) {
  Pair pair(GetParam());
  pair.b.post_recv(pair.qb, kIn, 1024, 1);
  pair.b.post_recv(pair.qb, kIn, 1024, 2);
  ASSERT_EQ(pair.send({.length = 8, .with_immediate = true, .immediate = 0xcafe}), 0);
  ASSERT_EQ(pair.send({.length = 8, .immediate = 0xcafe}), 0);
  const auto received = pair.await(pair.b.recv_cq(), 2);
  ASSERT_THAT(received, SizeIs(2));
  EXPECT_EQ(received[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(received[0].imm_data, 0xcafeu);
  EXPECT_EQ(received[1].wc_flags, 0u);
}

TEST_P(EveryTransport, HeaderOnlySendNeedsNoMemory) {
  Pair pair(GetParam());
  // UD still needs room for the GRH (InfiniBand Architecture Specification 1.3, volume 1, section 11.4.1.2).
  pair.b.post_recv(pair.qb, kIn, grh_room(GetParam()), 1);
  ASSERT_EQ(pair.send({.length = 0, .with_immediate = true, .immediate = 7}), 0);
  const auto received = pair.await(pair.b.recv_cq(), 1);
  ASSERT_THAT(statuses(received), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(received[0].imm_data, 7u);
  EXPECT_EQ(received[0].byte_len, grh_room(GetParam()));
  // Receiver: no payload write, one CQE of 64 bytes.
  const PcieCounts counts = pair.cluster.pcie_counts(1);
  EXPECT_EQ(counts.dma_write_full_lines, 1u);
  EXPECT_EQ(counts.dma_write_partial_lines, 0u);
}

// A ring of eight RECV slots (one segment, 16 B), of which four are used. Of the next eight RECVs, four are before the
// ring's end, so the DMA read ends there.
TEST_P(EveryTransport, RecvsAreNotFetchedBeyondTheEndOfAShortRing) {
  Pair pair(GetParam(),
            {.cap = {.max_send_wr = 16, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0}});
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 64, 4), 0);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pair.send({.length = 8}), 0);
  ASSERT_THAT(pair.await(pair.b.recv_cq(), 4), SizeIs(4));
  const PcieCounts before = pair.cluster.pcie_counts(1);
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 64, 8), 0);
  pair.pass(kLong);
  const PcieCounts after = pair.cluster.pcie_counts(1);
  EXPECT_EQ(after.tlps_to_host - before.tlps_to_host, 1u);
  EXPECT_EQ(after.payload_bytes_to_nic - before.payload_bytes_to_nic, 4u * 16);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(pair.send({.length = 8}), 0);
  EXPECT_THAT(pair.await(pair.b.recv_cq(), 8), SizeIs(8));
}

TEST_P(EveryTransport, HeaderOnlySendNeedsNoInlineRoom) {
  Pair pair(GetParam(),
            {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0}});
  pair.b.post_recv(pair.qb, kIn, 64, 1);
  ASSERT_EQ(pair.send({.length = 0, .flags = kSignaled | kInline}), 0);
  EXPECT_THAT(statuses(pair.await(pair.b.recv_cq(), 1)), ElementsAre(IBV_WC_SUCCESS));
}

TEST_P(EveryTransport, MessagesArriveInTheOrderOfPosting) {
  Pair pair(GetParam());
  const std::uint32_t head = grh_room(GetParam());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 512, 48), 0);
  for (std::uint32_t i = 0; i < 48; ++i) {
    // Inline and DMA-read payloads alternate: the inline ones must not overtake.
    fill(pair.a.memory(i * 400), 200 + i, i);
    const unsigned flags = kSignaled | (i % 2 == 0 ? kInline : 0);
    ASSERT_EQ(pair.send({.offset = i * 400, .length = 200 + i, .id = i, .flags = flags}), 0);
  }
  const auto received = pair.await(pair.b.recv_cq(), 48);
  const auto sent = pair.await(pair.a.send_cq(), 48);
  ASSERT_THAT(received, SizeIs(48));
  ASSERT_THAT(sent, SizeIs(48));
  for (std::uint32_t i = 0; i < 48; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, 200 + i + head);
    EXPECT_TRUE(has_pattern(pair.b.memory(kIn + i * 512 + head), 200 + i, i)) << "message " << i;
    EXPECT_EQ(sent[i].wr_id, i);
  }
}

TEST_P(EveryTransport, BothDirectionsAtOnce) {
  Pair pair(GetParam());
  ibv_ah* back = GetParam() == IBV_QPT_UD ? pair.b.make_ah(0) : nullptr;
  pair.a.post_recvs(pair.qa, kIn, 256, 20);
  pair.b.post_recvs(pair.qb, kIn, 256, 20);
  fill(pair.a.memory(0), 128, 1);
  fill(pair.b.memory(0), 128, 2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(pair.send({.length = 128}), 0);
    ASSERT_EQ(pair.b.post(pair.qb, {.length = 128}, back, pair.qa->qp_num), 0);
  }
  EXPECT_THAT(pair.await(pair.a.recv_cq(), 20), SizeIs(20));
  EXPECT_THAT(pair.await(pair.b.recv_cq(), 20), SizeIs(20));
  EXPECT_TRUE(has_pattern(pair.a.memory(kIn + 19 * 256 + grh_room(GetParam())), 128, 2));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + 19 * 256 + grh_room(GetParam())), 128, 1));
}

TEST_P(EveryTransport, NodeSendsToItself) {
  TwoNodes nodes;
  ibv_qp* one = nodes.a.make_qp(GetParam());
  ibv_qp* other = nodes.a.make_qp(GetParam());
  ASSERT_EQ(bring_up(nodes.a, one, {}, 0, other->qp_num), 0);
  ASSERT_EQ(bring_up(nodes.a, other, {}, 0, one->qp_num), 0);
  ibv_ah* ah = GetParam() == IBV_QPT_UD ? nodes.a.make_ah(0) : nullptr;
  nodes.a.post_recv(other, kIn, 256, 3);
  fill(nodes.a.memory(0), 64, 4);
  ASSERT_EQ(nodes.a.post(one, {.length = 64}, ah, other->qp_num), 0);
  EXPECT_THAT(ids(nodes.await(nodes.a.recv_cq(), 1)), ElementsAre(3));
  EXPECT_TRUE(has_pattern(nodes.a.memory(kIn + grh_room(GetParam())), 64, 4));
}

TEST(UdDelivery, CompletionNamesSender) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recv(pair.qb, kIn, 256);
  ASSERT_EQ(pair.send({.length = 16}), 0);
  const auto received = pair.await(pair.b.recv_cq(), 1);
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].src_qp, pair.qa->qp_num);
}

TEST(UdDelivery, GrhFlagIsSetOnlyForGlobalAddress) {
  for (const bool global : {false, true}) {
    Pair pair(IBV_QPT_UD, {.global = global});
    fill(pair.a.memory(), 100, 1);
    pair.b.post_recv(pair.qb, kIn, 256);
    ASSERT_EQ(pair.send({.length = 100}), 0);
    const auto received = pair.await(pair.b.recv_cq(), 1);
    ASSERT_THAT(received, SizeIs(1));
    EXPECT_EQ(received[0].wc_flags, global ? static_cast<unsigned>(IBV_WC_GRH) : 0u);
    EXPECT_EQ(received[0].byte_len, 140u);  // includes the 40 bytes in both cases
    EXPECT_TRUE(has_pattern(pair.b.memory(kIn + 40), 100, 1));
  }
}

TEST(UdDelivery, OneQpSendsToManyAndReceivesFromMany) {
  TwoNodes nodes;
  ibv_qp* from = nodes.a.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(nodes.a, from, {}, 0, 0), 0);
  ibv_ah* ah = nodes.a.make_ah(1);
  std::vector<ibv_qp*> to;
  for (std::uint64_t i = 0; i < 5; ++i) {
    to.push_back(nodes.b.make_qp(IBV_QPT_UD));
    ASSERT_EQ(bring_up(nodes.b, to.back(), {}, 0, 0), 0);
    nodes.b.post_recv(to.back(), kIn + i * 256, 256, i);
  }
  for (std::uint64_t i = 0; i < 5; ++i) {
    fill(nodes.a.memory(i * 64), 64, static_cast<unsigned>(i));
    ASSERT_EQ(nodes.a.post(from, {.offset = i * 64, .length = 64}, ah, to[i]->qp_num), 0);
  }
  ASSERT_THAT(nodes.await(nodes.b.recv_cq(), 5), SizeIs(5));
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(has_pattern(nodes.b.memory(kIn + i * 256 + 40), 64, static_cast<unsigned>(i)));
  }
}

TEST(PathMtu, CutsMessagesOfConnectedQpsIntoPackets) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    Pair pair(type, {.mtu = IBV_MTU_256});
    fill(pair.a.memory(), 1000, 3);
    pair.b.post_recv(pair.qb, kIn, 1000);
    ASSERT_EQ(pair.send({.length = 1000}), 0);
    ASSERT_THAT(pair.await(pair.b.recv_cq(), 1), SizeIs(1));
    EXPECT_TRUE(has_pattern(pair.b.memory(kIn), 1000, 3));
    EXPECT_EQ(pair.cluster.nic_counts(0).packets_sent, 4u);  // three of 256 bytes and one of 232
    EXPECT_EQ(pair.cluster.nic_counts(0).messages_sent, 1u);
    EXPECT_EQ(pair.cluster.nic_counts(1).packets_received, 4u);
    EXPECT_EQ(pair.cluster.nic_counts(1).messages_received, 1u);
  }
}

}  // namespace
}  // namespace verbscope::test
