// Multicast groups of datagrams. InfiniBand Architecture Specification 1.3, volume 1, section 10.5;
// ibv_attach_mcast(3), ibv_destroy_qp(3).
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr std::uint32_t kAllQps = 0xffffff;  // the QP number of datagrams to a group

struct Group {
  ibv_gid gid;
  std::uint16_t lid;
};

class Multicast : public Rig {
 protected:
  Group group = group_of(1);

  ~Multicast() override {
    for (const int socket : sockets_) close(socket);
  }

  // RoCE has IPv4 groups here; InfiniBand has transient groups of link-local scope (section 4.1.1).
  Group group_of(std::uint8_t number) const {
    Group made{.gid = {}, .lid = static_cast<std::uint16_t>(0xc000 + number)};
    if (is_ipv4_mapped(a.gid().gid)) {
      made.gid = gid_from_text("::ffff:239.1.2.0");
    } else {
      made.gid = gid_from_text("ff12::7:0");
    }
    made.gid.raw[15] = number;
    return made;
  }

  // A group of a machine needs a member of its network: here a socket, else librdmacm or the subnet administrator.
  bool join(const Group& of) {
    if (fabric().simulated()) return true;
    if (!is_ipv4_mapped(a.gid().gid)) return false;
    const int made = socket(AF_INET, SOCK_DGRAM, 0);
    ip_mreq request{};
    std::memcpy(&request.imr_multiaddr, of.gid.raw + 12, 4);
    std::memcpy(&request.imr_interface, a.gid().gid.raw + 12, 4);
    if (setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) != 0) {
      close(made);
      return false;
    }
    sockets_.push_back(made);
    return true;
  }

  void SetUp() override { VERBSCOPE_NEEDS(join(group), "joining a multicast group"); }

  int attach(const Side& side, ibv_qp* qp, const Group& to) { return side.verbs().attach_mcast(qp, &to.gid, to.lid); }
  int detach(const Side& side, ibv_qp* qp, const Group& from) {
    return side.verbs().detach_mcast(qp, &from.gid, from.lid);
  }
  // A QP in RTS that the side detaches before it destroys the QP.
  ibv_qp* make_member(Side& side, const Group& of) {
    ibv_qp* qp = make_datagram_qp(side);
    keep_attached(side, qp, of);
    return qp;
  }
  void keep_attached(Side& side, ibv_qp* qp, const Group& to) {
    EXPECT_EQ(attach(side, qp, to), 0);
    const int* const name = names_.emplace_back(std::make_unique<int>()).get();
    side.keep(const_cast<int*>(name), "attachment",
              [verbs = &side.verbs(), qp, to] { return verbs->detach_mcast(qp, &to.gid, to.lid); });
  }
  ibv_qp* make_datagram_qp(Side& side) {
    ibv_qp* qp = side.make_qp(IBV_QPT_UD);
    EXPECT_EQ(bring_up(side, qp, side, 0), 0);
    return qp;
  }
  static ibv_ah_attr path_to(const Side& from, const Group& to) {
    ibv_ah_attr attr = path_between(from, from, true);
    attr.dlid = to.lid;
    attr.grh.dgid = to.gid;
    return attr;
  }
  ibv_ah* make_ah(Side& from, const Group& to) {
    ibv_ah_attr attr = path_to(from, to);
    return from.keep(from.verbs().create_ah(from.pd(), &attr), "address handle of a group", &Provider::destroy_ah);
  }
  Request to_group(const ibv_sge& data, ibv_ah* ah) const { return {.sges = {data}, .ah = ah, .qpn = kAllQps}; }
  static ibv_sge room(const Side& side, std::size_t offset, std::uint32_t length) {
    return side.sge(offset, length + kGrhBytes);
  }

 private:
  std::vector<int> sockets_;
  std::vector<std::unique_ptr<int>> names_;
};

TEST_F(Multicast, ReachesEachAttachedQp) {
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* near = make_member(a, group);
  ibv_qp* far = make_member(b, group);
  ibv_qp* other = make_member(b, group);
  fill(a.memory(65536), 1000, 1);
  recv(near, {room(a, 0, 1000)}, 1);
  recv(far, {room(b, 0, 1000)}, 2);
  recv(other, {room(b, 4096, 1000)}, 3);
  send(sender, to_group(a.sge(65536, 1000), make_ah(a, group)));
  await_success(a.send_cq(), "a datagram to a group");
  const ibv_wc at_a = await_success(a.recv_cq(), "the copy on the sender's side");
  EXPECT_EQ(at_a.wr_id, 1u);
  EXPECT_EQ(at_a.src_qp, sender->qp_num);
  EXPECT_TRUE(has_pattern(a.memory(kGrhBytes), 1000, 1));
  const std::vector<ibv_wc> at_b = await(b.recv_cq(), 2, "a copy for each QP");
  EXPECT_THAT(ids(at_b), UnorderedElementsAre(2, 3));
  for (const ibv_wc& wc : at_b) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 1000 + kGrhBytes);
    EXPECT_EQ(wc.src_qp, sender->qp_num);
    EXPECT_EQ(wc.qp_num, wc.wr_id == 2 ? far->qp_num : other->qp_num);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
  }
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), 1000, 1));
  EXPECT_TRUE(has_pattern(b.memory(4096 + kGrhBytes), 1000, 1));
}

