// Unreliable datagrams. InfiniBand Architecture Specification 1.3, volume 1, sections 9.8.3 (UD), 10.2.4 (Q_Keys) and
// 11.4.2.1 (the GRH in front of a received datagram); ibv_post_recv(3), ibv_poll_cq(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

class Datagrams : public Rig {
 protected:
  ibv_sge room(std::size_t offset, std::uint32_t length) { return b.sge(offset, length + kGrhBytes); }
};

TEST_F(Datagrams, LieBehindTheRoomForAGrh) {
  const Pair pair = connect(IBV_QPT_UD);
  fill(a.memory(), 100, 1);
  recv(pair.b, {room(0, 100)});
  send(pair.a, {.sges = {a.sge(0, 100)}});
  const ibv_wc wc = await_success(b.recv_cq(), "a datagram");
  EXPECT_EQ(wc.byte_len, 140u);
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), 100, 1));
}

TEST_F(Datagrams, SayWhetherTheyHaveAGrh) {
  const Pair pair = connect(IBV_QPT_UD);
  recv(pair.b, {room(0, 8)});
  send(pair.a, {.sges = {a.sge(0, 8)}});
  const bool always = a.gid().global;  // RoCE
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram").wc_flags & IBV_WC_GRH, always ? unsigned{IBV_WC_GRH} : 0u);
}

TEST_F(Datagrams, WithAGrhSaySo) {
  const Pair pair = connect(IBV_QPT_UD, {.global = true});
  fill(a.memory(), 8, 1);
  recv(pair.b, {room(0, 8)});
  send(pair.a, {.sges = {a.sge(0, 8)}});
  const ibv_wc wc = await_success(b.recv_cq(), "a datagram with a GRH");
  EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
  EXPECT_EQ(wc.byte_len, 48u);
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), 8, 1));
}

// The GRH's last 32 bytes are source and destination GID (section 8.3); RoCE over IPv4 has the IP header there, which
// ends with both addresses.
TEST_F(Datagrams, TellTheAddressesInTheGrh) {
  const Pair pair = connect(IBV_QPT_UD, {.global = true});
  recv(pair.b, {room(0, 8)});
  send(pair.a, {.sges = {a.sge(0, 8)}});
  await_success(b.recv_cq(), "a datagram with a GRH");
  const std::uint8_t* grh = b.memory();
  if (a.gid().global && is_ipv4_mapped(a.gid().gid)) {
    EXPECT_EQ(std::memcmp(grh + 32, a.gid().gid.raw + 12, 4), 0) << "source address";
    EXPECT_EQ(std::memcmp(grh + 36, b.gid().gid.raw + 12, 4), 0) << "destination address";
  } else {
    EXPECT_EQ(std::memcmp(grh + 8, a.gid().gid.raw, 16), 0) << "source GID";
    EXPECT_EQ(std::memcmp(grh + 24, b.gid().gid.raw, 16), 0) << "destination GID";
  }
}

// Section 9.8.3: a datagram whose Q_Key is not the receiver's is dropped.
TEST_F(Datagrams, WithAWrongQKeyAreDropped) {
  const Pair pair = connect(IBV_QPT_UD);
  recv(pair.b, {room(0, 8)}, 6);
  a.word(0) = 1;
  a.word(8) = 2;
  send(pair.a, {.sges = {a.sge(0, 8)}, .qkey = kQkey + 1});
  send(pair.a, {.sges = {a.sge(8, 8)}});
  EXPECT_EQ(await(a.send_cq(), 2, "both sent").size(), 2u);
  EXPECT_EQ(await_success(b.recv_cq(), "the datagram with the right Q_Key").wr_id, 6u);
  EXPECT_EQ(b.word(kGrhBytes), 2u);
}

// Section 10.2.4: with the most significant bit set in the request, the QP's own Q_Key is sent.
TEST_F(Datagrams, WithAControlledQKeyUseThatOfTheQp) {
  const Pair pair = connect(IBV_QPT_UD);
  recv(pair.b, {room(0, 8)});
  send(pair.a, {.sges = {a.sge(0, 8)}, .qkey = 0x80000000});
  if (deviates("controlled-qkey")) {  // dropped, so that the next takes its place
    a.word(8) = 7;
    send(pair.a, {.sges = {a.sge(8, 8)}});
    await_success(b.recv_cq(), "the next datagram");
    EXPECT_EQ(b.word(kGrhBytes), 7u);
    return;
  }
  await_success(b.recv_cq(), "a datagram with the Q_Key of its QP");
}

