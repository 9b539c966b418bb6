// The ports of its device on which a node plays its part: opened, with their addresses and the MTU of the path.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/json.hpp"
#include "microbench/run/node_part.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

class NodePorts {
 public:
  // Opens the ports of `place`. Throws Error for a port or a GID that is not there, UsageError for what a port does not
  // have (an MTU, QpSettings) and for a datagram of the benchmark that does not fit. `part` must outlive them.
  NodePorts(const NodePart& part, const NodePlace& place);

  const Device& device() const { return ports_.front(); }  // it owns all that the node creates
  std::size_t size() const { return ports_.size(); }
  std::uint8_t number(std::uint32_t port) const { return ports_[port].port(); }
  const GidChoice& gid(std::uint32_t port) const { return gids_[port]; }
  // The endpoint of `qp` on a port, without a PSN.
  Endpoint endpoint(std::uint32_t port, const Qp& qp) const;

  std::uint32_t mtu() const { return mtu_; }  // bytes: of the ports, and of the paths that limit_mtu was told
  // Takes a path of `mtu` bytes into account. Throws UsageError when a datagram of the benchmark does not fit.
  void limit_mtu(std::uint32_t mtu);

  // Device, ports and their addresses, and path MTU for the record.
  Json describe() const;

 private:
  void check_settings(const Device& device, const GidChoice& gid) const;
  void check_datagram_size() const;

  const NodePart& part_;
  std::uint32_t mtu_ = 0;
  std::deque<Device> ports_;     // one context each
  std::vector<GidChoice> gids_;  // by port
};

}  // namespace verbscope
