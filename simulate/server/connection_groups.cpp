// The connection manager's commands that concern multicast groups. On InfiniBand the subnet administrator makes a group
// when the first member joins, and gives it a LID; it does not choose GIDs here (a join of the address 0).
#include <algorithm>
#include <cerrno>

#include "simulate/server/connection_manager.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::uint32_t kAllQps = 0xffffff;  // the QP number of datagrams to a group
constexpr std::uint16_t kFirstLid = 0xc001;  // 0xc000 is that of IPoIB's broadcast group
constexpr std::uint16_t kLastLid = 0xfffe;
constexpr std::uint16_t kNoLid = 0;

bool same(const ibv_gid& a, const ibv_gid& b) {
  return std::ranges::equal(a.raw, b.raw);
}

}  // namespace

int ConnectionManager::join_group(const Command& command) {
  if (command.head.out < sizeof(ucma_abi_create_id_resp)) return ENOSPC;
  if (command.head.cmd == UCMA_CMD_JOIN_IP_MCAST) {
    const auto cmd = command.as<ucma_abi_join_ip_mcast>();
    return join_group(command, cmd.id, cmd.uid, cmd.response, read_address(std::as_bytes(std::span(&cmd.addr, 1))));
  }
  const auto cmd = command.as<ucma_abi_join_mcast>();
  const auto address = read_address(std::as_bytes(std::span(&cmd.addr, 1)));
  if (!address || cmd.addr_size != size_of_family(address->ss_family)) return EINVAL;
  if (cmd.join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return EINVAL;
  return join_group(command, cmd.id, cmd.uid, cmd.response, address);
}

int ConnectionManager::join_group(const Command& command, std::uint32_t id, std::uint64_t uid, std::uint64_t response,
                                  const std::optional<CmAddress>& address) {
  const CmId* const member = find(command.file, id);
  if (member == nullptr) return ENOENT;
  const bool bound = member->state == CmState::bound || member->state == CmState::address_resolved;
  if (!address || is_any(*address) || !member->on_device || !bound || !member->datagram()) return EINVAL;
  if (facts(network_.link).ethernet && address->ss_family != AF_INET) return EOPNOTSUPP;
  const ibv_gid gid = network_.group_gid(*address, member->port_space);
  const std::uint16_t lid = lid_of_group(gid);
  if (lid == kNoLid && !facts(network_.link).ethernet) return ENOMEM;
  const std::uint32_t number = ++last_membership_;
  memberships_[number] = {.id = id, .uid = uid, .gid = gid, .lid = lid};
  send({.kind = Kind::joined, .to = number}, 2 * one_way_);
  return command.answer(response, ucma_abi_create_id_resp{.id = number});
}

// That of the group's members, or a free one; kNoLid: there is none.
std::uint16_t ConnectionManager::lid_of_group(const ibv_gid& gid) const {
  if (facts(network_.link).ethernet) return kNoLid;
  const auto known = std::ranges::find_if(memberships_, [&](const auto& entry) { return same(entry.second.gid, gid); });
  if (known != memberships_.end()) return known->second.lid;
  std::uint16_t lid = kFirstLid;
  while (std::ranges::any_of(memberships_, [lid](const auto& entry) { return entry.second.lid == lid; })) ++lid;
  return lid <= kLastLid ? lid : kNoLid;
}

int ConnectionManager::leave_group(const Command& command) {
  const auto cmd = command.as<ucma_abi_destroy_id>();
  if (command.head.out < sizeof(ucma_abi_destroy_id_resp)) return ENOSPC;
  const auto found = memberships_.find(cmd.id);
  if (found == memberships_.end()) return ENOENT;
  if (find(command.file, found->second.id) == nullptr) return EINVAL;
  command.file.events.forget([&](const CmEvent& event) { return event.membership == cmd.id; });
  const std::uint32_t reported = found->second.reported;
  memberships_.erase(found);
  return command.answer(cmd.response, ucma_abi_destroy_id_resp{.events_reported = reported});
}

void ConnectionManager::receive_joined(std::uint32_t number) {
  const auto found = memberships_.find(number);
  if (found == memberships_.end()) return;  // the program has left it meanwhile
  const CmMembership& membership = found->second;
  CmId& id = *find(membership.id);
  ucma_abi_event_resp answer{};
  answer.uid = membership.uid;
  answer.id = number;
  answer.event = RDMA_CM_EVENT_MULTICAST_JOIN;
  answer.param.ud.qp_num = kAllQps;
  answer.param.ud.qkey = id.qkey;
  answer.param.ud.ah_attr = path_to_group(membership, device_of(id));
  id.file->events.arrive({.id = id.number, .request = 0, .answer = answer, .membership = number}, engine_.now());
}

}  // namespace verbscope::simulate
