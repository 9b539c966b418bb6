// What a device tells about itself, and the tables of its ports. ibv_query_device_ex(3), ibv_query_port(3),
// ibv_query_gid_ex(3), ibv_query_pkey(3).
#include <endian.h>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

class Queries : public Rig {
 protected:
  std::uint8_t port = a.device().port();

  static std::uint32_t table_length(const Side& side) {
    return static_cast<std::uint32_t>(side.device().port_attributes().gid_tbl_len);
  }
  // The entry at `index`; its GID is zero if there is none.
  ibv_gid_entry gid_at(const Side& side, std::uint32_t index) const {
    ibv_gid_entry entry{};
    const int error = side.verbs().query_gid(side.context(), port, index, &entry);
    if (error != 0) {
      EXPECT_EQ(error, ENODATA) << "GID index " << index;
      entry = {};
    }
    return entry;
  }
  static bool is_empty(const ibv_gid_entry& entry) {
    return entry.gid.global.subnet_prefix == 0 && entry.gid.global.interface_id == 0;
  }
  // The address of `to` by the GIDs of this index on both sides.
  ibv_ah_attr path_by(std::uint32_t index, const Side& from, const Side& to) const {
    ibv_ah_attr path = path_between(from, to, true);
    path.grh.sgid_index = static_cast<std::uint8_t>(index);
    path.grh.dgid = gid_at(to, index).gid;
    return path;
  }
};

TEST_F(Queries, ExtendedAttributesBeginWithThePlainOnes) {
  const ibv_device_attr& plain = a.device().attributes();
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(a.context(), nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.max_qp, plain.max_qp);
  EXPECT_EQ(extended.orig_attr.max_qp_wr, plain.max_qp_wr);
  EXPECT_EQ(extended.orig_attr.max_cqe, plain.max_cqe);
  EXPECT_EQ(extended.orig_attr.max_sge, plain.max_sge);
  EXPECT_EQ(extended.orig_attr.device_cap_flags, plain.device_cap_flags);
  EXPECT_EQ(extended.orig_attr.phys_port_cnt, plain.phys_port_cnt);
}

// Those that the device does not have are zero.
TEST_F(Queries, ExtendedAttributesAreAllSet) {
  ibv_device_attr_ex extended;
  std::memset(&extended, 0xff, sizeof extended);
  ASSERT_EQ(ibv_query_device_ex(a.context(), nullptr, &extended), 0);
  EXPECT_EQ(extended.tso_caps.max_tso, 0u);
  EXPECT_EQ(extended.tm_caps.max_num_tags, 0u);
  EXPECT_EQ(extended.packet_pacing_caps.supported_qpts, 0u);
}

TEST_F(Queries, ExtendedRefuseAnUnknownInput) {
  ibv_query_device_ex_input input{};
  input.comp_mask = 1;
  ibv_device_attr_ex extended{};
  EXPECT_EQ(ibv_query_device_ex(a.context(), &input, &extended), EINVAL);
}

// ibv_query_port() of programs goes through the tables of the context.
TEST_F(Queries, OfAPortGiveTheSameByTheInlineCall) {
  const ibv_port_attr& known = a.device().port_attributes();
  ibv_port_attr attr{};
  ASSERT_EQ(ibv_query_port(a.context(), port, &attr), 0);
  EXPECT_EQ(attr.state, known.state);
  EXPECT_EQ(attr.lid, known.lid);
  EXPECT_EQ(attr.active_mtu, known.active_mtu);
  EXPECT_EQ(attr.gid_tbl_len, known.gid_tbl_len);
  EXPECT_EQ(attr.link_layer, known.link_layer);
}

TEST_F(Queries, OfAPortThatIsNotThereAreRefused) {
  ibv_port_attr attr{};
  for (const int number : {0, a.device().attributes().phys_port_cnt + 1}) {
    EXPECT_EQ(a.verbs().query_port(a.context(), static_cast<std::uint8_t>(number), &attr), EINVAL) << number;
    EXPECT_EQ(ibv_query_port(a.context(), static_cast<std::uint8_t>(number), &attr), EINVAL) << number;
  }
}

TEST_F(Queries, OfAGidTellItsPlace) {
  int filled = 0;
  for (std::uint32_t index = 0; index < table_length(a); ++index) {
    const ibv_gid_entry entry = gid_at(a, index);
    if (is_empty(entry)) continue;
    ++filled;
    EXPECT_EQ(entry.gid_index, index);
    EXPECT_EQ(entry.port_num, port);
  }
  EXPECT_GE(filled, 1);
}

// Section 4.1.1: a port has its default GID at index 0, which is link-local. On RoCE the kernel makes it from the MAC.
TEST_F(Queries, FindALinkLocalAddressFirst) {
  ibv_gid_entry first = gid_at(a, 0);
  EXPECT_TRUE(is_link_local(first.gid)) << gid_text(first.gid);
}

TEST_F(Queries, FindNoAddressTwiceWithOneType) {
  std::vector<ibv_gid_entry> all;
  for (std::uint32_t index = 0; index < table_length(a); ++index) {
    const ibv_gid_entry entry = gid_at(a, index);
    if (!is_empty(entry)) all.push_back(entry);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(all[i].gid_type == all[j].gid_type && std::memcmp(&all[i].gid, &all[j].gid, sizeof(ibv_gid)) == 0)
          << "GIDs " << j << " and " << i;
    }
  }
}

