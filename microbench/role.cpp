#include "microbench/role.hpp"

#include <algorithm>
#include <limits>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;

ibv_qp_type qp_type(Transport transport) {
  return transport == Transport::rc ? IBV_QPT_RC : transport == Transport::uc ? IBV_QPT_UC : IBV_QPT_UD;
}

// Different for each side, client and QP of a run, the same in every run with one seed (Knuth's multiplicative hash).
std::uint32_t psn_of(std::uint64_t seed, Side side, std::size_t index) {
  const std::uint64_t key = seed * 2 + (side == Side::server ? 0 : 1) + index * 0x10001;
  return static_cast<std::uint32_t>(key * 2654435761u >> 8) & kPsnMask;
}

std::vector<std::vector<std::size_t>> qps_by_thread(const std::vector<QpPlan>& qps) {
  std::vector<std::vector<std::size_t>> threads(used_threads(qps));
  for (std::size_t i = 0; i < qps.size(); ++i) threads[qps[i].thread].push_back(i);
  return threads;
}

int checked_count(std::uint64_t count, const char* what) {
  if (count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) fail("{} {}: too many", count, what);
  return static_cast<int>(count);
}

}  // namespace

// A node of the other side, as its endpoints say.
struct Role::PeerNode {
  std::vector<Endpoint> ports;                               // numbers of a QP left out
  std::vector<std::pair<std::uint32_t, std::uint32_t>> qps;  // number, first PSN

  PeerNode(const Json& json, const std::string& where) {
    JsonFields fields(json, where);
    for (const Json& port : fields.require<std::vector<Json>>("ports")) {
      ports.push_back(endpoint_from_json(port, where + ": port"));
    }
    for (const Json& qp : fields.require<std::vector<Json>>("qps")) {
      const auto numbers = json_value<std::vector<std::uint32_t>>(qp, where + ": qps");
      if (numbers.size() != 2) fail("{}: qps: expected [number, psn], got {} numbers", where, numbers.size());
      qps.emplace_back(numbers[0], numbers[1]);
    }
    fields.reject_unknown();
  }

  Endpoint endpoint(std::uint32_t port, std::uint32_t qp, const std::string& who) const {
    if (port >= ports.size() || qp >= qps.size()) {
      fail("{} has {} ports and {} QPs, this side counts on more: are --ib_port, --threads and --qp the same?", who,
           ports.size(), qps.size());
    }
    Endpoint endpoint = ports[port];
    endpoint.qpn = qps[qp].first;
    endpoint.psn = qps[qp].second;
    return endpoint;
  }
};

Role::Role(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const RolePlace& place)
    : benchmark_(benchmark),
      plan_(plan),
      side_(side),
      name_(side == Side::server ? "server" : fmt::format("client{}", client)),
      huge_pages_(place.huge_pages),
      qp_plans_(plan_qps(plan.topology, side, client)),
      thread_qps_(qps_by_thread(qp_plans_)),
      tallies_(thread_qps_.size()) {
  open_ports(place);
  create_queues();
}

void Role::open_ports(const RolePlace& place) {
  for (const int port : place.ports) {
    const Device& device = ports_.emplace_back(*place.provider, fmt::format("{}:{}", place.device, port));
    gids_.push_back(choose_gid(device, place.gid_index));
    const auto active = static_cast<std::uint32_t>(mtu_bytes(device.port_attributes().active_mtu));
    if (place.mtu && *place.mtu > active) {
      fail_usage("--mtu {} is over the active MTU of {}:{}, which is {}", *place.mtu, device.name(), port, active);
    }
    mtu_ = mtu_ == 0 ? place.mtu.value_or(active) : std::min(mtu_, place.mtu.value_or(active));
  }
  check_datagram_size(mtu_);
}

void Role::check_datagram_size(std::uint32_t mtu) const {
  const Operation& op = plan_.operation;
  if (op.transport == Transport::ud && op.payload > mtu) {
    fail_usage("--size {} is over the MTU of {} bytes, which limits a UD message", op.payload, mtu);
  }
}

