#include "systems/service/service_thread.hpp"

#include <utility>
#include <vector>

#include "common/error.hpp"
#include "microbench/run/node_threads.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kSendDepth = 128;
// The longest SEND over UD that BlueFlame can write: 256 bytes, less the segments for control (16 bytes) and address
// (48) and the length of the data (4).
constexpr int kMostInline = 188;
// Packets of a pass that are posted one by one. On a ConnectX-5 a WQE of 256 bytes takes the thread 0.15 us, and a list
// reaches the adapter 0.5 us later than a single WQE (configs/clusters/cx5.json).
constexpr std::uint32_t kAlone = 4;
constexpr Picos kAskAgain = std::chrono::milliseconds(100);
constexpr Picos kTcpReports = std::chrono::seconds(1);  // TCP gives up before the caller, and says why
constexpr Picos kLongestFinish = std::chrono::seconds(1);

// A list of RECVs is posted again when all of them are free: up to one list is not posted.
std::uint32_t all_recvs(const ServicePlace& place) {
  return place.options.rpc.recvs + DatagramTransport::kRecvList;
}

QpOptions queue_options(const ServicePlace& place, ibv_cq* cq) {
  QpOptions options;
  options.transport = Transport::ud;
  options.send_cq = options.recv_cq = cq;
  options.send_depth = static_cast<int>(kSendDepth);
  options.recv_depth = static_cast<int>(all_recvs(place));
  options.send_sge = static_cast<int>(DatagramTransport::kSegments);
  options.max_inline = std::min(kMostInline, largest_inline(place.device.pd, options));
  return options;
}

// Keys with the highest bit belong to privileged users (IBTA vol. 1, "Q_Key").
std::uint32_t queue_key(const ServicePlace& place) {
  return static_cast<std::uint32_t>(place.random >> 16 | 1) & 0x7fffffff;
}

Qp make_qp(const ServicePlace& place, const QpOptions& options) {
  Qp qp(place.device.pd, options);
  qp.to_init({.port = place.device.device.port(), .qkey = queue_key(place)});
  qp.to_rtr({});
  qp.to_rts({});
  return qp;
}

RpcOptions endpoint_options(const ServicePlace& place) {
  RpcOptions options = for_port_of(place.device.device, place.options.rpc);
  options.first_epoch = static_cast<std::uint16_t>(place.random);
  const int mtu = mtu_bytes(place.device.device.port_attributes().active_mtu);
  if (place.options.packet_bytes > static_cast<std::uint32_t>(mtu)) {
    fail_usage("--packet_size {}: {} has an MTU of {} bytes", place.options.packet_bytes, place.device.device.name(),
               mtu);
  }
  return options;
}

// The transport reads from the setup of a benchmark's thread what it needs.
ThreadSetup thread_setup(const ServicePlace& place, const Operation& operation, const Topology& topology, ibv_cq* cq,
                         ibv_qp* qp) {
  Lane lane;
  lane.transport = Transport::ud;
  lane.qp = qp;
  return {.operation = operation,
          .topology = topology,
          .side = Side::server,
          .node = 0,
          .thread = place.thread,
          .goal = MeasuredInterval::kNoGoal,
          .device = place.device.device,
          .pd = place.device.pd,
          .cq = cq,
          .channel = nullptr,
          .srq = nullptr,
          .rd_atomic = 1,
          .region = {},
          .lanes = {std::move(lane)},
          .huge_pages = true};
}

Operation operation_of(const QpOptions& queues) {
  Operation operation;
  operation.transport = Transport::ud;
  operation.tx_depth = kSendDepth;
  operation.rx_depth = static_cast<std::uint32_t>(queues.recv_depth);
  operation.inline_limit = static_cast<std::uint32_t>(queues.max_inline);
  operation.signal_every = default_signal_every(1, kSendDepth, std::nullopt);
  return operation;
}

}  // namespace

ServiceDevice::ServiceDevice(Provider& provider, const ServiceOptions& options)
    : device(provider, options.ib_dev), pd(device), gid(choose_gid(device, options.gid_index)) {}

