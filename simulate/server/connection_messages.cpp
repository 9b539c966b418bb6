// What the connection managers of nodes tell each other, and the events that their programs get from it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "simulate/server/connection_manager.hpp"

namespace verbscope::simulate {
namespace {

// CMA_CM_RESPONSE_TIMEOUT (20) and CMA_CM_MRA_SETTING (24), as the kernel converts codes: 2^(code - 8) ms.
constexpr std::chrono::milliseconds kResponseTime{1 << (20 - 8)};
constexpr std::chrono::milliseconds kProgramTime{1 << (24 - 8)};  // for which a program may think about an answer
constexpr int kTries = 1 + 15;                                    // CMA_MAX_CM_RETRIES

std::uint8_t padded(const ucma_abi_conn_param& param, std::uint8_t size) {
  return std::max(param.private_data_len, size);
}

}  // namespace

std::uint64_t ConnectionManager::send(const Message& message, Picos delay) {
  messages_.emplace(++last_message_, message);
  engine_.schedule(engine_.now() + delay, &deliver, this, last_message_);
  return last_message_;
}

void ConnectionManager::start_timer(CmId& id, Kind kind, Picos delay) {
  id.timer = send({.kind = kind, .to = id.number, .changes = id.changes}, delay);
}

void ConnectionManager::stop_timer(CmId& id) {
  if (id.timer == 0) return;
  engine_.cancel_far(&deliver, this, id.timer);
  messages_.erase(std::exchange(id.timer, 0));
}

void ConnectionManager::send_reject(const CmId& id, int reason, const ucma_abi_conn_param& param) {
  send({.kind = Kind::reject, .to = id.peer, .from = id.number, .status = reason, .param = param});
}

void ConnectionManager::deliver(void* manager, std::uint64_t number) {
  auto& self = *static_cast<ConnectionManager*>(manager);
  const auto arrived = self.messages_.extract(number);
  if (!arrived.empty()) self.deliver(arrived.mapped());  // else its timer was stopped
}

void ConnectionManager::deliver(const Message& message) {
  if (message.kind == Kind::request) return receive_request(message);
  if (message.kind == Kind::disconnect) return receive_disconnect(message);
  if (message.kind == Kind::joined) return receive_joined(message.to);
  CmId* const id = find(message.to);
  if (id == nullptr) return;  // destroyed meanwhile
  const bool same = id->changes == message.changes;
  switch (message.kind) {
    case Kind::address_resolved:
      if (!same) return;
      if (message.status != 0) {
        enter(*id, CmState::bound);
        return report(*id, RDMA_CM_EVENT_ADDR_ERROR, message.status);
      }
      id->on_device = true;
      id->from = network_.address_of(id->from.ss_family, id->node, port_of(id->from));
      enter(*id, CmState::address_resolved);
      return report(*id, RDMA_CM_EVENT_ADDR_RESOLVED);
    case Kind::route_resolved:
      if (!same) return;
      enter(*id, CmState::route_resolved);
      return report(*id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    case Kind::reply:
    case Kind::datagram_reply:
      return receive_reply(*id, message);
    case Kind::ready:
      if (id->state != CmState::reply_sent) return;
      enter(*id, CmState::established);
      return report(*id, RDMA_CM_EVENT_ESTABLISHED);
    case Kind::reject: {
      if (id->state < CmState::request_sent || id->state > CmState::established) return;
      enter(*id, CmState::ended);
      ucma_abi_conn_param param = message.param;
      param.private_data_len = padded(param, kRejectData);
      return report(*id, RDMA_CM_EVENT_REJECTED, message.status, param);
    }
    case Kind::disconnect_reply:
      if (id->state != CmState::disconnect_sent) return;
      enter(*id, CmState::ended);
      report(*id, RDMA_CM_EVENT_DISCONNECTED);
      return begin_time_wait(*id);
    case Kind::give_up:
      if (same) give_up(*id);
      return;
    case Kind::end_time_wait:
      if (same) report(*id, RDMA_CM_EVENT_TIMEWAIT_EXIT);
      return;
    default:
      return;
  }
}

CmId* ConnectionManager::listener_for(const CmId& sender) {
  const std::uint16_t port = port_of(sender.to);
  const auto found = std::ranges::find_if(ids_, [&](const auto& entry) {
    const CmId& id = entry.second;
    return id.state == CmState::listening && id.node == sender.peer_node && id.service == sender.service &&
           port_of(id.from) == port && (!id.own_family_only || id.from.ss_family == sender.to.ss_family);
  });
  return found == ids_.end() ? nullptr : &found->second;
}

void ConnectionManager::receive_request(const Message& message) {
  CmId* const sender = find(message.from);
  if (sender == nullptr || sender->changes != message.changes) return;
  CmId* const listener = listener_for(*sender);
  if (listener == nullptr) {
    const bool datagram = sender->datagram();
    send({.kind = datagram ? Kind::datagram_reply : Kind::reject,
          .to = sender->number,
          .status = datagram ? kDatagramUnsupported : kRejectInvalidService});
    return;
  }
  if (listener->backlog == 0) {  // the request is dropped, and the sender tries again
    Message again = message;
    if (++again.tries <= kTries) send(again, kResponseTime);
    return;
  }
  --listener->backlog;
  CmId& id = add(*listener->file, listener->node, listener->port_space, listener->qp_type);
  id.service = listener->service;
  id.from = network_.address_of(sender->to.ss_family, id.node, port_of(sender->to));
  id.to = sender->from;
  id.on_device = true;
  id.type_of_service = sender->type_of_service;
  id.peer_node = sender->node;
  id.peer = sender->number;
  id.listener = listener->number;
  id.peer_psn = sender->psn;
  id.peer_qp_num = sender->qp_num;
  id.responder_resources = message.param.initiator_depth;
  id.initiator_depth = message.param.responder_resources;
  id.retry_count = sender->retry_count;
  id.rnr_retry_count = message.param.rnr_retry_count;
  enter(id, CmState::request_received);
  sender->peer = id.number;
  if (!id.datagram()) sender->held_until = engine_.now() + kTries * (kProgramTime + kResponseTime);
  report_request(*listener, id, message);
}

void ConnectionManager::receive_reply(CmId& id, const Message& message) {
  if (id.state != CmState::request_sent) return;
  ucma_abi_conn_param param = message.param;
  CmId* const peer = find(message.from);
  id.peer_qp_num = param.qp_num;
  if (id.datagram()) {
    enter(id, CmState::ended);
    if (message.status != kDatagramAccepted) return report(id, RDMA_CM_EVENT_UNREACHABLE, message.status);
    param.private_data_len = padded(param, kDatagramReplyData);
    return report(id, RDMA_CM_EVENT_ESTABLISHED, 0, param);
  }
  if (peer == nullptr) return;  // its rejection follows
  id.peer_psn = peer->psn;
  id.responder_resources = param.initiator_depth;
  id.initiator_depth = param.responder_resources;
  id.rnr_retry_count = param.rnr_retry_count;
  enter(id, CmState::reply_received);
  peer->held_until = engine_.now() + kTries * (kProgramTime + kResponseTime);
  std::swap(param.responder_resources, param.initiator_depth);
  param.private_data_len = padded(param, kReplyData);
  report(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param);
}

void ConnectionManager::receive_disconnect(const Message& message) {
  CmId* const id = find(message.to);
  const bool connected = id != nullptr && (id->state == CmState::established || id->state == CmState::reply_sent ||
                                           id->state == CmState::disconnect_sent);
  if (connected) {
    enter(*id, CmState::disconnect_received);
    return report(*id, RDMA_CM_EVENT_DISCONNECTED);
  }
  if (id == nullptr || id->state == CmState::ended)
    send({.kind = Kind::disconnect_reply, .to = message.from, .from = message.to});
}

// The identifier has sent something that the peer must answer.
void ConnectionManager::expect_answer(CmId& id) {
  start_timer(id, Kind::give_up, kTries * kResponseTime);
}

void ConnectionManager::give_up(CmId& id) {
  if (id.state != CmState::disconnect_sent && engine_.now() < id.held_until) {
    return start_timer(id, Kind::give_up, id.held_until - engine_.now());
  }
  const bool was_connected = id.state == CmState::disconnect_sent;
  enter(id, CmState::ended);
  report(id, was_connected ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  if (was_connected) begin_time_wait(id);
}

void ConnectionManager::begin_time_wait(CmId& id) {
  start_timer(id, Kind::end_time_wait, std::chrono::milliseconds(1 << (ack_timeout_code(device_of(id)) - 8)));
}

void ConnectionManager::report(CmId& id, rdma_cm_event_type type, int status, const ucma_abi_conn_param& param) {
  if (id.uid == 0) return;  // as Linux: the program has not accepted the connection, and learns when it tries to
  ucma_abi_event_resp answer{};
  answer.uid = id.uid;
  answer.id = id.number;
  answer.event = type;
  answer.status = static_cast<std::uint32_t>(status);
  if (id.datagram()) {
    ucma_abi_ud_param& ud = answer.param.ud;
    ud.qp_num = param.qp_num;
    ud.qkey = id.qkey;
    ud.private_data_len = param.private_data_len;
    std::memcpy(ud.private_data, param.private_data, sizeof ud.private_data);
    if (type == RDMA_CM_EVENT_ESTABLISHED) ud.ah_attr = path_to_peer(id, device_of(id));
  } else {
    answer.param.conn = param;
  }
  put_event(id, 0, answer);
}

void ConnectionManager::report_request(CmId& listener, CmId& request, const Message& message) {
  ucma_abi_event_resp answer{};
  answer.uid = listener.uid;
  answer.id = request.number;
  answer.event = RDMA_CM_EVENT_CONNECT_REQUEST;
  if (request.datagram()) {
    ucma_abi_ud_param& ud = answer.param.ud;
    std::memcpy(ud.private_data, message.param.private_data, sizeof ud.private_data);
    ud.private_data_len = padded(message.param, request.request_data());
  } else {
    answer.param.conn = message.param;
    answer.param.conn.responder_resources = request.responder_resources;
    answer.param.conn.initiator_depth = request.initiator_depth;
    answer.param.conn.private_data_len = padded(message.param, request.request_data());
  }
  put_event(listener, request.number, answer);
}

void ConnectionManager::put_event(CmId& id, std::uint32_t request, const ucma_abi_event_resp& answer) {
  id.file->events.arrive({.id = id.number, .request = request, .answer = answer}, engine_.now());
}

}  // namespace verbscope::simulate
