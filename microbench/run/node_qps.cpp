#include "microbench/run/node_qps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;

// Depends on the seed, the side and the QP only (Knuth's multiplicative hash), so that runs are reproducible.
std::uint32_t psn_of(std::uint64_t seed, Side side, std::size_t index) {
  const std::uint64_t key = seed * 2 + (side == Side::server ? 0 : 1) + index * 0x10001;
  return static_cast<std::uint32_t>(key * 2654435761u >> 8) & kPsnMask;
}

// The count that a device reports; some report 0 and support one.
std::uint32_t at_least_one(int offered) {
  return static_cast<std::uint32_t>(std::clamp(offered, 1, 255));
}

std::vector<std::vector<std::size_t>> qps_by_group(const std::vector<QpPlan>& qps) {
  std::vector<std::vector<std::size_t>> groups(used_threads(qps));
  for (std::size_t i = 0; i < qps.size(); ++i) groups[qps[i].thread].push_back(i);
  return groups;
}

// The QPs that share a completion queue.
std::vector<std::vector<std::size_t>> qps_by_cq(const std::vector<std::vector<std::size_t>>& groups, std::size_t qps,
                                                bool one_each) {
  if (!one_each) return groups;
  std::vector<std::vector<std::size_t>> queues;
  for (std::size_t qp = 0; qp < qps; ++qp) queues.push_back({qp});
  return queues;
}

int checked_count(std::uint64_t count, const char* what) {
  if (count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) fail("{} {}: too many", count, what);
  return static_cast<int>(count);
}

}  // namespace

// A node of the other side, parsed from its endpoints.
struct NodeQps::PeerNode {
  std::vector<Endpoint> ports;                               // without the numbers of a QP
  std::vector<std::pair<std::uint32_t, std::uint32_t>> qps;  // number, first PSN; companions follow
  RemoteRegion region;
  std::uint32_t initiator_depth = 1;  // outstanding READs and atomics per QP as requester
  std::uint32_t target_depth = 1;     // as responder
  CmOffer offer;                      // with --rdma_cm

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
    if (fields.has("rdma_cm")) offer = cm_offer_from_json(fields.at("rdma_cm"), where + ": rdma_cm");
    fields.reject_unknown();
  }

  bool has(std::uint32_t port, std::uint32_t qp) const { return port < ports.size() && qp < qps.size(); }
  Endpoint endpoint(std::uint32_t port, std::uint32_t qp, const std::string& who) const {
    if (!has(port, qp)) {
      fail(
          "{} has {} ports and {} QPs, fewer than this side expects: give both sides the same --ib_port, --threads and "
          "--qp",
          who, ports.size(), qps.size());
    }
    Endpoint endpoint = ports[port];
    endpoint.qpn = qps[qp].first;
    endpoint.psn = qps[qp].second;
    return endpoint;
  }
};

NodeQps::NodeQps(const NodePart& part, NodeDevice& device)
    : part_(part), device_(device), group_qps_(qps_by_group(part.qps)) {
  if (part.settings.rdma_cm) managed_.emplace(part, device.ports());
  create_queues();
}

void NodeQps::create_queues() {
  const Operation& op = part_.plan.operation;
  const std::optional<Transport> companion = part_.benchmark.companion(op);
  const std::uint64_t per_lane = companion ? 2 : 1;
  set_inline_recv(device_.device(), op.transport, op.verb, op.inline_recv);  // also 0: it may be the adapter's default
  if (op.recvs_per_descriptor > 1) {
    const Device& device = device_.device();
    check_errno(fmt::format("multi-packet receive queues on {}", device.name()),
                device.provider().set_multi_packet_recv(device.get(), op.recvs_per_descriptor));
  }
  const auto offered = static_cast<std::uint64_t>(std::max(device_.device().attributes().max_cqe, 1));
  for (const std::vector<std::size_t>& of_cq : qps_by_cq(group_qps_, part_.qps.size(), op.cq_per_qp)) {
    // Entries for an error completion of every request, if the device allows it; at least those of a run without
    // errors.
    std::uint64_t wanted = 0, needed = 0;
    QueueNeeds needs;
    for (const std::size_t qp : of_cq) {
      needs = needs_of(part_.qps[qp]);
      const bool counts = !op.shared_recv_queue || qp == of_cq.front();
      const std::uint64_t recv_queues = !counts ? 0 : op.shared_recv_queue ? 1 : per_lane;
      wanted += per_lane * needs.send_depth + recv_queues * needs.recv_depth;
      needed += recv_queues * needs.completions;
    }
    if (needed > offered) {
      fail(
          "{} QPs need {} entries in one completion queue, but {} allows {}: give fewer QPs per thread, or a smaller "
          "--rx_depth, --tx_depth or --window",
          of_cq.size(), needed, device_.device().name(), offered);
    }
    if (op.events) channels_.emplace_back(device_.device());
    cqs_.emplace_back(device_.device(), checked_count(std::max(std::min(wanted, offered), needed), "completions"),
                      op.events ? channels_.back().get() : nullptr);
    if (op.shared_recv_queue) {
      srqs_.emplace_back(device_.pd(), static_cast<int>(needs.recv_depth), static_cast<int>(needs.recv_sge));
    }
  }
  for (std::size_t t = 0; part_.domains && t < group_qps_.size(); ++t) {
    domains_.emplace_back(device_.device(), device_.pd(), thread_domains_.emplace_back(device_.device()));
  }
  for (std::size_t qp = 0; qp < part_.qps.size(); ++qp) create_qp(qp, part_.qps[qp].transport);
  if (!companion) return;
  for (std::size_t qp = 0; qp < part_.qps.size(); ++qp) create_qp(qp, *companion);
}

