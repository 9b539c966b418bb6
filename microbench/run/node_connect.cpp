// The endpoints of a node, and what it makes of those of its peers.
#include <algorithm>

#include "common/error.hpp"
#include "microbench/run/node_run.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;

// Different for each side, client and QP of a run, the same in every run with one seed (Knuth's multiplicative hash).
std::uint32_t psn_of(std::uint64_t seed, Side side, std::size_t index) {
  const std::uint64_t key = seed * 2 + (side == Side::server ? 0 : 1) + index * 0x10001;
  return static_cast<std::uint32_t>(key * 2654435761u >> 8) & kPsnMask;
}

// The count that a device says it takes; some say 0 and take one.
std::uint32_t at_least_one(int offered) {
  return static_cast<std::uint32_t>(std::clamp(offered, 1, 255));
}

}  // namespace

// A node of the other side, as its endpoints say.
struct NodeRun::PeerNode {
  std::vector<Endpoint> ports;                               // numbers of a QP left out
  std::vector<std::pair<std::uint32_t, std::uint32_t>> qps;  // number, first PSN; companions follow
  RemoteRegion region;
  std::uint32_t initiator_depth = 1;  // READs and atomics that its device can have outstanding on a QP
  std::uint32_t target_depth = 1;     // and those that it takes

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
    const auto numbers = fields.require<std::vector<std::uint64_t>>("region");
    const auto depths = fields.require<std::vector<std::uint32_t>>("rd_atomic");
    if (numbers.size() != 3 || numbers[2] > 0xffffffff || depths.size() != 2) {
      fail("{}: expected a region [address, bytes, rkey] and rd_atomic [initiator, target]", where);
    }
    region = {numbers[0], numbers[1], static_cast<std::uint32_t>(numbers[2])};
    initiator_depth = depths[0];
    target_depth = depths[1];
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

Json NodeRun::endpoints() const {
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
  Json region = Json::array({0, 0, 0});
  if (region_) {
    region = Json::array({reinterpret_cast<std::uint64_t>(region_->data()), region_->size(), region_mr_->rkey()});
  }
  const ibv_device_attr& device = ports_.front().attributes();
  return Json{
      {"ports", ports},
      {"qps", qps},
      {"region", region},
      {"rd_atomic", Json::array({at_least_one(device.max_qp_init_rd_atom), at_least_one(device.max_qp_rd_atom)})}};
}

void NodeRun::connect(const std::vector<Json>& peers) {
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

void NodeRun::connect_alone() {
  connect_nodes({PeerNode(endpoints(), "own endpoints")});
}

void NodeRun::connect_nodes(const std::vector<PeerNode>& nodes) {
  handles_.resize(ports_.size());
  for (auto& by_node : handles_) by_node.resize(nodes.size());
  lane_peers_.resize(qp_plans_.size());
  agree_on_rd_atomic(nodes);
  for (std::size_t i = 0; i < qp_plans_.size(); ++i) connect_lane(i, nodes);
  build_workloads();
}

void NodeRun::agree_on_rd_atomic(const std::vector<PeerNode>& nodes) {
  const ibv_device_attr& own = device().attributes();
  rd_atomic_ = at_least_one(own.max_qp_init_rd_atom);
  taken_rd_atomic_ = at_least_one(own.max_qp_rd_atom);
  for (const PeerNode& node : nodes) {
    rd_atomic_ = std::min(rd_atomic_, node.target_depth);
    taken_rd_atomic_ = std::min(taken_rd_atomic_, node.initiator_depth);
  }
}

void NodeRun::connect_lane(std::size_t index, const std::vector<PeerNode>& nodes) {
  const QpPlan& plan = qp_plans_[index];
  const bool paired = qps_.size() > qp_plans_.size();
  const std::size_t companion = qp_plans_.size() + index;
  for (const Partner& partner : plan.partners) {
    const PeerNode& node = nodes[partner.node];
    const auto count = static_cast<std::uint32_t>(paired ? node.qps.size() / 2 : node.qps.size());
    LanePeer peer{partner.node, partner.qp, count, {}, {}, node.region};
    peer.qp = face(index, plan.port, partner.node, node, partner.qp);
    if (paired) peer.companion = face(companion, plan.port, partner.node, node, count + partner.qp);
    lane_peers_[index].push_back(peer);
  }
  make_ready(index);
  if (paired) make_ready(companion);
}

// Learns of QP `theirs` of a peer; a connected QP goes to RTR with it.
PeerQp NodeRun::face(std::size_t qp, std::uint32_t port, std::uint32_t node_index, const PeerNode& node,
                     std::uint32_t theirs) {
  const Endpoint local = make_endpoint(ports_[port], gids_[port], qps_[qp], 0, kDefaultQkey);
  const Endpoint peer = node.endpoint(port, theirs, peer_name(node_index));
  mtu_ = std::min(mtu_, static_cast<std::uint32_t>(mtu_bytes(check_compatible(local, peer))));
  check_datagram_size(mtu_);
  if (!facts(qps_[qp].transport()).connected) {
    return {peer.qpn, peer.qkey, address_handle(port, node_index, local, peer), peer.lid};
  }
  QpReceive receive;
  receive.path = path_to(local, peer);
  receive.mtu = mtu_from_bytes(static_cast<int>(mtu_));
  receive.peer_qpn = peer.qpn;
  receive.peer_psn = peer.psn;
  receive.max_dest_rd_atomic = static_cast<std::uint8_t>(taken_rd_atomic_);
  qps_[qp].to_rtr(receive);
  return {peer.qpn, peer.qkey, nullptr, peer.lid};
}

void NodeRun::make_ready(std::size_t qp) {
  if (!facts(qps_[qp].transport()).connected) qps_[qp].to_rtr({});
  QpSend send;
  send.psn = psn_of(plan_.operation.seed, side_, qp);
  send.max_rd_atomic = static_cast<std::uint8_t>(rd_atomic_);
  send.timeout = ack_timeout(device().attributes().local_ca_ack_delay);  // the peer's is taken to be the same
  qps_[qp].to_rts(send);
}

std::string NodeRun::peer_name(std::uint32_t node) const {
  return side_ == Side::server ? fmt::format("client{}", node) : "the server";
}

ibv_ah* NodeRun::address_handle(std::uint32_t port, std::uint32_t node, const Endpoint& local, const Endpoint& peer) {
  std::optional<Ah>& handle = handles_[port][node];
  if (!handle) handle.emplace(*pd_, path_to(local, peer));
  return handle->get();
}

Lane NodeRun::make_lane(std::size_t index) const {
  Lane lane;
  lane.index = static_cast<std::uint32_t>(index);
  lane.count = static_cast<std::uint32_t>(qp_plans_.size());
  lane.transport = qp_plans_[index].transport;
  lane.port = qp_plans_[index].port;
  lane.qp = qps_[index].get();
  lane.builder = qps_[index].builder();
  if (qps_.size() > qp_plans_.size()) {
    const Qp& companion = qps_[qp_plans_.size() + index];
    lane.companion = companion.get();
    lane.companion_builder = companion.builder();
  }
  lane.peers = lane_peers_[index];
  return lane;
}

void NodeRun::build_workloads() {
  const bool exact = counted_ && plan_.schedule.iters.has_value();
  const bool own = plan_.topology.client_qps.has_value();  // a thread's QPs serve one stream of requests
  for (std::size_t t = 0; t < thread_qps_.size(); ++t) {
    ThreadSetup setup{plan_.operation,
                      plan_.topology,
                      side_,
                      node_,
                      static_cast<std::uint32_t>(t),
                      exact ? *plan_.schedule.iters * (own ? 1 : thread_qps_[t].size()) : MeasuredWindow::kNoGoal,
                      device(),
                      *pd_,
                      cqs_[t].get(),
                      channels_.empty() ? nullptr : channels_[t].get(),
                      srqs_.empty() ? nullptr : srqs_[t].get(),
                      rd_atomic_,
                      {},
                      {},
                      huge_pages_};
    if (region_) setup.region = {region_->bytes(), region_mr_->lkey()};
    for (const std::size_t qp : thread_qps_[t]) setup.lanes.push_back(make_lane(qp));
    workloads_.push_back(benchmark_.setup(setup));
  }
}

}  // namespace verbscope
