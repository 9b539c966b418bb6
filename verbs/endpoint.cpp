#include "verbs/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "common/error.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

namespace {

constexpr std::array kGidTypes = {IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};
constexpr std::uint32_t k24Bits = (1u << 24) - 1;  // QP numbers and PSNs (IBTA vol. 1, Base Transport Header)
constexpr std::uint8_t kHopLimit = 64;             // enough for any data centre; RoCE v2 copies it into the IP header

const char* link_layer_name(std::uint8_t link_layer) {
  return link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

// Larger is better.
int rank(const ibv_gid_entry& entry) {
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) return 0;
  if (is_ipv4_mapped(entry.gid)) return 3;
  return is_link_local(entry.gid) ? 1 : 2;
}

std::string describe_entry(const ibv_gid_entry& entry) {
  const char* family = is_ipv4_mapped(entry.gid) ? "IPv4" : is_link_local(entry.gid) ? "link-local IPv6" : "IPv6";
  return fmt::format("{} {} ({})", gid_type_name(static_cast<ibv_gid_type>(entry.gid_type)), gid_text(entry.gid),
                     family);
}

// An all-zero entry is empty, as in the kernel.
bool is_empty(const ibv_gid& gid) {
  return std::ranges::all_of(gid.raw, [](std::uint8_t byte) { return byte == 0; });
}

std::vector<ibv_gid_entry> read_table(const Device& device) {
  std::vector<ibv_gid_entry> table;
  for (int index = 0; index < device.port_attributes().gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    const int error =
        device.provider().query_gid(device.get(), device.port(), static_cast<std::uint32_t>(index), &entry);
    if (error == ENODATA) continue;
    check_errno(fmt::format("query GID {} of {}:{}", index, device.name(), device.port()), error);
    if (!is_empty(entry.gid)) table.push_back(entry);
  }
  return table;
}

GidChoice choose_infiniband(const Device& device, int requested) {
  const int index = std::max(requested, 0);
  ibv_gid_entry entry{};
  const int error = device.provider().query_gid(device.get(), device.port(), static_cast<std::uint32_t>(index), &entry);
  if (requested >= 0 && error != 0) {
    fail("GID index {} of {}:{}: {}", index, device.name(), device.port(), errno_text(error));
  }
  GidChoice choice{index, entry.gid, IBV_GID_TYPE_IB, requested >= 0, ""};
  const std::uint16_t lid = device.port_attributes().lid;
  choice.why = choice.global
                   ? fmt::format("GID index {} as asked: {}", index, gid_text(entry.gid))
                   : fmt::format("InfiniBand port addressed by LID {}; GID index 0: {}", lid, gid_text(entry.gid));
  return choice;
}

const char* address_family(const ibv_gid& gid) {
  return is_ipv4_mapped(gid) ? "IPv4" : "IPv6";
}

void check_roce(const Endpoint& local, const Endpoint& peer) {
  if (local.gid_type != peer.gid_type) {
    fail("GID types differ: here {} ({}, index {}), peer {} ({}, index {}); select another index with -x",
         local.gid_type, local.gid, local.gid_index, peer.gid_type, peer.gid, peer.gid_index);
  }
  const ibv_gid here = gid_from_text(local.gid);
  const ibv_gid there = gid_from_text(peer.gid);
  if (std::string_view(address_family(here)) != address_family(there)) {
    fail("GID address families differ: here {} ({}, index {}), peer {} ({}, index {}); select another index with -x",
         address_family(here), local.gid, local.gid_index, address_family(there), peer.gid, peer.gid_index);
  }
  if (is_empty(here) || is_empty(there)) fail("an Ethernet port needs a GID: here {}, peer {}", local.gid, peer.gid);
}

}  // namespace

GidChoice pick_roce_gid(const std::vector<ibv_gid_entry>& table, int requested, const std::string& where) {
  if (requested >= 0) {
    const auto found = std::ranges::find(table, static_cast<std::uint32_t>(requested), &ibv_gid_entry::gid_index);
    if (found == table.end()) {
      std::string offered;
      for (const ibv_gid_entry& entry : table) {
        offered += fmt::format("{}{}: {}", offered.empty() ? "" : ", ", entry.gid_index, describe_entry(entry));
      }
      fail("GID index {} of {} is empty (the port has {})", requested, where, offered.empty() ? "none" : offered);
    }
    return {requested, found->gid, static_cast<ibv_gid_type>(found->gid_type), true,
            fmt::format("GID index {} as asked: {}", requested, describe_entry(*found))};
  }
  if (table.empty()) fail("{} has no GID; give its network interface an IP address", where);
  const auto best = std::ranges::max_element(table, [](const ibv_gid_entry& a, const ibv_gid_entry& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.gid_index > b.gid_index;
  });
  return {static_cast<int>(best->gid_index), best->gid, static_cast<ibv_gid_type>(best->gid_type), true,
          fmt::format("GID index {} picked of {}: {}", best->gid_index, table.size(), describe_entry(*best))};
}