TEST_F(Multicast, NamesTheGroupInTheGrh) {
  ibv_qp* sender = make_datagram_qp(a);
  recv(make_member(b, group), {room(b, 0, 8)});
  send(sender, to_group(a.sge(0, 8), make_ah(a, group)));
  await_success(b.recv_cq(), "a datagram to a group");
  if (is_ipv4_mapped(group.gid)) {
    EXPECT_EQ(std::memcmp(b.memory(32), a.gid().gid.raw + 12, 4), 0) << "source address";
    EXPECT_EQ(std::memcmp(b.memory(36), group.gid.raw + 12, 4), 0) << "destination address";
  } else {
    EXPECT_EQ(std::memcmp(b.memory(8), a.gid().gid.raw, 16), 0) << "source GID";
    EXPECT_EQ(std::memcmp(b.memory(24), group.gid.raw, 16), 0) << "destination GID";
  }
}

TEST_F(Multicast, CarriesWholePacketsAndImmediateData) {
  ibv_qp* sender = make_datagram_qp(a);
  const std::uint32_t length = mtu_of(a);
  fill(a.memory(65536), length, 3);
  recv(make_member(b, group), {room(b, 0, length)});
  Request request = to_group(a.sge(65536, length), make_ah(a, group));
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.immediate = 0xabcd;
  send(sender, request);
  const ibv_wc wc = await_success(b.recv_cq(), "a packet of the MTU to a group");
  EXPECT_EQ(wc.byte_len, length + kGrhBytes);
  EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(wc.imm_data, 0xabcdu);
  EXPECT_TRUE(has_pattern(b.memory(kGrhBytes), length, 3));
}

// ibv_create_qp_ex(3): IBV_QP_CREATE_BLOCK_SELF_MCAST_LB prevents it (below).
TEST_F(Multicast, ReachesTheSenderIfItIsAttached) {
  ibv_qp* qp = make_member(a, group);
  recv(qp, {room(a, 0, 8)}, 4);
  a.word(65536) = 77;
  send(qp, to_group(a.sge(65536, 8), make_ah(a, group)));
  const ibv_wc wc = await_success(a.recv_cq(), "one's own datagram");
  EXPECT_EQ(wc.wr_id, 4u);
  EXPECT_EQ(wc.src_qp, qp->qp_num);
  EXPECT_EQ(a.word(kGrhBytes), 77u);
}

class MulticastWithoutLoopback : public Multicast {
 protected:
  ibv_cq* cq = a.make_cq(16);  // of the RECVs of `qp`
  ibv_qp* qp = nullptr;        // attached to the group

  void SetUp() override {
    Multicast::SetUp();
    if (IsSkipped()) return;
    ibv_qp_init_attr_ex attr = extended_attributes(a, IBV_QPT_UD, {.recv_cq = cq});
    attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    qp = a.verbs().create_qp_ex(a.context(), &attr);
    VERBSCOPE_NEEDS(qp != nullptr, "blocking the loopback of multicast");
    a.keep(qp, "QP", &Provider::destroy_qp);
    ASSERT_EQ(bring_up(a, qp, a, 0), 0);
    keep_attached(a, qp, group);
  }
};