TEST_F(Datagrams, ToAnUnknownQpAreDropped) {
  const Pair pair = connect(IBV_QPT_UD);
  ibv_ah* ah = a.make_ah(b);
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 1, .ah = ah, .qpn = pair.b->qp_num + 0x4321});
  EXPECT_EQ(await_success(a.send_cq(), "a datagram to nobody").wr_id, 1u);
  marker(pair);
}

// One QP, one address handle, many receivers.
TEST_F(Datagrams, GoToTheQpThatTheRequestNames) {
  const Pair first = connect(IBV_QPT_UD);
  const Pair second = connect(IBV_QPT_UD);
  ibv_ah* ah = a.make_ah(b);
  recv(first.b, {room(0, 8)}, 1);
  recv(second.b, {room(64, 8)}, 2);
  a.word(0) = 1;
  a.word(8) = 2;
  send(first.a, {.sges = {a.sge(8, 8)}, .ah = ah, .qpn = second.b->qp_num});
  send(first.a, {.sges = {a.sge(0, 8)}, .ah = ah, .qpn = first.b->qp_num});
  const std::vector<ibv_wc> received = await(b.recv_cq(), 2, "a datagram for each QP");
  EXPECT_THAT(ids(received), testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(b.word(kGrhBytes), 1u);
  EXPECT_EQ(b.word(64 + kGrhBytes), 2u);
  for (const ibv_wc& wc : received) EXPECT_EQ(wc.src_qp, first.a->qp_num);
}

TEST_F(Datagrams, OfManySendersTellTheirQp) {
  const Pair first = connect(IBV_QPT_UD);
  ibv_qp* other = a.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(a, other, b, 0), 0);
  ibv_ah* ah = a.make_ah(b);
  for (std::uint64_t id = 0; id < 2; ++id) recv(first.b, {room(id * 64, 8)}, id);
  send(other, {.sges = {a.sge(0, 8)}, .ah = ah, .qpn = first.b->qp_num});
  EXPECT_EQ(await_success(b.recv_cq(), "from the other QP").src_qp, other->qp_num);
  send(first.a, {.sges = {a.sge(0, 8)}});
  EXPECT_EQ(await_success(b.recv_cq(), "from the first QP").src_qp, first.a->qp_num);
}

// C10-93.1.1 (section 10.7.2): a datagram over the MTU is not sent, and that is not an error.
TEST_F(Datagrams, OverTheMtuAreNotSent) {
  const Pair pair = connect(IBV_QPT_UD);
  const std::uint32_t length = mtu_of(a) + 1;
  recv(pair.b, {room(0, 2 * length)}, 6);
  send(pair.a, {.sges = {a.sge(0, length)}, .id = 5});
  const ibv_wc_status status = deviates("datagram-over-the-mtu") ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
  EXPECT_EQ(await_status(a.send_cq(), status, "a datagram over the MTU").wr_id, 5u);
  if (status != IBV_WC_SUCCESS) return;
  send(pair.a, {.sges = {a.sge(0, 8)}, .id = 7});
  EXPECT_EQ(await_success(b.recv_cq(), "the next datagram").byte_len, 8u + kGrhBytes);
}

TEST_F(Datagrams, FillTheirRoomExactly) {
  const Pair pair = connect(IBV_QPT_UD);
  fill(a.memory(), 33, 1);
  recv(pair.b, {room(0, 33)});
  send(pair.a, {.sges = {a.sge(0, 33)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram that fits exactly").byte_len, 73u);
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), 33, 1));
  EXPECT_TRUE(is_zero(b.memory(73), 64));
}

TEST_F(Datagrams, NeedAnAddressHandleOfAPort) {
  ibv_ah_attr attr = path_between(a, b);
  attr.port_num = static_cast<std::uint8_t>(a.device().attributes().phys_port_cnt + 1);
  errno = 0;
  ibv_ah* ah = a.verbs().create_ah(a.pd(), &attr);
  EXPECT_EQ(ah, nullptr) << "a port that is not there";
  EXPECT_NE(errno, 0);
  if (ah != nullptr) a.verbs().destroy_ah(ah);
}

