// The connection manager's commands that concern addresses: bind, listen, resolve.
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "simulate/server/connection_manager.hpp"

namespace verbscope::simulate {
namespace {

constexpr int kMaxBacklog = 1024;  // of a listener that names none: ucma's default

// The port space that a service number of AF_IB means, for an identifier of `port_space`; 0: it may not use it.
std::uint16_t service_of(const CmAddress& address, std::uint16_t port_space) {
  const auto& ib = reinterpret_cast<const sockaddr_ib&>(address);
  const std::uint64_t mask = be64toh(ib.sib_sid_mask) & RDMA_IB_IP_PS_MASK;
  const std::uint64_t service = be64toh(ib.sib_sid) & mask;
  const auto means = [&](std::uint64_t number) { return service == (number & mask); };
  if (port_space == RDMA_PS_IB && means(RDMA_IB_PS_IB)) return RDMA_PS_IB;
  if ((port_space == RDMA_PS_IB || port_space == RDMA_PS_TCP) && means(RDMA_IB_IP_PS_TCP)) return RDMA_PS_TCP;
  if ((port_space == RDMA_PS_IB || port_space == RDMA_PS_UDP) && means(RDMA_IB_IP_PS_UDP)) return RDMA_PS_UDP;
  return 0;
}

}  // namespace

bool ConnectionManager::in_use(const CmId& id, std::uint16_t port, bool listening) const {
  return std::ranges::any_of(ids_, [&](const auto& entry) {
    const CmId& other = entry.second;
    if (&other == &id || other.listener != 0 || other.node != id.node || other.service != id.service) return false;
    if (other.state < CmState::bound || port_of(other.from) != port) return false;
    if (other.from.ss_family != id.from.ss_family && (other.own_family_only || id.own_family_only)) return false;
    return listening ? other.state == CmState::listening
                     : !(other.reuse_address && id.reuse_address && other.state != CmState::listening);
  });
}

int ConnectionManager::take_port(CmId& id) {
  const std::uint16_t wanted = port_of(id.from);
  if (wanted != 0) return in_use(id, wanted, false) ? EADDRINUSE : 0;
  std::uint16_t& next = next_port_[id.node];
  for (int tries = kLastPort - kFirstPort; tries >= 0; --tries) {
    const std::uint16_t port = next;
    next = port == kLastPort ? kFirstPort : static_cast<std::uint16_t>(port + 1);
    if (in_use(id, port, false)) continue;
    set_port(id.from, port);
    return 0;
  }
  return EADDRNOTAVAIL;
}

int ConnectionManager::bind(CmId& id, CmAddress address) {
  if (id.state != CmState::idle) return EINVAL;
  if (network_.node_of(address, id.node) != id.node) return EADDRNOTAVAIL;
  const std::uint16_t service = address.ss_family == AF_IB ? service_of(address, id.port_space) : id.port_space;
  if (service == 0) return EPROTONOSUPPORT;
  if (address.ss_family == AF_IB) {
    auto& ib = reinterpret_cast<sockaddr_ib&>(address);
    ib.sib_sid = htobe64(std::uint64_t{service} << 16 | port_of(address));
  }
  id.from = address;
  id.service = service;
  if (const int error = take_port(id); error != 0) {
    id.from = CmAddress{};
    return error;
  }
  id.on_device = !is_any(address);
  enter(id, CmState::bound);
  return 0;
}

int ConnectionManager::resolve_address(CmId& id, std::span<const std::byte> from, std::span<const std::byte> to,
                                       std::uint32_t timeout_ms) {
  const auto target = read_address(to);
  if (!target) return EINVAL;
  if (id.state == CmState::idle) {
    // Without an own address the program lets the connection manager choose one of the same family.
    CmAddress own{};
    own.ss_family = target->ss_family;
    if (own.ss_family == AF_IB) {
      reinterpret_cast<sockaddr_ib&>(own).sib_sid_mask = reinterpret_cast<const sockaddr_ib&>(*target).sib_sid_mask;
      reinterpret_cast<sockaddr_ib&>(own).sib_sid = reinterpret_cast<const sockaddr_ib&>(*target).sib_sid;
      set_port(own, 0);
    }
    const auto named = read_address(from);
    if (const int error = bind(id, named.value_or(own)); error != 0) return error;
  }
  if (id.state != CmState::bound) return EINVAL;
  id.to = *target;
  enter(id, CmState::resolving_address);
  const auto node = network_.node_of(*target, id.node);
  Message message{.kind = Kind::address_resolved, .to = id.number, .changes = id.changes};
  if (node || id.to_group()) {
    id.peer_node = node.value_or(id.node);
    send(message, 2 * one_way_);
  } else {
    message.status = -ETIMEDOUT;  // nobody answers
    id.timer = send(message, std::chrono::milliseconds(timeout_ms));
  }
  return 0;
}

int ConnectionManager::resolve_route(CmId& id) {
  if (id.state != CmState::address_resolved || id.to_group()) return EINVAL;
  enter(id, CmState::resolving_route);
  send({.kind = Kind::route_resolved, .to = id.number, .changes = id.changes}, 2 * one_way_);
  return 0;
}

int ConnectionManager::listen(CmId& id, int backlog) {
  if (id.state == CmState::idle) {
    CmAddress any{};
    any.ss_family = AF_INET;
    if (const int error = bind(id, any); error != 0) return error;
  }
  if (id.state != CmState::bound) return EINVAL;
  if (in_use(id, port_of(id.from), true)) return EADDRINUSE;
  id.backlog = static_cast<std::uint32_t>(backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog);
  enter(id, CmState::listening);
  return 0;
}

}  // namespace verbscope::simulate
