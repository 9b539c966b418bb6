// The connection manager's commands that make and end connections, give events and set options.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simulate/server/calls.hpp"
#include "simulate/server/connection_manager.hpp"

namespace verbscope::simulate {
namespace {

constexpr std::uint8_t kMostRetries = 7;   // a field of three bits
constexpr std::uint8_t kMostTimeout = 31;  // a field of five bits

}  // namespace

int ConnectionManager::connect(const Command& command) {
  const auto cmd = command.as<ucma_abi_connect>();
  CmId* const id = find(command.file, cmd.id);
  if (id == nullptr) return ENOENT;
  if (cmd.conn_param.valid == 0 || id->state != CmState::route_resolved) return EINVAL;
  if (cmd.conn_param.private_data_len > id->request_data()) return EINVAL;
  id->qp_num = cmd.conn_param.qp_num;
  id->responder_resources = cmd.conn_param.responder_resources;
  id->initiator_depth = cmd.conn_param.initiator_depth;
  id->retry_count = std::min(cmd.conn_param.retry_count, kMostRetries);
  id->rnr_retry_count = std::min(cmd.conn_param.rnr_retry_count, kMostRetries);
  enter(*id, CmState::request_sent);
  send({.kind = Kind::request, .to = 0, .from = id->number, .changes = id->changes, .param = cmd.conn_param});
  expect_answer(*id);
  return 0;
}

int ConnectionManager::accept(const Command& command) {
  const auto cmd = command.as<ucma_abi_accept>();
  CmId* const id = find(command.file, cmd.id);
  if (id == nullptr) return ENOENT;
  // The side that has asked for the connection tells by this that its QP is ready.
  if (cmd.conn_param.valid == 0) {
    if (id->state != CmState::reply_received) return EINVAL;
    enter(*id, CmState::established);
    send({.kind = Kind::ready, .to = id->peer, .from = id->number});
    return 0;
  }
  if (id->state != CmState::request_received) return EINVAL;
  const std::uint8_t room = id->datagram() ? kDatagramReplyData : kReplyData;
  if (cmd.conn_param.private_data_len > room) return EINVAL;
  id->uid = cmd.uid;
  id->qp_num = cmd.conn_param.qp_num;
  if (id->datagram()) return reply_to_datagram(*id, kDatagramAccepted, cmd.conn_param);
  id->responder_resources = cmd.conn_param.responder_resources;
  id->initiator_depth = cmd.conn_param.initiator_depth;
  enter(*id, CmState::reply_sent);
  send({.kind = Kind::reply, .to = id->peer, .from = id->number, .param = cmd.conn_param});
  expect_answer(*id);
  return 0;
}

int ConnectionManager::reply_to_datagram(CmId& id, int status, const ucma_abi_conn_param& param) {
  enter(id, CmState::ended);
  send({.kind = Kind::datagram_reply, .to = id.peer, .from = id.number, .status = status, .param = param});
  return 0;
}

int ConnectionManager::reject(const Command& command) {
  const auto cmd = command.as<ucma_abi_reject>();
  CmId* const id = find(command.file, cmd.id);
  if (id == nullptr) return ENOENT;
  const std::uint8_t room = id->datagram() ? kDatagramReplyData : kRejectData;
  const bool asked =
      id->state == CmState::request_received || (!id->datagram() && id->state == CmState::reply_received);
  if (!asked || cmd.private_data_len > room) return EINVAL;
  ucma_abi_conn_param param{};
  std::memcpy(param.private_data, cmd.private_data, cmd.private_data_len);
  param.private_data_len = cmd.private_data_len;
  if (id->datagram()) return reply_to_datagram(*id, kDatagramRejected, param);
  send_reject(*id, cmd.reason == 0 ? kRejectedByProgram : cmd.reason, param);
  enter(*id, CmState::ended);
  return 0;
}

int ConnectionManager::disconnect(CmId& id) {
  if (id.state < CmState::request_sent) return EINVAL;
  if (id.state == CmState::established || id.state == CmState::reply_sent) {
    enter(id, CmState::disconnect_sent);
    send({.kind = Kind::disconnect, .to = id.peer, .from = id.number});
    expect_answer(id);
  } else if (id.state == CmState::disconnect_received) {
    enter(id, CmState::ended);
    send({.kind = Kind::disconnect_reply, .to = id.peer, .from = id.number});
    begin_time_wait(id);
  }
  return 0;
}

int ConnectionManager::get_event(const Command& command) {
  const auto cmd = command.as<ucma_abi_get_event>();
  if (command.head.out < offsetof(ucma_abi_event_resp, ece)) return ENOSPC;
  sim::SimThread& thread = command.call.node.thread();
  const Picos deadline = command.waits ? Picos::max() : thread.clock();
  const std::optional<CmEvent> event = command.file.events.await(thread, deadline, command.call.interrupted);
  if (!event) return command.waits ? EINTR : EAGAIN;
  CmId& id = *find(event->id);
  ++id.reported;
  if (event->request != 0) ++id.backlog;
  if (event->membership != 0) ++memberships_.at(event->membership).reported;
  return command.answer(cmd.response, std::as_bytes(std::span(&event->answer, 1)), 0);
}

int ConnectionManager::set_option(const Command& command) {
  const auto cmd = command.as<ucma_abi_set_option>();
  CmId* const id = find(command.file, cmd.id);
  if (id == nullptr) return ENOENT;
  // Paths are what ibacm gives, which has no part in the simulation.
  if (cmd.level != RDMA_OPTION_ID) return ENOSYS;
  const auto byte = [&] { return std::to_integer<std::uint8_t>(command.option[0]); };
  const auto flag = [&] {
    int value = 0;
    std::memcpy(&value, command.option.data(), sizeof value);
    return value != 0;
  };
  const bool is_byte = cmd.optname == RDMA_OPTION_ID_TOS || cmd.optname == RDMA_OPTION_ID_ACK_TIMEOUT;
  if (command.option.size() != (is_byte ? 1 : sizeof(int))) return EINVAL;
  switch (cmd.optname) {
    case RDMA_OPTION_ID_TOS:
      id->type_of_service = byte();
      return 0;
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
      if (id->state > CmState::bound) return EINVAL;
      (cmd.optname == RDMA_OPTION_ID_AFONLY ? id->own_family_only : id->reuse_address) = flag();
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (byte() > kMostTimeout) return EINVAL;
      id->ack_timeout = byte();
      return 0;
    default:
      return ENOSYS;
  }
}

int ConnectionManager::notify(CmId& id, std::uint32_t event) {
  if (event != IBV_EVENT_COMM_EST || id.datagram()) return EINVAL;
  if (id.state == CmState::established) return EISCONN;
  if (id.state != CmState::reply_sent) return EINVAL;
  enter(id, CmState::established);
  report(id, RDMA_CM_EVENT_ESTABLISHED);
  return 0;
}

int ConnectionManager::migrate(const Command& command) {
  const auto cmd = command.as<ucma_abi_migrate_id>();
  CmFile* const source = find_file(command.call.process, command.source);
  if (command.head.out < sizeof(ucma_abi_migrate_resp)) return ENOSPC;
  if (source == nullptr) return EINVAL;
  CmId* const id = find(*source, cmd.id);
  if (id == nullptr) return ENOENT;
  if (source != &command.file) {
    std::vector<CmEvent> events;
    source->events.forget([&](const CmEvent& event) {
      if (event.id == cmd.id) events.push_back(event);
      return event.id == cmd.id;
    });
    id->file = &command.file;
    for (const CmEvent& event : events) {
      if (event.request != 0) find(event.request)->file = &command.file;
      command.file.events.arrive(event, engine_.now());
    }
  }
  return command.answer(cmd.response, ucma_abi_migrate_resp{.events_reported = id->reported});
}

}  // namespace verbscope::simulate
