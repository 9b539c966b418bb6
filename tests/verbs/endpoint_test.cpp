// Addresses of QPs: endpoints and their JSON, the choice of a GID, and the check of two sides before RTR.
#include "verbs/endpoint.hpp"

#include <gtest/gtest.h>

#include "tests/verbs/mock_provider.hpp"
#include "verbs/null/provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {
namespace {

using testing::_;
using testing::HasSubstr;

Endpoint example_endpoint() {
  Endpoint made;
  made.qpn = 0xffffff;
  made.psn = 17;
  made.qkey = 0xffffffff;
  made.lid = 9;
  made.gid = "::ffff:10.9.0.1";
  made.gid_index = 1;
  made.gid_type = "RoCE v2";
  made.global = true;
  made.mtu = 1024;
  made.port = 2;
  made.link_layer = "Ethernet";
  return made;
}

TEST(Endpoint, RoundTripsThroughJson) {
  EXPECT_EQ(endpoint_from_json(to_json(example_endpoint()), "peer"), example_endpoint());
}

TEST(Endpoint, RejectsWrongValuesByKey) {
  const auto refusal = [](const char* key, const Json& value) {
    Json json = to_json(example_endpoint());
    json[key] = value;
    return error_of([&] { endpoint_from_json(json, "peer"); });
  };
  EXPECT_THAT(refusal("qpn", 1 << 24), HasSubstr("peer: key \"qpn\""));
  EXPECT_THAT(refusal("psn", -1), HasSubstr("peer: key \"psn\""));
  EXPECT_THAT(refusal("lid", 65536), HasSubstr("peer: key \"lid\""));
  EXPECT_THAT(refusal("port", 0), HasSubstr("peer: key \"port\""));
  EXPECT_THAT(refusal("global", 1), HasSubstr("peer: key \"global\""));
  EXPECT_EQ(refusal("mtu_bytes", 1500), "peer: MTU 1500 (allowed: 256, 512, 1024, 2048, 4096 bytes)");
  EXPECT_EQ(refusal("gid", "x"), "peer: \"x\" is not a GID");
  EXPECT_EQ(refusal("gid_type", "RoCE"), "peer: GID type \"RoCE\" (allowed: IB, RoCE v1, RoCE v2)");
  EXPECT_THAT(refusal("link_layer", "Token Ring"), HasSubstr("expected Ethernet or InfiniBand"));
  EXPECT_THAT(refusal("colour", "red"), HasSubstr("colour"));
}

TEST(Endpoint, NamesMissingKeys) {
  Json json = to_json(example_endpoint());
  json.erase("psn");
  EXPECT_EQ(error_of([&] { endpoint_from_json(json, "peer"); }), "peer: key \"psn\" is missing");
}

TEST(Endpoint, HasTheAddressOfTheNullDevice) {
  NullProvider provider;
  const Device device(provider, "");
  const Pd pd(device);
  const Cq cq(device, 1);
  const Qp qp(pd, QpOptions{.transport = Transport::ud, .send_cq = cq.get(), .recv_cq = cq.get()});
  const GidChoice gid = choose_gid(device, -1);
  const Endpoint endpoint = make_endpoint(device, gid, qp, 0x1234567, kDefaultQkey);
  EXPECT_EQ(endpoint.qpn, qp.number());
  EXPECT_EQ(endpoint.psn, 0x234567u);  // 24 bits
  EXPECT_EQ(endpoint.link_layer, "InfiniBand");
  EXPECT_EQ(endpoint.mtu, 4096);
  EXPECT_EQ(check_compatible(endpoint, endpoint), IBV_MTU_4096);
  EXPECT_EQ(endpoint_from_json(to_json(endpoint), "here"), endpoint);
}

TEST(Mtu, ConvertsToBytesAndBack) {
  EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256);
  EXPECT_EQ(mtu_bytes(IBV_MTU_4096), 4096);
  for (const int bytes : {256, 512, 1024, 2048, 4096}) EXPECT_EQ(mtu_bytes(mtu_from_bytes(bytes)), bytes);
}

ibv_gid_entry entry(std::uint32_t index, const char* gid, ibv_gid_type type) {
  ibv_gid_entry made{};
  made.gid = gid_from_text(gid);
  made.gid_index = index;
  made.gid_type = type;
  return made;
}