QueueNeeds NodeQps::needs_of(const QpPlan& plan) const {
  const bool extra = part_.plan.topology.client_qps && !facts(plan.transport).connected;
  return extra ? part_.benchmark.datagram_needs(part_.plan.operation, part_.side)
               : part_.benchmark.needs(part_.plan.operation, part_.side);
}

void NodeQps::create_qp(std::size_t index, Transport transport) {
  const QpPlan& plan = part_.qps[index];
  const QueueNeeds needs = needs_of(plan);
  QpOptions options;
  options.transport = transport;
  options.send_cq = options.recv_cq = cqs_[cq_of(index)].get();
  options.send_depth = static_cast<int>(needs.send_depth);
  options.recv_depth = static_cast<int>(needs.recv_depth);
  options.send_sge = static_cast<int>(needs.send_sge);
  options.recv_sge = static_cast<int>(needs.recv_sge);
  options.max_inline = static_cast<int>(needs.inline_bytes);
  options.srq = srqs_.empty() ? nullptr : srqs_[plan.thread].get();
  options.builder = part_.plan.operation.builder;
  QpInit init;
  init.port = device_.ports().number(plan.port);
  init.pkey_index = static_cast<std::uint16_t>(part_.settings.pkey_index);
  init.access = device_.access();
  qps_.emplace_back(domains_.empty() ? device_.pd() : domains_[plan.thread], options).to_init(init);
}

Json NodeQps::endpoints() const {
  Json ports = Json::array();
  for (std::uint32_t i = 0; i < device_.ports().size(); ++i) {
    Endpoint endpoint = device_.ports().endpoint(i, qps_.front());
    endpoint.qpn = 0;
    ports.push_back(to_json(endpoint));
  }
  Json qps = Json::array();
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    qps.push_back(Json::array({qps_[i].number(), psn_of(part_.plan.operation.seed, part_.side, i)}));
  }
  const RemoteRegion region = device_.shared_region();
  const ibv_device_attr& device = device_.device().attributes();
  Json json{
      {"ports", ports},
      {"qps", qps},
      {"region", Json::array({region.address, region.bytes, region.rkey})},
      {"rd_atomic", Json::array({at_least_one(device.max_qp_init_rd_atom), at_least_one(device.max_qp_rd_atom)})}};
  if (managed_) json["rdma_cm"] = to_json(managed_->offer());
  return json;
}

void NodeQps::connect(const std::vector<Json>& peers) {
  std::vector<PeerNode> nodes;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto node = static_cast<std::uint32_t>(i);
    nodes.emplace_back(peers[i], "endpoints of " + peer_text(node));
    if (nodes.back().ports.size() != device_.ports().size()) {
      fail("{} uses {} ports, but its peer {} uses {}: select ports with --ib_port", part_.name(),
           device_.ports().size(), part_.peer(node), nodes.back().ports.size());
    }
  }
  connect_nodes(nodes);
}

void NodeQps::connect_alone() {
  connect_nodes({PeerNode(endpoints(), "own endpoints")});
}

void NodeQps::connect_nodes(const std::vector<PeerNode>& nodes) {
  handles_.resize(device_.ports().size());
  for (auto& by_node : handles_) by_node.resize(nodes.size());
  lane_peers_.resize(part_.qps.size());
  agree_on_rd_atomic(nodes);
  for (std::size_t i = 0; i < part_.qps.size(); ++i) connect_lane(i, nodes);
  if (managed_) connect_managed();
}

