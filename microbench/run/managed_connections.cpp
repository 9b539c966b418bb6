#include "microbench/run/managed_connections.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

std::vector<CmPort> cm_ports(const NodePorts& ports) {
  std::vector<CmPort> out;
  for (std::uint32_t i = 0; i < ports.size(); ++i) {
    out.push_back({ports.device().name(), ports.number(i), ports.gid(i).gid, ports.gid(i).index});
  }
  return out;
}

}  // namespace

Json to_json(const CmOffer& offer) {
  return Json{{"token", offer.token}, {"listening", offer.listening}};
}

CmOffer cm_offer_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  CmOffer offer{fields.require<std::uint64_t>("token"), fields.require<std::vector<std::uint16_t>>("listening")};
  fields.reject_unknown();
  return offer;
}

ManagedConnections::ManagedConnections(const NodePart& part, const NodePorts& ports)
    : part_(part), manager_(cm_ports(ports), part.plan.schedule.timeout) {}

const WantedConnection& ManagedConnections::asked_for(const CmRequest& request) const {
  const auto found = std::ranges::find_if(wanted_, [&](const WantedConnection& it) {
    return it.qp == request.qp && peer_machine(part_.machine(), it.node) == request.node && !asks(it);
  });
  if (found == wanted_.end())
    fail("librdmacm: machine {} requested a connection to QP {}, which is not one of its peers", request.node,
         request.qp);
  return *found;
}

void ManagedConnections::connect(const CmDepths& depths,
                                 const std::function<void(std::size_t qp, const CmConnection&)>& make_ready) {
  std::size_t to_take = 0;
  for (const WantedConnection& it : wanted_) {
    if (!asks(it)) {
      ++to_take;
      continue;
    }
    const CmRequest request{it.token, part_.machine(), it.theirs};
    manager_.connect(it.port, it.at, request, it.qpn, depths,
                     [&](const CmConnection& connection) { make_ready(it.qp, connection); });
  }
  manager_.accept(to_take, depths, [&](const CmRequest& request, const CmConnection& connection) {
    const WantedConnection& it = asked_for(request);
    make_ready(it.qp, connection);
    return it.qpn;
  });
}

}  // namespace verbscope