void Role::create_queues() {
  const Operation& op = plan_.operation;
  const QueueNeeds needs = benchmark_.needs(op, side_);
  pd_.emplace(ports_.front());
  const auto offered = static_cast<std::uint64_t>(std::max(ports_.front().attributes().max_cqe, 1));
  for (const std::vector<std::size_t>& qps : thread_qps_) {
    // Room for every request to fail, where the device has it; never less than a good run needs.
    const std::uint64_t wanted = qps.size() * (std::uint64_t{needs.send_depth} + needs.recv_depth);
    const std::uint64_t needed = qps.size() * std::uint64_t{needs.completions};
    cqs_.emplace_back(ports_.front(), checked_count(std::max(std::min(wanted, offered), needed), "completions"));
  }
  for (const QpPlan& plan : qp_plans_) {
    QpOptions options;
    options.type = qp_type(op.transport);
    options.send_cq = options.recv_cq = cqs_[plan.thread].get();
    options.send_depth = static_cast<int>(needs.send_depth);
    options.recv_depth = static_cast<int>(needs.recv_depth);
    options.send_sge = static_cast<int>(needs.send_sge);
    options.recv_sge = static_cast<int>(needs.recv_sge);
    options.max_inline = static_cast<int>(needs.inline_bytes);
    Qp& qp = qps_.emplace_back(*pd_, options);
    QpInit init;
    init.port = ports_[plan.port].port();
    qp.to_init(init);
  }
}

Json Role::endpoints() const {
  Json ports = Json::array();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Endpoint endpoint = make_endpoint(ports_[i], gids_[i], qps_.front(), 0, kDefaultQkey);
    endpoint.qpn = 0;
    ports.push_back(to_json(endpoint));
  }
  Json qps = Json::array();
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    qps.push_back(Json::array({qps_[i].number(), psn_of(plan_.operation.seed, side_, i)}));
  }
  return Json{{"ports", ports}, {"qps", qps}};
}

void Role::connect(const std::vector<Json>& peers) {
  std::vector<PeerNode> nodes;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    nodes.emplace_back(peers[i], side_ == Side::server ? fmt::format("endpoints of client{}", i)
                                                       : std::string("endpoints of the server"));
    if (nodes.back().ports.size() != ports_.size()) {
      fail("{} uses {} ports and {} of its peer {}: choose with --ib_port", name_, ports_.size(),
           nodes.back().ports.size(), side_ == Side::server ? fmt::format("client{}", i) : "server");
    }
  }
  connect_nodes(nodes);
}

void Role::connect_alone() {
  connect_nodes({PeerNode(endpoints(), "own endpoints")});
}

void Role::connect_nodes(const std::vector<PeerNode>& nodes) {
  handles_.resize(ports_.size());
  for (auto& by_node : handles_) by_node.resize(nodes.size());
  lane_peers_.resize(qps_.size());
  for (std::size_t i = 0; i < qps_.size(); ++i) connect_qp(i, nodes);
  build_workloads();
}

void Role::connect_qp(std::size_t index, const std::vector<PeerNode>& nodes) {
  const QpPlan& plan = qp_plans_[index];
  const std::uint32_t psn = psn_of(plan_.operation.seed, side_, index);
  const Endpoint local = make_endpoint(ports_[plan.port], gids_[plan.port], qps_[index], psn, kDefaultQkey);
  const bool datagram = plan_.operation.transport == Transport::ud;
  for (const Partner& partner : plan.partners) {
    const std::string who = side_ == Side::server ? fmt::format("client{}", partner.node) : "the server";
    const Endpoint peer = nodes[partner.node].endpoint(plan.port, partner.qp, who);
    mtu_ = std::min(mtu_, static_cast<std::uint32_t>(mtu_bytes(check_compatible(local, peer))));
    check_datagram_size(mtu_);
    LanePeer lane{partner.node, peer.qpn, peer.qkey, nullptr};
    if (datagram) {
      lane.ah = address_handle(plan.port, partner.node, local, peer);
    } else {
      QpReceive receive;
      receive.path = path_to(local, peer);
      receive.mtu = mtu_from_bytes(static_cast<int>(mtu_));
      receive.peer_qpn = peer.qpn;
      receive.peer_psn = peer.psn;
      qps_[index].to_rtr(receive);
    }
    lane_peers_[index].push_back(lane);
  }
  if (datagram) qps_[index].to_rtr({});
  QpSend send;
  send.psn = psn;
  qps_[index].to_rts(send);
}

ibv_ah* Role::address_handle(std::uint32_t port, std::uint32_t node, const Endpoint& local, const Endpoint& peer) {
  std::optional<Ah>& handle = handles_[port][node];
  if (!handle) handle.emplace(*pd_, path_to(local, peer));
  return handle->get();
}

void Role::build_workloads() {
  for (std::size_t t = 0; t < thread_qps_.size(); ++t) {
    const bool measured = side_ == Side::server && plan_.schedule.iters.has_value();
    ThreadSetup setup{plan_.operation,
                      side_,
                      measured ? *plan_.schedule.iters * thread_qps_[t].size() : Window::kNoGoal,
                      *pd_,
                      cqs_[t].get(),
                      {},
                      huge_pages_};
    for (const std::size_t qp : thread_qps_[t]) setup.lanes.push_back({qps_[qp].get(), lane_peers_[qp]});
    workloads_.push_back(benchmark_.setup(setup));
  }
}

}  // namespace verbscope
