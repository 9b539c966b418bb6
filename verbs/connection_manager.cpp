#include "verbs/connection_manager.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "verbs/endpoint.hpp"

namespace verbscope {

namespace {

constexpr int kBacklog = 1024;  // requests that may wait for rdma_accept

// The IP address of a GID, with a port.
sockaddr_storage socket_address(const ibv_gid& gid, std::uint16_t port) {
  sockaddr_storage storage{};
  if (is_ipv4_mapped(gid)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    std::memcpy(&address.sin_addr, gid.raw + 12, sizeof address.sin_addr);
    std::memcpy(&storage, &address, sizeof address);
    return storage;
  }
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  std::memcpy(&address.sin6_addr, gid.raw, sizeof address.sin6_addr);
  std::memcpy(&storage, &address, sizeof address);
  return storage;
}

sockaddr* generic(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

rdma_conn_param parameters(const CmDepths& depths, std::uint32_t qpn) {
  rdma_conn_param param{};
  param.initiator_depth = depths.initiator;
  param.responder_resources = depths.responder;
  param.retry_count = kRetryCount;
  param.rnr_retry_count = kRnrRetryForever;
  param.qp_num = qpn;
  return param;
}

ibv_qp_attr attributes_for(rdma_cm_id* id, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  int mask = 0;
  check("librdmacm: read the attributes of a QP", rdma_init_qp_attr(id, &attr, &mask));
  return attr;
}

}  // namespace

ConnectionManager::ConnectionManager(const std::vector<CmPort>& ports, Picos timeout)
    : ports_(ports),
      timeout_(timeout),
      token_(std::uint64_t{std::random_device()()} << 32 | std::random_device()()),
      client_channel_(open_channel()),
      server_channel_(open_channel()) {
  for (const CmPort& port : ports_) {
    sockaddr_storage address = socket_address(port.gid, 0);
    Id& id = listeners_.emplace_back(make_id(server_channel_));
    check(fmt::format("librdmacm: bind to {}", gid_text(port.gid)), rdma_bind_addr(id.get(), generic(address)));
    check(fmt::format("librdmacm: listen on {}", gid_text(port.gid)), rdma_listen(id.get(), kBacklog));
  }
}

ConnectionManager::Channel ConnectionManager::open_channel() {
  Channel channel(rdma_create_event_channel());
  if (!channel) fail("--rdma_cm: librdmacm: {} (is the module rdma_ucm loaded?)", errno_text(errno));
  check("librdmacm: make the event channel non-blocking", fcntl(channel->fd, F_SETFL, O_NONBLOCK));
  return channel;
}

ConnectionManager::Id ConnectionManager::make_id(const Channel& channel) {
  rdma_cm_id* id = nullptr;
  check("librdmacm: create an identifier", rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP));
  return Id(id);
}

std::vector<std::uint16_t> ConnectionManager::listening() const {
  std::vector<std::uint16_t> ports;
  for (const Id& id : listeners_) ports.push_back(ntohs(rdma_get_src_port(id.get())));
  return ports;
}

ConnectionManager::Event ConnectionManager::next_event(const Channel& channel, const std::string& what) const {
  const Picos end = TscClock::now() + timeout_;
  for (;;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel.get(), &event) == 0) {
      Event received{event->event, event->status, event->id, {}};
      const rdma_conn_param& param = event->param.conn;
      if (received.type == RDMA_CM_EVENT_CONNECT_REQUEST && param.private_data_len >= sizeof received.request) {
        std::memcpy(&received.request, param.private_data, sizeof received.request);
      }
      check("librdmacm: acknowledge an event", rdma_ack_cm_event(event));
      return received;
    }
    if (errno != EAGAIN && errno != EINTR) throw_errno("librdmacm: " + what, errno);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - TscClock::now()).count();
    if (left <= 0) fail("librdmacm: {}: no event within {} s", what, to_seconds(timeout_));
    pollfd entry{channel->fd, POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left)) < 0 && errno != EINTR) throw_errno("poll", errno);
  }
}

void ConnectionManager::expect(const Channel& channel, rdma_cm_event_type type, const std::string& what) const {
  for (;;) {
    const Event event = next_event(channel, what);
    if (event.type == type) return;
    // Events of connections that peers aborted or closed.
    if (event.type == RDMA_CM_EVENT_DISCONNECTED || event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) continue;
    fail("librdmacm: {}: {} ({})", what, rdma_event_str(event.type),
         event.status < 0 ? errno_text(-event.status) : fmt::format("status {}", event.status));
  }
}