TEST_F(MulticastWithoutLoopback, ReachesOthersOnly) {
  recv(qp, {room(a, 0, 8)}, 1);
  recv(make_member(a, group), {room(a, 64, 8)}, 2);
  recv(make_member(b, group), {room(b, 0, 8)}, 3);
  send(qp, to_group(a.sge(65536, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(a.recv_cq(), "the datagram at another QP of its device").wr_id, 2u);
  EXPECT_EQ(await_success(b.recv_cq(), "the datagram at another device").wr_id, 3u);
  EXPECT_TRUE(poll(cq).empty());
}

TEST_F(MulticastWithoutLoopback, ComesFromOtherSenders) {
  for (std::uint64_t id = 0; id < 2; ++id) recv(qp, {room(a, id * 64, 8)}, id);
  ibv_qp* near = make_datagram_qp(a);
  ibv_qp* far = make_datagram_qp(b);
  send(near, to_group(a.sge(65536, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(cq, "a datagram of the same device").src_qp, near->qp_num);
  send(far, to_group(b.sge(65536, 8), make_ah(b, group)));
  EXPECT_EQ(await_success(cq, "a datagram of another device").src_qp, far->qp_num);
}

TEST_F(MulticastWithoutLoopback, DatagramsToTheQpItselfCome) {
  recv(qp, {room(a, 0, 8)}, 4);
  send(qp, {.sges = {a.sge(65536, 8)}, .ah = a.make_ah(a, true), .qpn = qp->qp_num});
  EXPECT_EQ(await_success(cq, "a datagram to the own QP").wr_id, 4u);
}

TEST_F(Multicast, KeepsTheOrderOfItsSender) {
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* member = make_member(b, group);
  ibv_ah* ah = make_ah(a, group);
  for (std::uint64_t id = 0; id < 8; ++id) recv(member, {room(b, id * 64, 8)}, id);
  for (std::uint64_t id = 0; id < 8; ++id) {
    a.word(id * 8) = id + 1;
    send(sender, to_group(a.sge(id * 8, 8), ah));
  }
  EXPECT_THAT(ids(await(b.recv_cq(), 8, "datagrams to a group")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(b.word(id * 64 + kGrhBytes), id + 1);
}

TEST_F(Multicast, DoesNotReachOtherGroups) {
  const Group second = group_of(2);
  VERBSCOPE_NEEDS(join(second), "joining a second group");
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* member = make_member(b, second);
  recv(member, {room(b, 0, 8)}, 1);
  a.word(0) = 1;
  a.word(8) = 2;
  send(sender, to_group(a.sge(0, 8), make_ah(a, group)));
  send(sender, to_group(a.sge(8, 8), make_ah(a, second)));
  await_success(b.recv_cq(), "a datagram to the second group");
  EXPECT_EQ(b.word(kGrhBytes), 2u);
}

TEST_F(Multicast, ReachesAQpInSeveralGroups) {
  const Group second = group_of(2);
  VERBSCOPE_NEEDS(join(second), "joining a second group");
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* member = make_member(b, group);
  keep_attached(b, member, second);
  for (std::uint64_t id = 0; id < 2; ++id) recv(member, {room(b, id * 64, 8)}, id);
  send(sender, to_group(a.sge(0, 8), make_ah(a, group)));
  send(sender, to_group(a.sge(0, 8), make_ah(a, second)));
  EXPECT_EQ(await(b.recv_cq(), 2, "a datagram to each group").size(), 2u);
}

// A QP that is not attached any more is not reached; another member shows that the datagram has passed.
TEST_F(Multicast, DoesNotReachADetachedQp) {
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* witness = make_member(b, group);
  const Pair pair = connect(IBV_QPT_UD);
  ASSERT_EQ(attach(b, pair.b, group), 0);
  ASSERT_EQ(detach(b, pair.b, group), 0);
  recv(witness, {room(b, 4096, 8)}, 1);
  send(sender, to_group(a.sge(0, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram to the member").qp_num, witness->qp_num);
  await_success(a.send_cq(), "the datagram");
  marker(pair);
}

// ibv_attach_mcast(3), NOTES: it receives a single copy.
TEST_F(Multicast, ComesOnceToAQpAttachedTwice) {
  const Pair pair = connect(IBV_QPT_UD);
  keep_attached(b, pair.b, group);
  EXPECT_EQ(attach(b, pair.b, group), 0);
  recv(pair.b, {room(b, 0, 8)}, 1);
  send(pair.a, to_group(a.sge(0, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram to a group").wr_id, 1u);
  marker(pair);
}

TEST_F(Multicast, WithAWrongQKeyReachesOthersOnly) {
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* member = make_member(b, group);
  ibv_qp* stranger = b.make_qp(IBV_QPT_UD);
  Step init = to_init(b, IBV_QPT_UD);
  init.attr.qkey = kQkey + 1;
  ASSERT_EQ(modify(b, stranger, init), 0);
  ASSERT_EQ(modify(b, stranger, to_rtr(b, IBV_QPT_UD, a, 0)), 0);
  keep_attached(b, stranger, group);
  recv(stranger, {room(b, 0, 8)}, 1);
  recv(member, {room(b, 64, 8)}, 2);
  ibv_ah* ah = make_ah(a, group);
  send(sender, to_group(a.sge(0, 8), ah));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram with the member's Q_Key").wr_id, 2u);
  Request request = to_group(a.sge(0, 8), ah);
  request.qkey = kQkey + 1;
  send(sender, request);
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram with the other Q_Key").wr_id, 1u);
}

TEST_F(Multicast, WithoutAReceiveReachesOthersOnly) {
  ibv_qp* sender = make_datagram_qp(a);
  ibv_qp* empty = make_member(b, group);
  ibv_qp* member = make_member(b, group);
  ibv_ah* ah = make_ah(a, group);
  recv(member, {room(b, 0, 8)}, 1);
  send(sender, to_group(a.sge(0, 8), ah));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram to the QP with a RECV").wr_id, 1u);
  recv(empty, {room(b, 64, 8)}, 2);
  send(sender, to_group(a.sge(0, 8), ah));
  EXPECT_EQ(await_success(b.recv_cq(), "the next datagram").wr_id, 2u);
}

TEST_F(Multicast, UsesReceivesOfASharedQueue) {
  ibv_srq* srq = b.make_srq(4);
  QpAsk ask;
  ask.srq = srq;
  ibv_qp* member = b.make_qp(IBV_QPT_UD, ask);
  ASSERT_EQ(bring_up(b, member, b, 0), 0);
  keep_attached(b, member, group);
  srq_recv(srq, {room(b, 0, 8)}, 5);
  send(make_datagram_qp(a), to_group(a.sge(0, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram through an SRQ").wr_id, 5u);
}

TEST_F(Multicast, TakesAQpBeforeItReceives) {
  ibv_qp* qp = b.make_qp(IBV_QPT_UD);
  keep_attached(b, qp, group);
  ASSERT_EQ(bring_up(b, qp, b, 0), 0);
  recv(qp, {room(b, 0, 8)}, 5);
  send(make_datagram_qp(a), to_group(a.sge(0, 8), make_ah(a, group)));
  EXPECT_EQ(await_success(b.recv_cq(), "a datagram to a QP that was attached early").wr_id, 5u);
}

class MulticastConnected : public Multicast, public testing::WithParamInterface<ibv_qp_type> {};
VERBSCOPE_EACH_CONNECTED(MulticastConnected);

TEST_P(MulticastConnected, QpsCannotBeAttached) {
  ibv_qp* qp = b.make_qp(GetParam());
  EXPECT_EQ(attach(b, qp, group), EINVAL);
  EXPECT_EQ(detach(b, qp, group), EINVAL);
}

TEST_F(Multicast, NeedsAMulticastGid) {
  ibv_qp* qp = make_datagram_qp(b);
  EXPECT_EQ(attach(b, qp, {.gid = a.gid().gid, .lid = group.lid}), EINVAL);
  EXPECT_EQ(attach(b, qp, {.gid = {}, .lid = group.lid}), EINVAL);
}

// Section 4.1.3. RoCE ignores the LID (annex A16).
TEST_F(Multicast, NeedsAMulticastLid) {
  ibv_qp* qp = make_datagram_qp(b);
  const bool infiniband = b.device().port_attributes().link_layer == IBV_LINK_LAYER_INFINIBAND;
  for (const int lid : {0, 1, 0xbfff, 0xffff}) {
    const Group other{.gid = group.gid, .lid = static_cast<std::uint16_t>(lid)};
    EXPECT_EQ(attach(b, qp, other), infiniband ? EINVAL : 0) << lid;
    EXPECT_EQ(detach(b, qp, other), infiniband ? EINVAL : 0) << lid;
  }
}

TEST_F(Multicast, CannotBeLeftWithoutBeingAttached) {
  ibv_qp* qp = make_datagram_qp(b);
  EXPECT_EQ(detach(b, qp, group), EINVAL);
  ASSERT_EQ(attach(b, qp, group), 0);
  EXPECT_EQ(detach(b, qp, group_of(2)), EINVAL);
  EXPECT_EQ(detach(b, qp, group), 0);
  EXPECT_EQ(detach(b, qp, group), EINVAL);
}

// ibv_destroy_qp(3), NOTES.
TEST_F(Multicast, KeepsItsQpsBusy) {
  ibv_qp* qp = make_datagram_qp(b);
  ASSERT_EQ(attach(b, qp, group), 0);
  EXPECT_EQ(b.destroy(qp), EBUSY);
  EXPECT_EQ(detach(b, qp, group), 0);
  EXPECT_EQ(b.destroy(qp), 0);
}

TEST_F(Multicast, HasNoMoreMembersThanTheDeviceTells) {
  const int most = b.device().attributes().max_mcast_qp_attach;
  ASSERT_GT(most, 0);
  EXPECT_GT(b.device().attributes().max_mcast_grp, 0);
  if (most > 300) GTEST_SKIP() << "groups of this device have up to " << most << " QPs";
  for (int i = 0; i < most; ++i) keep_attached(b, b.make_qp(IBV_QPT_UD), group);
  EXPECT_EQ(attach(b, b.make_qp(IBV_QPT_UD), group), ENOMEM);
}

}  // namespace
}  // namespace verbscope::conformance
