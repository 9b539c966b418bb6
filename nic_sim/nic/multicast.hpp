// The QPs of a NIC that are attached to multicast groups.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

class MulticastGroups {
 public:
  // As ConnectX-3 (ibv_devinfo -v: max_mcast_grp, max_mcast_qp_attach).
  static constexpr std::size_t kMaxGroups = 8192;
  static constexpr std::size_t kMaxQps = 248;  // of a group

  explicit MulticastGroups(std::uint32_t node) : node_(node) {}

  // 0, also if the QP is attached already, or ENOMEM.
  int attach(const MulticastGroup& group, SimQp& qp) {
    const auto known = groups_.find(group);
    if (known == groups_.end() && groups_.size() == kMaxGroups) return ENOMEM;
    std::vector<SimQp*>& members = known == groups_.end() ? groups_[group] : known->second;
    if (std::ranges::find(members, &qp) != members.end()) return 0;
    if (members.size() == kMaxQps) return ENOMEM;
    members.push_back(&qp);
    return 0;
  }

  // False if the QP was not attached.
  bool detach(const MulticastGroup& group, const SimQp& qp) {
    const auto known = groups_.find(group);
    if (known == groups_.end() || std::erase(known->second, &qp) == 0) return false;
    if (known->second.empty()) groups_.erase(known);
    return true;
  }

  bool is_attached(const SimQp& qp) const {
    return std::ranges::any_of(
        groups_, [&qp](const auto& group) { return std::ranges::find(group.second, &qp) != group.second.end(); });
  }

  // The QPs that are attached to the group of the packet.
  const std::vector<SimQp*>& members(const Packet& packet) const {
    const auto known = groups_.find(multicast_group(packet));
    return known == groups_.end() ? none_ : known->second;
  }

  // True if a member gets the packet: false for its own one, if it blocks those (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
  bool reaches(const SimQp& member, const Packet& packet) const {
    return !member.blocks_own_multicast || packet.source_qp != member.qp_num || packet.source_node != node_;
  }

 private:
  std::uint32_t node_;
  std::map<MulticastGroup, std::vector<SimQp*>> groups_;
  std::vector<SimQp*> none_;
};

}  // namespace verbscope::sim