ServiceThread::ServiceThread(const ServicePlace& place)
    : place_(place),
      mailbox_(place.management.mailbox(place.thread)),
      cq_(place.device.device, static_cast<int>(kSendDepth + all_recvs(place))),
      queues_(queue_options(place, cq_.get())),
      qp_(make_qp(place, queues_)),
      address_(make_endpoint(place.device.device, place.device.gid, qp_, 0, queue_key(place))),
      options_(endpoint_options(place)),
      transport_(thread_setup(place, operation_of(queues_), Topology{}, cq_.get(), qp_.get()),
                 place.options.packet_bytes, all_recvs(place), kAlone),
      pool_({place.options.packet_bytes - kPacketHeaderBytes}, &place.device.pd, true),
      rpc_(transport_, pool_, options_),
      random_(place.random) {
  rpc_.sessions().on_failure(
      [](void* self, std::uint16_t session) { static_cast<ServiceThread*>(self)->timed_out(session); }, this);
  if (place.workers != nullptr) workers_.emplace(place.workers->queues(), place.thread, place.random);
}

void ServiceThread::serve_by_worker(std::uint8_t type, WorkHandler handler, void* context,
                                    std::uint32_t response_bytes) {
  work_types_.push_back({*this, {handler, context, response_bytes}});
  WorkFor& work = work_types_.back();
  if (workers_) {
    rpc_.serve(type, &give_to_worker, &work, RequestLife::until_response);
  } else {
    rpc_.serve(type, &work_here, &work);
  }
}

void ServiceThread::give_to_worker(void* work, const RpcRequest& request) {
  auto& [thread, type] = *static_cast<WorkFor*>(work);
  MessageBuffer* const response = thread.response(request.handle, type.response_bytes);
  if (response != nullptr) thread.workers_->add(request, response, thread.now(), &type);
}

void ServiceThread::work_here(void* work, const RpcRequest& request) {
  auto& [thread, type] = *static_cast<WorkFor*>(work);
  MessageBuffer* const response = thread.response(request.handle, type.response_bytes);
  if (response == nullptr) return;
  thread.compute(type.handle(request, *response));
  thread.respond(request.handle);
}

std::uint16_t ServiceThread::open(const std::string& address, std::uint32_t endpoint) {
  const PeerId peer = place_.management.peer_at(address);
  const SessionName own = rpc_.sessions().reserve();
  links_[own.number] = {.peer = peer, .own = own, .endpoint = endpoint};
  ask_at_ = Picos(0);  // the next pass asks, because it has the time
  return own.number;
}

SessionState ServiceThread::state(std::uint16_t session) const {
  const ClientPhase phase = rpc_.client(session).phase;
  return phase == ClientPhase::open     ? SessionState::open
         : phase == ClientPhase::failed ? SessionState::failed
                                        : SessionState::opening;
}

std::uint16_t ServiceThread::connect(const std::string& address, std::uint32_t endpoint) {
  const std::uint16_t session = open(address, endpoint);
  while (state(session) == SessionState::opening && pass()) {
  }
  if (state(session) == SessionState::open) return session;
  const std::string reason = state(session) == SessionState::failed ? failure(session) : "the process is to end";
  disconnect(session);
  fail("endpoint {} of {} opened no session: {}", endpoint, address, reason);
}

void ServiceThread::disconnect(std::uint16_t session) {
  const auto found = links_.find(session);
  if (found == links_.end()) return;
  const Link& link = found->second;
  if (link.remote && link.failure.empty()) place_.management.close(link.peer, *link.remote);
  links_.erase(found);
  rpc_.sessions().close(session);
}

void ServiceThread::finish() {
  stopped_ = true;
  rpc_.sessions().forget_calls();
  while (!links_.empty()) disconnect(links_.begin()->first);
  if (workers_) workers_->drop(rpc_);
  step();
  for (const Picos deadline = now() + kLongestFinish; !rpc_.drained() && now() < deadline;) step();
}

void ServiceThread::fail_pass(const RunEnd& end) const {
  fail("{}: {}", place_.device.device.name(), describe(end));
}