const ibv_gid_entry kLinkLocalV1 = entry(0, "fe80::a00:27ff:fe00:1", IBV_GID_TYPE_ROCE_V1);
const ibv_gid_entry kLinkLocalV2 = entry(1, "fe80::a00:27ff:fe00:1", IBV_GID_TYPE_ROCE_V2);
const ibv_gid_entry kIpv4V1 = entry(2, "::ffff:10.9.0.1", IBV_GID_TYPE_ROCE_V1);
const ibv_gid_entry kIpv4V2 = entry(3, "::ffff:10.9.0.1", IBV_GID_TYPE_ROCE_V2);
const ibv_gid_entry kIpv6V2 = entry(4, "2001:db8::1", IBV_GID_TYPE_ROCE_V2);
const ibv_gid_entry kSecondIpv4V2 = entry(5, "::ffff:10.9.0.2", IBV_GID_TYPE_ROCE_V2);

TEST(PickGid, RoceV2WithIpv4IsBest) {
  const GidChoice choice =
      pick_roce_gid({kLinkLocalV1, kLinkLocalV2, kIpv4V1, kIpv4V2, kIpv6V2, kSecondIpv4V2}, -1, "mlx5_0:1");
  EXPECT_EQ(choice.index, 3);
  EXPECT_EQ(choice.type, IBV_GID_TYPE_ROCE_V2);
  EXPECT_TRUE(choice.global);
  EXPECT_EQ(choice.why, "GID index 3 picked of 6: RoCE v2 ::ffff:10.9.0.1 (IPv4)");
}

TEST(PickGid, PrefersRoutableIpv6ThenLinkLocalThenV1) {
  EXPECT_EQ(pick_roce_gid({kLinkLocalV1, kLinkLocalV2, kIpv4V1, kIpv6V2}, -1, "d").index, 4);
  EXPECT_EQ(pick_roce_gid({kLinkLocalV1, kLinkLocalV2, kIpv4V1}, -1, "d").index, 1);
  EXPECT_EQ(pick_roce_gid({kLinkLocalV1, kIpv4V1}, -1, "d").index, 0);
}

TEST(PickGid, OrderOfTheTableDoesNotMatter) {
  EXPECT_EQ(pick_roce_gid({kSecondIpv4V2, kIpv4V2, kLinkLocalV1}, -1, "d").index, 3);
}

TEST(PickGid, UsesTheRequestedIndex) {
  const GidChoice choice = pick_roce_gid({kLinkLocalV1, kIpv4V2}, 0, "d");
  EXPECT_EQ(choice.index, 0);
  EXPECT_EQ(choice.why, "GID index 0 as asked: RoCE v1 fe80::a00:27ff:fe00:1 (link-local IPv6)");
}

TEST(PickGid, ErrorForAnEmptyEntryListsTheOthers) {
  EXPECT_EQ(error_of([] {
              pick_roce_gid({kIpv4V2, kIpv6V2}, 2, "mlx5_0:1");
            }),
            "GID index 2 of mlx5_0:1 is empty (the port has 3: RoCE v2 ::ffff:10.9.0.1 (IPv4), 4: RoCE v2 2001:db8::1 "
            "(IPv6))");
}

TEST(PickGid, RejectsAnEmptyTable) {
  EXPECT_EQ(error_of([] { pick_roce_gid({}, -1, "mlx5_0:1"); }),
            "mlx5_0:1 has no GID; give its network interface an IP address");
}

// A mock whose GID table is `table`, with holes.
void offer(MockDevice& mock, std::vector<ibv_gid_entry> table) {
  ON_CALL(mock, query_gid(_, _, _, _))
      .WillByDefault([table](ibv_context*, std::uint8_t, std::uint32_t index, ibv_gid_entry* out) {
        for (const ibv_gid_entry& candidate : table) {
          if (candidate.gid_index == index) {
            *out = candidate;
            return 0;
          }
        }
        return ENODATA;
      });
}

TEST(ChooseGid, SkipsEmptyEntriesOfAnEthernetPort) {
  MockDevice mock;
  mock.port.link_layer = IBV_LINK_LAYER_ETHERNET;
  offer(mock, {kLinkLocalV2, kIpv4V2});  // 0 and 2 are empty
  EXPECT_EQ(choose_gid(Device(mock, ""), -1).index, 3);
  EXPECT_EQ(choose_gid(Device(mock, ""), 1).index, 1);
  EXPECT_THAT(error_of([&] { choose_gid(Device(mock, ""), 2); }), HasSubstr("GID index 2 of mock0:1 is empty"));
}

TEST(ChooseGid, RejectsAnIndexOutsideTheTable) {
  MockDevice mock;
  EXPECT_EQ(error_of([&] { choose_gid(Device(mock, ""), 4); }), "GID index 4: mock0:1 has indices 0-3; -1 selects one");
  EXPECT_THAT(error_of([&] { choose_gid(Device(mock, ""), -2); }), HasSubstr("GID index -2"));
}

