#include "verbs/endpoint.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"
#include "verbs/gid.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t k24Bits = (1u << 24) - 1;  // QP numbers and PSNs (IBTA vol. 1, Base Transport Header)

const char* link_layer_name(std::uint8_t link_layer) {
  return link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

}  // namespace

Endpoint make_endpoint(const Device& device, const GidChoice& gid, const Qp& qp, std::uint32_t psn,
                       std::uint32_t qkey) {
  Endpoint endpoint;
  endpoint.qpn = qp.number();
  endpoint.psn = psn & k24Bits;
  endpoint.qkey = qkey;
  endpoint.lid = device.port_attributes().lid;
  endpoint.gid = gid_text(gid.gid);
  endpoint.gid_index = gid.index;
  endpoint.gid_type = gid_type_name(gid.type);
  endpoint.global = gid.global;
  endpoint.mtu = mtu_bytes(device.port_attributes().active_mtu);
  endpoint.port = device.port();
  endpoint.link_layer = link_layer_name(device.port_attributes().link_layer);
  return endpoint;
}

Json to_json(const Endpoint& endpoint) {
  return Json{{"qpn", endpoint.qpn},
              {"psn", endpoint.psn},
              {"qkey", endpoint.qkey},
              {"lid", endpoint.lid},
              {"gid", endpoint.gid},
              {"gid_index", endpoint.gid_index},
              {"gid_type", endpoint.gid_type},
              {"global", endpoint.global},
              {"mtu_bytes", endpoint.mtu},
              {"port", endpoint.port},
              {"link_layer", endpoint.link_layer}};
}

Endpoint endpoint_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  Endpoint endpoint;
  endpoint.qpn = fields.require<std::uint32_t>("qpn", 0, k24Bits);
  endpoint.psn = fields.require<std::uint32_t>("psn", 0, k24Bits);
  endpoint.qkey = fields.require<std::uint32_t>("qkey");
  endpoint.lid = fields.require<std::uint16_t>("lid");
  endpoint.gid = fields.require<std::string>("gid");
  endpoint.gid_index = fields.require<int>("gid_index", 0, 255);
  endpoint.gid_type = fields.require<std::string>("gid_type");
  endpoint.global = fields.require<bool>("global");
  endpoint.mtu = fields.require<int>("mtu_bytes");
  endpoint.port = fields.require<int>("port", 1, 255);
  endpoint.link_layer = fields.require<std::string>("link_layer");
  fields.reject_unknown();
  if (endpoint.link_layer != "Ethernet" && endpoint.link_layer != "InfiniBand") {
    fields.fail_key("link_layer", "allowed Ethernet, InfiniBand");
  }
  try {
    gid_from_text(endpoint.gid);
    gid_type_from_name(endpoint.gid_type);
    mtu_from_bytes(endpoint.mtu);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
  return endpoint;
}

int mtu_bytes(ibv_mtu mtu) {
  return 128 << static_cast<int>(mtu);
}  // IBV_MTU_256 is 1, and each next code is twice as large

ibv_mtu mtu_from_bytes(int bytes) {
  constexpr std::array kMtus = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096};
  const auto found = std::ranges::find(kMtus, bytes, mtu_bytes);
  if (found == kMtus.end()) fail("MTU {}: allowed 256, 512, 1024, 2048, 4096 bytes", bytes);
  return *found;
}

}  // namespace verbscope