const CmPort& ConnectionManager::port_of(const rdma_cm_id* id) const {
  const std::string device = id->verbs == nullptr ? "" : ibv_get_device_name(id->verbs->device);
  const auto found = std::ranges::find_if(
      ports_, [&](const CmPort& port) { return port.device == device && port.number == id->port_num; });
  if (found != ports_.end()) return *found;
  fail("librdmacm: the connection uses {}:{}, which is not a port of this run", device, id->port_num);
}

CmConnection ConnectionManager::read_connection(rdma_cm_id* id, const CmPort& port) const {
  const ibv_qp_attr receive = attributes_for(id, IBV_QPS_RTR);
  const ibv_qp_attr send = attributes_for(id, IBV_QPS_RTS);
  CmConnection connection;
  const ibv_ah_attr& ah = receive.ah_attr;
  connection.path = {.port = ah.port_num,
                     .global = ah.is_global != 0,
                     .lid = ah.dlid,
                     .gid = ah.grh.dgid,
                     .gid_index = ah.grh.sgid_index,
                     .service_level = ah.sl,
                     .traffic_class = ah.grh.traffic_class,
                     .flow_label = ah.grh.flow_label};
  if (connection.path.gid_index != port.gid_index) {
    fail("librdmacm: the path uses local GID index {} instead of {}; set --gid_index {}", connection.path.gid_index,
         port.gid_index, connection.path.gid_index);
  }
  connection.mtu = receive.path_mtu;
  connection.peer_qpn = receive.dest_qp_num;
  connection.peer_psn = receive.rq_psn;
  connection.psn = send.sq_psn;
  return connection;
}

void ConnectionManager::connect(std::size_t port, const CmAddress& to, const CmRequest& request, std::uint32_t qpn,
                                const CmDepths& depths, const std::function<void(const CmConnection&)>& make_ready) {
  const std::string peer = gid_text(to.gid);
  const auto wait_ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout_).count());
  sockaddr_storage from = socket_address(ports_[port].gid, 0), target = socket_address(to.gid, to.port);
  rdma_cm_id* const id = connections_.emplace_back(make_id(client_channel_)).get();
  const std::string address = fmt::format("find the address {}", peer), route = fmt::format("find a route to {}", peer),
                    connection = fmt::format("connect to {} port {}", peer, to.port);
  check("librdmacm: " + address, rdma_resolve_addr(id, generic(from), generic(target), wait_ms));
  expect(client_channel_, RDMA_CM_EVENT_ADDR_RESOLVED, address);
  const CmPort& own = port_of(id);
  check("librdmacm: " + route, rdma_resolve_route(id, wait_ms));
  expect(client_channel_, RDMA_CM_EVENT_ROUTE_RESOLVED, route);
  rdma_conn_param param = parameters(depths, qpn);
  param.private_data = &request;
  param.private_data_len = sizeof request;
  check("librdmacm: " + connection, rdma_connect(id, &param));
  expect(client_channel_, RDMA_CM_EVENT_CONNECT_RESPONSE, connection);
  make_ready(read_connection(id, own));
  check("librdmacm: " + connection, rdma_establish(id));
}

void ConnectionManager::accept(std::size_t count, const CmDepths& depths,
                               const std::function<std::uint32_t(const CmRequest&, const CmConnection&)>& make_ready) {
  for (std::size_t accepted = 0, established = 0; established < count;) {
    const std::string what = fmt::format("wait for peers ({} of {} connected)", established, count);
    const Event event = next_event(server_channel_, what);
    if (event.type == RDMA_CM_EVENT_ESTABLISHED) {
      ++established;
      continue;
    }
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) fail("librdmacm: {}: {}", what, rdma_event_str(event.type));
    Id id(event.id);
    if (accepted == count || event.request.token != token_) {  // not from this run
      rdma_reject(id.get(), nullptr, 0);
      continue;
    }
    rdma_conn_param param = parameters(depths, make_ready(event.request, read_connection(id.get(), port_of(id.get()))));
    check("librdmacm: accept a request", rdma_accept(id.get(), &param));
    connections_.push_back(std::move(id));
    ++accepted;
  }
}

}  // namespace verbscope