void ServiceThread::ask_peers() {
  ask_at_ = Picos::max();
  for (auto& [session, link] : links_) {
    if (!link.client || state(session) != SessionState::opening) continue;
    if (link.deadline == Picos::max()) link.deadline = now() + place_.options.timeout + kTcpReports;
    if (now() >= link.deadline) {
      lose(session, fmt::format("waited {:g} s for its answer", to_seconds(place_.options.timeout)));
      continue;
    }
    if (now() >= link.ask_at) {
      place_.management.open(link.peer, link.endpoint, end_name(link), address_);
      link.ask_at = now() + kAskAgain;
    }
    ask_at_ = std::min({ask_at_, link.ask_at, link.deadline});
  }
}

void ServiceThread::obey_orders() {
  for (const SessionOrder& order : mailbox_.take()) obey(order);
}

void ServiceThread::obey(const SessionOrder& order) {
  if (order.kind == SessionOrder::Kind::open) return open_for(order);
  if (order.kind == SessionOrder::Kind::stop) {
    stopped_ = true;
    return;
  }
  if (order.kind == SessionOrder::Kind::lost) {
    std::vector<std::uint16_t> sessions;
    for (const auto& [session, link] : links_) {
      if (link.peer == order.peer) sessions.push_back(session);
    }
    for (const std::uint16_t session : sessions) lose(session, order.reason);
    return;
  }
  const auto found = links_.find(order.own.number);
  if (found == links_.end() || found->second.own != order.own || found->second.peer != order.peer) {
    // The session is over here; its other end is new.
    if (order.kind == SessionOrder::Kind::opened) place_.management.close(order.peer, order.remote);
    return;
  }
  if (order.kind == SessionOrder::Kind::opened) {
    connect_end(order);
  } else {
    lose(order.own.number, order.kind == SessionOrder::Kind::close ? "the peer has closed the session" : order.reason);
  }
}

// A peer asks for a session, perhaps not for the first time.
void ServiceThread::open_for(const SessionOrder& order) {
  for (const auto& [session, link] : links_) {
    if (link.client || link.peer != order.peer || link.remote != order.remote) continue;
    return place_.management.opened(order.peer, order.remote, end_name(link), address_);
  }
  if (stopped_) return place_.management.not_opened(order.peer, order.remote, "the process is to end");
  try {
    const SessionName own = rpc_.sessions().accept(address_of(order.address), order.remote.session);
    const Link& link = links_[own.number] = {.peer = order.peer, .own = own, .remote = order.remote, .client = false};
    place_.management.opened(order.peer, order.remote, end_name(link), address_);
  } catch (const Error& error) {
    place_.management.not_opened(order.peer, order.remote, error.what());
  }
}

void ServiceThread::connect_end(const SessionOrder& order) {
  Link& link = links_.at(order.own.number);
  if (link.remote) return;  // the answer to an earlier question
  if (!link.failure.empty()) return place_.management.close(order.peer, order.remote);
  try {
    const UdAddress to = address_of(order.address);
    link.remote = order.remote;
    rpc_.sessions().connect(order.own.number, to, order.remote.session);
  } catch (const Error& error) {
    place_.management.close(order.peer, order.remote);
    link.remote.reset();
    lose(order.own.number, error.what());
  }
}

// The peer's end is gone.
void ServiceThread::lose(std::uint16_t session, const std::string& reason) {
  Link& link = links_.at(session);
  if (!link.client) {
    links_.erase(session);
    return rpc_.sessions().close(session);
  }
  if (link.failure.empty()) link.failure = reason;
  rpc_.sessions().fail(session);
}

void ServiceThread::timed_out(std::uint16_t session) {
  Link& link = links_.at(session);
  place_.management.close(link.peer, *link.remote);
  link.failure = "the peer does not answer";
}

UdAddress ServiceThread::address_of(const Endpoint& peer) {
  const int mtu = mtu_bytes(check_compatible(address_, peer));
  if (place_.options.packet_bytes > static_cast<std::uint32_t>(mtu)) {
    fail("--packet_size {}: the MTU of the path is {} bytes", place_.options.packet_bytes, mtu);
  }
  const std::string key = fmt::format("{} {}", peer.lid, peer.gid);
  auto found = handles_.find(key);
  if (found == handles_.end()) {
    found = handles_.emplace(key, Ah(place_.device.pd, path_to(address_, peer))).first;
  }
  return {found->second.get(), peer.qpn, peer.qkey};
}

}  // namespace verbscope