GidChoice choose_gid(const Device& device, int requested) {
  const int entries = device.port_attributes().gid_tbl_len;
  if (requested < -1 || requested >= std::max(entries, 1)) {
    fail("GID index {}: {}:{} has indices 0-{}; -1 selects one", requested, device.name(), device.port(), entries - 1);
  }
  if (device.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) return choose_infiniband(device, requested);
  return pick_roce_gid(read_table(device), requested, fmt::format("{}:{}", device.name(), device.port()));
}

std::string gid_text(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  check_pointer("GID to text", inet_ntop(AF_INET6, gid.raw, text.data(), text.size()));
  return text.data();
}

ibv_gid gid_from_text(std::string_view text) {
  ibv_gid gid{};
  if (inet_pton(AF_INET6, std::string(text).c_str(), gid.raw) != 1) fail("\"{}\" is not a GID", text);
  return gid;
}

bool is_ipv4_mapped(const ibv_gid& gid) {  // ::ffff:0:0/96 (RFC 4291, 2.5.5.2)
  constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix.data(), kPrefix.size()) == 0;
}

bool is_link_local(const ibv_gid& gid) {  // fe80::/10 (RFC 4291, 2.5.6)
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

const char* gid_type_name(ibv_gid_type type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "IB";
  }
}

ibv_gid_type gid_type_from_name(std::string_view name) {
  const auto found = std::ranges::find_if(kGidTypes, [&](ibv_gid_type type) { return gid_type_name(type) == name; });
  if (found == kGidTypes.end()) fail("GID type \"{}\" (allowed: IB, RoCE v1, RoCE v2)", name);
  return *found;
}

ibv_mtu check_compatible(const Endpoint& local, const Endpoint& peer) {
  if (local.link_layer != peer.link_layer) {
    fail("link layers differ: here {}, peer {}", local.link_layer, peer.link_layer);
  }
  if (local.link_layer == "Ethernet") {
    check_roce(local, peer);
  } else {
    if (local.global != peer.global) {
      fail("only one side has a GID index: here {}, peer {}; set -x on both sides or on none",
           local.global ? local.gid : "LID", peer.global ? peer.gid : "LID");
    }
    if (!local.global && (local.lid == 0 || peer.lid == 0)) {
      fail("an InfiniBand port has no LID (here {}, peer {}); check that a subnet manager is running", local.lid,
           peer.lid);
    }
  }
  return mtu_from_bytes(std::min(local.mtu, peer.mtu));
}

PathAddress path_to(const Endpoint& local, const Endpoint& peer) {
  PathAddress path;
  path.port = static_cast<std::uint8_t>(local.port);
  path.global = local.global;
  path.lid = peer.lid;
  path.gid_index = static_cast<std::uint8_t>(local.gid_index);
  if (path.global) path.gid = gid_from_text(peer.gid);
  return path;
}

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
    fields.fail_key("link_layer", "expected Ethernet or InfiniBand");
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

// IBV_MTU_256 is 1, and each next code is twice as large.
int mtu_bytes(ibv_mtu mtu) {
  return 128 << static_cast<int>(mtu);
}

ibv_mtu mtu_from_bytes(int bytes) {
  constexpr std::array kMtus = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096};
  const auto found = std::ranges::find(kMtus, bytes, mtu_bytes);
  if (found == kMtus.end()) fail("MTU {} (allowed: 256, 512, 1024, 2048, 4096 bytes)", bytes);
  return *found;
}

ibv_ah_attr ah_attributes(const PathAddress& path) {
  ibv_ah_attr attr{};
  attr.port_num = path.port;
  attr.dlid = path.lid;
  attr.sl = path.service_level;
  if (path.global) {
    attr.is_global = 1;
    attr.grh.dgid = path.gid;
    attr.grh.sgid_index = path.gid_index;
    attr.grh.hop_limit = kHopLimit;
    attr.grh.traffic_class = path.traffic_class;
    attr.grh.flow_label = path.flow_label;
  }
  return attr;
}

std::string describe_path(const PathAddress& path) {
  std::string text = path.global ? fmt::format("GID {} from GID index {}", gid_text(path.gid), path.gid_index)
                                 : fmt::format("LID {}", path.lid);
  if (path.service_level != 0) text += fmt::format(", service level {}", path.service_level);
  if (path.traffic_class != 0) text += fmt::format(", traffic class {}", path.traffic_class);
  if (path.flow_label != 0) text += fmt::format(", flow label {}", path.flow_label);
  return text;
}

}  // namespace verbscope