void NodeQps::connect_managed() {
  const CmDepths depths{static_cast<std::uint8_t>(rd_atomic_), static_cast<std::uint8_t>(taken_rd_atomic_)};
  managed_->connect(depths, [this](std::size_t qp, const CmConnection& it) {
    device_.ports().limit_mtu(static_cast<std::uint32_t>(mtu_bytes(it.mtu)));
    to_rtr(qp, with_settings(it.path), it.peer_qpn, it.peer_psn);
    to_rts(qp, it.psn);
  });
}

void NodeQps::agree_on_rd_atomic(const std::vector<PeerNode>& nodes) {
  const ibv_device_attr& own = device_.device().attributes();
  rd_atomic_ = at_least_one(own.max_qp_init_rd_atom);
  taken_rd_atomic_ = at_least_one(own.max_qp_rd_atom);
  for (const PeerNode& node : nodes) {
    rd_atomic_ = std::min(rd_atomic_, node.target_depth);
    taken_rd_atomic_ = std::min(taken_rd_atomic_, node.initiator_depth);
  }
  const std::uint32_t asked = part_.settings.outstanding.value_or(rd_atomic_);
  if (asked > rd_atomic_) fail_usage("--outs {}: the devices of both sides allow at most {}", asked, rd_atomic_);
  rd_atomic_ = asked;
}

void NodeQps::connect_lane(std::size_t index, const std::vector<PeerNode>& nodes) {
  const QpPlan& plan = part_.qps[index];
  const bool paired = qps_.size() > part_.qps.size();
  const std::size_t companion = part_.qps.size() + index;
  for (const Partner& partner : plan.partners) {
    const PeerNode& node = nodes[partner.node];
    const auto count = static_cast<std::uint32_t>(paired ? node.qps.size() / 2 : node.qps.size());
    LanePeer peer{partner.node, partner.qp, count, {}, {}, node.region};
    peer.qp = connect_to(index, plan.port, partner.node, node, partner.qp);
    if (paired) peer.companion = connect_to(companion, plan.port, partner.node, node, count + partner.qp);
    lane_peers_[index].push_back(peer);
  }
  make_ready(index);
  if (paired) make_ready(companion);
}

void NodeQps::make_ready(std::size_t qp) {
  if (is_managed(qp)) return;
  if (!facts(qps_[qp].transport()).connected) qps_[qp].to_rtr({});
  to_rts(qp, psn_of(part_.plan.operation.seed, part_.side, qp));
}

// Connects `qp` to QP `theirs` of a peer. A connected QP goes to RTR, unless librdmacm connects it.
PeerQp NodeQps::connect_to(std::size_t qp, std::uint32_t port, std::uint32_t node_index, const PeerNode& node,
                           std::uint32_t theirs) {
  const bool connected = facts(qps_[qp].transport()).connected;
  // A datagram QP may have a million peers in all: the first of a port and a node was checked for all of them.
  if (const auto& handle = handles_[port][node_index]; !connected && handle && node.has(port, theirs)) {
    return {node.qps[theirs].first, node.ports[port].qkey, handle->get(), node.ports[port].lid};
  }
  const Endpoint local = device_.ports().endpoint(port, qps_[qp]);
  const Endpoint peer = node.endpoint(port, theirs, peer_text(node_index));
  device_.ports().limit_mtu(static_cast<std::uint32_t>(mtu_bytes(check_compatible(local, peer))));
  if (!connected) {
    return {peer.qpn, peer.qkey, address_handle(port, node_index, local, peer), peer.lid};
  }
  if (is_managed(qp)) {
    if (port >= node.offer.listening.size())
      fail("{} does not accept connections by librdmacm: give both sides --rdma_cm", peer_text(node_index));
    const CmAddress at{gid_from_text(peer.gid), node.offer.listening[port]};
    managed_->add({qp, qps_[qp].number(), port, node_index, theirs, at, node.offer.token});
  } else {
    to_rtr(qp, with_settings(path_to(local, peer)), peer.qpn, peer.psn);
  }
  return {peer.qpn, peer.qkey, nullptr, peer.lid};
}

