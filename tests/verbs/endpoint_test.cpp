// Endpoints and their JSON.
#include "verbs/endpoint.hpp"

#include <gtest/gtest.h>

#include "tests/verbs/mock_provider.hpp"
#include "verbs/gid.hpp"
#include "verbs/null/provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {
namespace {

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

TEST(Endpoint, WrongValuesAreRefusedWithTheirKey) {
  const auto refusal = [](const char* key, const Json& value) {
    Json json = to_json(example_endpoint());
    json[key] = value;
    return error_of([&] { endpoint_from_json(json, "peer"); });
  };
  EXPECT_THAT(refusal("qpn", 1 << 24), testing::HasSubstr("peer: key \"qpn\""));
  EXPECT_THAT(refusal("psn", -1), testing::HasSubstr("peer: key \"psn\""));
  EXPECT_THAT(refusal("lid", 65536), testing::HasSubstr("peer: key \"lid\""));
  EXPECT_THAT(refusal("port", 0), testing::HasSubstr("peer: key \"port\""));
  EXPECT_THAT(refusal("global", 1), testing::HasSubstr("peer: key \"global\""));
  EXPECT_EQ(refusal("mtu_bytes", 1500), "peer: MTU 1500: allowed 256, 512, 1024, 2048, 4096 bytes");
  EXPECT_EQ(refusal("gid", "x"), "peer: \"x\" is not a GID");
  EXPECT_EQ(refusal("gid_type", "RoCE"), "peer: GID type \"RoCE\": allowed IB, RoCE v1, RoCE v2");
  EXPECT_THAT(refusal("link_layer", "Token Ring"), testing::HasSubstr("allowed Ethernet, InfiniBand"));
  EXPECT_THAT(refusal("colour", "red"), testing::HasSubstr("colour"));
}

TEST(Endpoint, MissingKeysAreNamed) {
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

TEST(Mtu, BytesAreFoundBothWays) {
  EXPECT_EQ(mtu_bytes(IBV_MTU_256), 256);
  EXPECT_EQ(mtu_bytes(IBV_MTU_4096), 4096);
  for (const int bytes : {256, 512, 1024, 2048, 4096}) EXPECT_EQ(mtu_bytes(mtu_from_bytes(bytes)), bytes);
}

}  // namespace
}  // namespace verbscope
