#include "nic_sim/device/provider.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "nic_sim/device/operations.hpp"
#include "nic_sim/link/addresses.hpp"
#include "verbs/qp_rules.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

SimProvider::SimProvider(Nic& nic) : nic_(nic), device_{{}, *this} {
  std::strncpy(device_.name, "sim0", sizeof device_.name - 1);
  device_.node_type = IBV_NODE_CA;
  device_.transport_type = IBV_TRANSPORT_IB;
}

std::vector<std::string> SimProvider::device_names() {
  return {device_.name};
}

ibv_context* SimProvider::open(const std::string& name) {
  if (name != device_.name) return no_object(ENODEV);
  const HostProfile& host = nic_.profile().host;
  auto opened = std::make_unique<SimContext>(nic_, nic_.engine(), host.event_wakeup, pollable_);
  if (pollable_ && opened->async_events.fd() < 0) return nullptr;  // errno is set
  opened->sz = sizeof(verbs_context);
  set_operations(*opened);
  ibv_context& context = opened->context;
  context.device = &device_;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.cmd_fd = -1;
  context.async_fd = opened->async_events.fd();
  context.num_comp_vectors = host.cores;  // as drivers of adapters, one for each core
  opened->doorbell_registers = doorbell_registers_;
  return &contexts_.emplace_back(std::move(opened))->context;
}

int SimProvider::set_doorbell_registers(const std::string&, std::uint32_t total) {
  if (total > 0 && !facts(nic_.profile().wire.family).several_doorbell_registers) return EOPNOTSUPP;
  doorbell_registers_ = total;
  return 0;
}

int SimProvider::set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) {
  const ClusterWire& wire = nic_.profile().wire;
  const InlineReceiveRoom room = inline_receive_room(wire.family, transport, verb, wire.cqe_bytes);
  if (room.place == InlineReceive::nowhere && bytes > 0) return EOPNOTSUPP;
  if (bytes > room.max_payload.value) return EINVAL;
  as_sim(context).inline_recv = bytes;
  return 0;
}

int SimProvider::set_multi_packet_recv(ibv_context* context, std::uint32_t recvs) {
  if (recvs > 1 && !nic_.profile().wire.multi_packet_recv()) return EOPNOTSUPP;
  as_sim(context).recvs_per_descriptor = recvs;
  return 0;
}

int SimProvider::close(ibv_context* context) {
  if (as_sim(context).open_objects > 0) return EBUSY;
  as_sim(context).async_events.close();
  return 0;
}

ibv_pd* SimProvider::alloc_pd(ibv_context* context) {
  auto* pd = new SimPd{};
  pd->context = context;
  ++as_sim(context).open_objects;
  return pd;
}

int SimProvider::dealloc_pd(ibv_pd* pd) {
  SimPd& sim = as_sim(pd);
  if (sim.users > 0) return EBUSY;
  if (sim.parent != nullptr) --as_sim(sim.parent).users;
  if (sim.td != nullptr) --sim.td->users;
  --as_sim(pd->context).open_objects;
  delete &sim;
  return 0;
}

// A context of mlx4 has one register: on mlx4 a thread domain models a separate context of the thread.
ibv_td* SimProvider::alloc_td(ibv_context* context) {
  auto* td = new SimTd{};
  td->context = context;
  ++as_sim(context).open_objects;
  return td;
}

int SimProvider::dealloc_td(ibv_td* td) {
  auto* sim = static_cast<SimTd*>(td);
  if (sim->users > 0) return EBUSY;
  --as_sim(td->context).open_objects;
  delete sim;
  return 0;
}

// Without a thread domain its QPs share the registers of the context.
ibv_pd* SimProvider::alloc_parent_domain(ibv_pd* pd, ibv_td* td) {
  if (as_sim(pd).parent != nullptr) return no_object(EINVAL);
  ibv_pd* const domain = alloc_pd(pd->context);
  as_sim(domain).parent = pd;
  as_sim(domain).td = static_cast<SimTd*>(td);
  ++as_sim(pd).users;
  if (td != nullptr) ++as_sim(domain).td->users;
  return domain;
}

std::optional<SimProvider::Path> SimProvider::resolve(const ibv_ah_attr& attr) const {
  if (attr.port_num < 1 || attr.port_num > nic_.profile().wire.ports) return std::nullopt;
  const LinkType link = nic_.profile().wire.link_type;
  Path path{.node = 0, .global = GlobalHeader::none, .group = {}};
  if (attr.is_global != 0) {
    path.global = header_of_gid(link, attr.grh.sgid_index);
    if (path.global == GlobalHeader::none) return std::nullopt;
    if (is_multicast_gid(attr.grh.dgid)) {
      const auto group = group_of(link, attr.grh.dgid, attr.dlid);
      if (!group || (attr.grh.dgid.raw[0] != 0xff) != has_ipv4_address(path.global)) return std::nullopt;
      return Path{.node = kEveryNode, .global = path.global, .group = *group};
    }
    const auto named = node_of(path.global, attr.grh.dgid);
    if (!named) return std::nullopt;
    path.node = *named;
  } else {
    if (attr.dlid == 0 || facts(link).ethernet) return std::nullopt;  // RoCE has no LIDs
    path.node = attr.dlid - 1u;
  }
  return path.node < nic_.fabric().nodes() ? std::optional(path) : std::nullopt;
}

ibv_ah* SimProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  const auto path = resolve(*attr);
  if (!path) return no_object(EINVAL);
  auto* ah = new SimAh{};
  ah->context = pd->context;
  ah->pd = pd;
  ah->node = path->node;
  ah->group = path->group;
  ah->port = static_cast<std::uint8_t>(attr->port_num - 1);
  ah->global = path->global;
  ah->priority = priority_of(nic_.profile().wire.link_type, *attr);
  ++as_sim(pd).users;
  return ah;
}

int SimProvider::destroy_ah(ibv_ah* ah) {
  --as_sim(ah->pd).users;
  delete static_cast<SimAh*>(ah);
  return 0;
}

void SimProvider::await_command() {
  spend_on_registration(0, 0);
  if (nic_.running_thread() != nullptr) nic_.running_thread()->sync();
}

// As the kernel, which refuses a group that is none, and to detach a QP that is not attached (ib_attach_mcast,
// ib_uverbs_detach_mcast).
int SimProvider::attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  await_command();
  const auto group = group_of(nic_.profile().wire.link_type, *gid, lid);
  return group && qp->qp_type == IBV_QPT_UD ? nic_.groups().attach(*group, as_sim(qp)) : EINVAL;
}

int SimProvider::detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  await_command();
  const auto group = group_of(nic_.profile().wire.link_type, *gid, lid);
  return group && nic_.groups().detach(*group, as_sim(qp)) ? 0 : EINVAL;
}

}  // namespace verbscope::sim