void NodeQps::to_rtr(std::size_t qp, const PathAddress& path, std::uint32_t peer_qpn, std::uint32_t peer_psn) {
  QpReceive receive;
  receive.path = path;
  receive.mtu = mtu_from_bytes(static_cast<int>(device_.ports().mtu()));
  receive.peer_qpn = peer_qpn;
  receive.peer_psn = peer_psn;
  if (const auto timer = part_.settings.rnr_timer) receive.min_rnr_timer = static_cast<std::uint8_t>(*timer);
  receive.max_dest_rd_atomic = static_cast<std::uint8_t>(taken_rd_atomic_);
  qps_[qp].to_rtr(receive);
}

void NodeQps::to_rts(std::size_t qp, std::uint32_t psn) {
  QpSend send;
  send.psn = psn;
  send.max_rd_atomic = static_cast<std::uint8_t>(rd_atomic_);
  send.timeout = timeout();
  send.retry_count = retry_count();
  if (const auto retries = part_.settings.rnr_retry) send.rnr_retry = static_cast<std::uint8_t>(*retries);
  qps_[qp].to_rts(send);
}

// Assumes that the peer's device has the same delay.
std::uint8_t NodeQps::timeout() const {
  const std::uint8_t usual = ack_timeout(device_.device().attributes().local_ca_ack_delay);
  return static_cast<std::uint8_t>(part_.settings.qp_timeout.value_or(usual));
}

std::uint8_t NodeQps::retry_count() const {
  return static_cast<std::uint8_t>(part_.settings.retry_count.value_or(kRetryCount));
}

Json NodeQps::settled() const {
  return Json{{"qp_timeout", timeout()},
              {"retry_count", retry_count()},
              {"outs", rd_atomic_},
              {"rnr_timer", part_.settings.rnr_timer.value_or(QpReceive{}.min_rnr_timer)},
              {"rnr_retry", part_.settings.rnr_retry.value_or(QpSend{}.rnr_retry)}};
}

// The path with the settings that were given as options.
PathAddress NodeQps::with_settings(PathAddress path) const {
  const QpSettings& asked = part_.settings;
  if (asked.service_level != 0) path.service_level = static_cast<std::uint8_t>(asked.service_level);
  if (asked.traffic_class != 0) path.traffic_class = static_cast<std::uint8_t>(asked.traffic_class);
  if (asked.tos != 0 && path.global) path.traffic_class = static_cast<std::uint8_t>(asked.tos);
  if (asked.flow_label != 0) path.flow_label = asked.flow_label;
  return path;
}

std::string NodeQps::peer_text(std::uint32_t node) const {
  const std::string peer = part_.peer(node);
  return peer == "server" ? "the server" : peer;
}

ibv_ah* NodeQps::address_handle(std::uint32_t port, std::uint32_t node, const Endpoint& local, const Endpoint& peer) {
  std::optional<Ah>& handle = handles_[port][node];
  if (!handle) handle.emplace(device_.pd(), with_settings(path_to(local, peer)));
  return handle->get();
}

Lane NodeQps::make_lane(std::size_t index) const {
  Lane lane;
  lane.index = static_cast<std::uint32_t>(index);
  lane.count = static_cast<std::uint32_t>(part_.qps.size());
  lane.transport = part_.qps[index].transport;
  lane.port = part_.qps[index].port;
  lane.qp = qps_[index].get();
  lane.builder = qps_[index].builder();
  if (qps_.size() > part_.qps.size()) {
    const Qp& companion = qps_[part_.qps.size() + index];
    lane.companion = companion.get();
    lane.companion_builder = companion.builder();
  }
  lane.peers = lane_peers_[index];
  return lane;
}

ThreadQueues NodeQps::queues(std::size_t thread) const {
  const std::vector<std::size_t>& qps = group_qps_[part_.group_of(thread)];
  ThreadQueues queues;
  for (const std::size_t qp : qps) queues.lanes.push_back(make_lane(qp));
  queues.cq = cqs_[cq_of(qps.front())].get();
  if (!channels_.empty()) queues.channel = channels_[thread].get();
  if (!srqs_.empty()) queues.srq = srqs_[thread].get();
  return queues;
}

std::string NodeQps::lane_name(std::size_t thread, std::uint32_t queue) const {
  const std::vector<std::size_t>& qps = group_qps_[part_.group_of(thread)];
  const std::size_t qp = qps.at(queue < qps.size() ? queue : 0);
  std::string peer;
  if (lane_peers_[qp].size() == 1) {
    const LanePeer& lane = lane_peers_[qp].front();
    peer = fmt::format(", peer {} QP 0x{:x}", part_.peer(lane.node), lane.qp.qpn);
  }
  return fmt::format("{} QP 0x{:x}{}", to_string(part_.qps[qp].transport), qps_[qp].number(), peer);
}

}  // namespace verbscope
