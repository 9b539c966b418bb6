#include "microbench/run/node_ports.hpp"

#include <algorithm>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

NodePorts::NodePorts(const NodePart& part, const NodePlace& place) : part_(part) {
  if (place.uars.shared > 0) set_doorbell_registers(*place.provider, place.device, place.uars.shared);
  for (const int port : place.ports) {
    const Device& device = ports_.emplace_back(*place.provider, fmt::format("{}:{}", place.device, port));
    gids_.push_back(choose_gid(device, place.gid_index));
    check_settings(device, gids_.back());
    const auto active = static_cast<std::uint32_t>(mtu_bytes(device.port_attributes().active_mtu));
    if (place.mtu && *place.mtu > active) {
      fail_usage("--mtu {} is over the active MTU of {}:{}, which is {}", *place.mtu, device.name(), port, active);
    }
    mtu_ = mtu_ == 0 ? place.mtu.value_or(active) : std::min(mtu_, place.mtu.value_or(active));
  }
  check_datagram_size();
}

// Refuses what the port has no table entry or no header for.
void NodePorts::check_settings(const Device& device, const GidChoice& gid) const {
  const QpSettings& settings = part_.settings;
  const std::uint32_t entries = device.port_attributes().pkey_tbl_len;
  if (settings.pkey_index >= std::max(entries, 1u)) {
    fail_usage("--pkey_index {}: {}:{} has a table of {}", settings.pkey_index, device.name(), device.port(), entries);
  }
  const int depth = std::clamp(device.attributes().max_qp_init_rd_atom, 1, 255);
  if (std::cmp_greater(settings.outstanding.value_or(1), depth)) {
    fail_usage("--outs {}: {} allows {}", *settings.outstanding, device.name(), depth);
  }
  if (settings.rdma_cm && device.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) {
    fail_usage("--rdma_cm: {}:{} is InfiniBand, where an address of its IPoIB interface would be needed", device.name(),
               device.port());
  }
  if (settings.rdma_cm && is_link_local(gid.gid)) {
    fail_usage("--rdma_cm: GID {} of {}:{} is no IP address that a peer could reach; --gid_index chooses one",
               gid_text(gid.gid), device.name(), device.port());
  }
  if (gid.global) return;
  const auto refuse = [&](const char* option, std::uint32_t value) {
    if (value == 0) return;
    fail_usage("{} {}: packets of {}:{} have no GRH for it, which --gid_index gives them", option, value, device.name(),
               device.port());
  };
  refuse("--tclass", settings.traffic_class);
  refuse("--flow_label", settings.flow_label);
}

void NodePorts::limit_mtu(std::uint32_t mtu) {
  mtu_ = std::min(mtu_, mtu);
  check_datagram_size();
}

void NodePorts::check_datagram_size() const {
  const Operation& op = part_.plan.operation;
  std::vector<Transport> used;
  for (const QpPlan& plan : part_.qps) used.push_back(plan.transport);
  if (const std::optional<Transport> companion = part_.benchmark.companion(op)) used.push_back(*companion);
  for (const Transport transport : used) {
    if (!facts(transport).one_packet || op.payload <= mtu_) continue;
    fail_usage("--size {} is over the MTU of {} bytes, which limits a {} message", op.payload, mtu_,
               to_string(transport));
  }
}

Endpoint NodePorts::endpoint(std::uint32_t port, const Qp& qp) const {
  return make_endpoint(ports_[port], gids_[port], qp, 0, kDefaultQkey);
}

Json NodePorts::describe() const {
  Json ports = Json::array();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports.push_back(Json{{"port", ports_[i].port()}, {"address", gids_[i].why}});
  }
  return Json{{"device", device().name()}, {"ports", ports}, {"path_mtu_bytes", mtu_}};
}

}  // namespace verbscope