TEST(ChooseGid, AddressesInfinibandByLid) {
  MockDevice mock;
  offer(mock, {entry(0, "fe80::5", IBV_GID_TYPE_IB)});
  const GidChoice choice = choose_gid(Device(mock, ""), -1);
  EXPECT_EQ(choice.index, 0);
  EXPECT_FALSE(choice.global);
  EXPECT_EQ(choice.why, "InfiniBand port addressed by LID 7; GID index 0: fe80::5");
}

TEST(ChooseGid, RequestedIndexOnInfinibandUsesAGrh) {
  MockDevice mock;
  offer(mock, {entry(1, "fe80::5", IBV_GID_TYPE_IB)});
  EXPECT_TRUE(choose_gid(Device(mock, ""), 1).global);
  EXPECT_EQ(error_of([&] { choose_gid(Device(mock, ""), 2); }), "GID index 2 of mock0:1: No data available");
}

TEST(GidText, RoundTripsAndRejectsOtherText) {
  for (const char* text : {"::ffff:10.9.0.1", "fe80::1", "2001:db8::1", "::"}) {
    EXPECT_EQ(gid_text(gid_from_text(text)), text);
  }
  EXPECT_EQ(error_of([] { gid_from_text("10.9.0.1"); }), "\"10.9.0.1\" is not a GID");
}

Endpoint roce(const char* gid, const char* type, int mtu = 1024) {
  Endpoint made;
  made.gid = gid;
  made.gid_type = type;
  made.global = true;
  made.mtu = mtu;
  made.link_layer = "Ethernet";
  return made;
}

Endpoint infiniband(std::uint16_t lid, int mtu = 4096) {
  Endpoint made;
  made.lid = lid;
  made.gid = "fe80::1";
  made.gid_type = "IB";
  made.mtu = mtu;
  made.link_layer = "InfiniBand";
  return made;
}

TEST(CheckCompatible, ReturnsTheSmallerMtu) {
  EXPECT_EQ(check_compatible(roce("::ffff:10.0.0.1", "RoCE v2", 4096), roce("::ffff:10.0.0.2", "RoCE v2", 1024)),
            IBV_MTU_1024);
  EXPECT_EQ(check_compatible(infiniband(1, 2048), infiniband(2, 4096)), IBV_MTU_2048);
}

TEST(CheckCompatible, GidTypesMustMatch) {
  const Endpoint v1 = roce("::ffff:10.0.0.1", "RoCE v1");
  const Endpoint v2 = roce("::ffff:10.0.0.2", "RoCE v2");
  EXPECT_EQ(error_of([&] { check_compatible(v1, v2); }),
            "GID types differ: here RoCE v1 (::ffff:10.0.0.1, index 0), peer RoCE v2 (::ffff:10.0.0.2, index 0); "
            "select another index with -x");
  EXPECT_THAT(error_of([&] { check_compatible(v2, v1); }), HasSubstr("here RoCE v2"));
}

TEST(CheckCompatible, AddressFamiliesMustMatch) {
  EXPECT_EQ(error_of([] { check_compatible(roce("::ffff:10.0.0.1", "RoCE v2"), roce("2001:db8::1", "RoCE v2")); }),
            "GID address families differ: here IPv4 (::ffff:10.0.0.1, index 0), peer IPv6 (2001:db8::1, index 0); "
            "select another index with -x");
}

TEST(CheckCompatible, LinkLayersMustMatch) {
  EXPECT_EQ(error_of([] { check_compatible(infiniband(1), roce("::ffff:10.0.0.1", "RoCE v2")); }),
            "link layers differ: here InfiniBand, peer Ethernet");
}

TEST(CheckCompatible, InfinibandNeedsALidOnBothSides) {
  EXPECT_THAT(error_of([] { check_compatible(infiniband(1), infiniband(0)); }), HasSubstr("subnet manager"));
}

TEST(CheckCompatible, RequiresAGrhOnBothSidesOrNone) {
  Endpoint global = infiniband(2);
  global.global = true;
  EXPECT_THAT(error_of([&] { check_compatible(infiniband(1), global); }), HasSubstr("-x on both sides or on none"));
}

TEST(PathTo, UsesTheLocalIndexAndThePeerAddress) {
  Endpoint local = roce("::ffff:10.0.0.1", "RoCE v2");
  local.gid_index = 3;
  local.port = 2;
  Endpoint peer = roce("::ffff:10.0.0.2", "RoCE v2");
  peer.gid_index = 5;
  const PathAddress path = path_to(local, peer);
  EXPECT_EQ(path.port, 2);
  EXPECT_TRUE(path.global);
  EXPECT_EQ(path.gid_index, 3);
  EXPECT_EQ(gid_text(path.gid), "::ffff:10.0.0.2");
  EXPECT_EQ(path_to(infiniband(1), infiniband(9)).lid, 9);
}

}  // namespace
}  // namespace verbscope