TEST_F(Queries, OfAGidBeyondTheTableAreRefused) {
  ibv_gid_entry entry{};
  EXPECT_EQ(a.verbs().query_gid(a.context(), port, table_length(a), &entry), EINVAL);
}

// Section 10.9.1.2: the default partition, with full membership.
TEST_F(Queries, FindTheDefaultPkey) {
  __be16 pkey = 0;
  ASSERT_EQ(a.verbs().query_pkey(a.context(), port, 0, &pkey), 0);
  EXPECT_EQ(be16toh(pkey), 0xffff);
}

TEST_F(Queries, OfAPkeyBeyondTheTableAreRefused) {
  __be16 pkey = 0;
  const int beyond = a.device().port_attributes().pkey_tbl_len;
  EXPECT_EQ(a.verbs().query_pkey(a.context(), port, beyond, &pkey), -1);
}

TEST_F(Queries, OfAPkeyBeyondTheTableDoNotBringUpAQp) {
  ibv_qp* qp = a.make_qp(IBV_QPT_RC);
  Step step = to_init(a, IBV_QPT_RC);
  step.attr.pkey_index = a.device().port_attributes().pkey_tbl_len;
  if (deviates("pkey-index-unchecked")) {
    EXPECT_EQ(modify(a, qp, step), 0);
  } else {
    EXPECT_EQ(modify(a, qp, step), EINVAL);
    EXPECT_EQ(state_of(a, qp), IBV_QPS_RESET);
  }
}

TEST_F(Queries, GiveGidsThatEachConnectTwoQps) {
  for (std::uint32_t index = 0; index < table_length(a); ++index) {
    if (is_empty(gid_at(a, index)) || is_empty(gid_at(b, index))) continue;
    const Pair pair{a.make_qp(IBV_QPT_RC), b.make_qp(IBV_QPT_RC)};
    for (const bool first : {true, false}) {
      const Side& side = first ? a : b;
      const Side& peer = first ? b : a;
      ibv_qp* qp = first ? pair.a : pair.b;
      ASSERT_EQ(modify(side, qp, to_init(side, IBV_QPT_RC)), 0);
      Step ready = to_rtr(side, IBV_QPT_RC, peer, first ? pair.b->qp_num : pair.a->qp_num);
      ready.attr.ah_attr = path_by(index, side, peer);
      ASSERT_EQ(modify(side, qp, ready), 0) << "GID index " << index;
      ASSERT_EQ(modify(side, qp, to_rts(IBV_QPT_RC)), 0);
    }
    a.word(0) = index + 1;
    recv(pair.b, {b.sge(8 * index, 8)});
    send(pair.a, {.sges = {a.sge(0, 8)}});
    await_success(a.send_cq(), "a SEND by GID");
    await_success(b.recv_cq(), "its RECV");
    EXPECT_EQ(b.word(8 * index), index + 1u);
  }
}

// Section 8.3 and annex A17.9.2: the room before the payload has the addresses of the packet, by which the receiver
// could answer.
TEST_F(Queries, GiveGidsThatDatagramsTell) {
  const Pair pair = connect(IBV_QPT_UD, {.global = true});
  for (std::uint32_t index = 0; index < table_length(a); ++index) {
    if (is_empty(gid_at(a, index)) || is_empty(gid_at(b, index))) continue;
    ibv_ah_attr path = path_by(index, a, b);
    ibv_ah* ah = a.keep(a.verbs().create_ah(a.pd(), &path), "address handle", &Provider::destroy_ah);
    recv(pair.b, {b.sge(0, kGrhBytes + 8)});
    send(pair.a, {.sges = {a.sge(0, 8)}, .ah = ah, .qpn = pair.b->qp_num});
    await_success(a.send_cq(), "a datagram by GID");
    EXPECT_NE(await_success(b.recv_cq(), "its RECV").wc_flags & IBV_WC_GRH, 0u);
    const ibv_gid_entry from = gid_at(a, index);
    const std::uint8_t* room = b.memory();
    if (from.gid_type == IBV_GID_TYPE_ROCE_V2 && is_ipv4_mapped(from.gid)) {
      EXPECT_EQ(room[20] >> 4, 4) << "IP version";
      EXPECT_EQ(std::memcmp(room + 32, from.gid.raw + 12, 4), 0) << "source address, GID index " << index;
    } else {
      EXPECT_EQ(room[0] >> 4, 6) << "IP version";
      EXPECT_EQ(room[6], from.gid_type == IBV_GID_TYPE_ROCE_V2 ? 17 : 0x1b) << "next header, GID index " << index;
      EXPECT_EQ(std::memcmp(room + 8, from.gid.raw, 16), 0) << "source GID, index " << index;
    }
  }
}

TEST_F(Queries, GiveNoGidToAnAddressHandleBeyondTheTable) {
  ibv_ah_attr path = path_between(a, b, true);
  path.grh.sgid_index = 255;
  ASSERT_TRUE(table_length(a) < 256 || is_empty(gid_at(a, 255)));
  errno = 0;
  ibv_ah* ah = a.verbs().create_ah(a.pd(), &path);
  EXPECT_EQ(ah, nullptr);
  EXPECT_THAT(errno, testing::AnyOf(EINVAL, ENODATA));
  if (ah != nullptr) a.verbs().destroy_ah(ah);
}

}  // namespace
}  // namespace verbscope::conformance