class Immediate : public EachTransport {};
VERBSCOPE_EACH_TRANSPORT(Immediate);

TEST_P(Immediate, DataOfASendReachTheReceiver) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.opcode = IBV_WR_SEND_WITH_IMM, .sges = {a.sge(0, 8)}, .immediate = 0xcafe1234});
  const ibv_wc wc = await_success(b.recv_cq(), "a SEND with immediate data");
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, 0xcafe1234u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 8u + grh());
  EXPECT_EQ(await_success(a.send_cq(), "its completion").opcode, IBV_WC_SEND);
}

TEST_P(Immediate, DataMayComeWithoutAMessage) {
  const Pair pair = connect(type());
  recv(pair.b, {room(0, 64)});
  send(pair.a, {.opcode = IBV_WR_SEND_WITH_IMM, .sges = {}, .immediate = 7});
  const ibv_wc wc = await_success(b.recv_cq(), "immediate data alone");
  EXPECT_EQ(wc.imm_data, 7u);
  EXPECT_EQ(wc.byte_len, grh());
}

class ImmediateWrite : public EachConnected {
 protected:
  Request write(std::uint32_t length, std::uint32_t immediate) {
    Request request = write_to(a.sge(0, length), b, 4096);
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.immediate = immediate;
    return request;
  }
};
VERBSCOPE_EACH_CONNECTED(ImmediateWrite);

// Section 9.7.5.1.3 and 10.7.2: it consumes a RECV, whose buffer it does not touch.
TEST_P(ImmediateWrite, ConsumesAReceiveAndLeavesItsBuffer) {
  const Pair pair = connect(type());
  fill(a.memory(), 100, 1);
  recv(pair.b, {b.sge(0, 64)}, 6);
  send(pair.a, write(100, 0x11223344));
  const ibv_wc wc = await_success(b.recv_cq(), "a WRITE with immediate data");
  EXPECT_EQ(wc.wr_id, 6u);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, 0x11223344u);
  EXPECT_EQ(wc.byte_len, 100u);
  EXPECT_TRUE(has_pattern(b.memory(4096), 100, 1));
  EXPECT_TRUE(is_zero(b.memory(), 64));
  EXPECT_EQ(await_success(a.send_cq(), "its completion").opcode, IBV_WC_RDMA_WRITE);
}

TEST_P(ImmediateWrite, MayHaveManyPackets) {
  const Pair pair = connect(type());
  const std::uint32_t length = 5 * mtu_of(a) + 3;
  fill(a.memory(), length, 1);
  recv(pair.b, {}, 6);
  send(pair.a, write(length, 9));
  const ibv_wc wc = await_success(b.recv_cq(), "a long WRITE with immediate data");
  EXPECT_EQ(wc.byte_len, length);
  EXPECT_EQ(wc.imm_data, 9u);
  EXPECT_TRUE(has_pattern(b.memory(4096), length, 1));
}

TEST_P(ImmediateWrite, MayHaveNoByte) {
  const Pair pair = connect(type());
  recv(pair.b, {}, 6);
  send(pair.a, write(0, 9));
  const ibv_wc wc = await_success(b.recv_cq(), "an empty WRITE with immediate data");
  EXPECT_EQ(wc.byte_len, 0u);
  EXPECT_EQ(wc.imm_data, 9u);
}

TEST_P(ImmediateWrite, KeepsItsPlaceAmongSends) {
  const Pair pair = connect(type());
  for (std::uint64_t id = 0; id < 3; ++id) recv(pair.b, {b.sge(id * 64, 64)}, id);
  EXPECT_EQ(post(pair.a, {{.sges = {a.sge(0, 8)}}, write(8, 5), {.sges = {a.sge(0, 8)}}}).error, 0);
  const std::vector<ibv_wc> received = await(b.recv_cq(), 3, "SEND, WRITE, SEND");
  ASSERT_EQ(received.size(), 3u);
  EXPECT_THAT(ids(received), ElementsAre(0, 1, 2));
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[1].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received[2].opcode, IBV_WC_RECV);
}

}  // namespace
}  // namespace verbscope::conformance
