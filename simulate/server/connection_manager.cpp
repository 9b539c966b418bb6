#include "simulate/server/connection_manager.hpp"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic_sim/cluster.hpp"
#include "nic_sim/device/provider.hpp"
#include "simulate/server/calls.hpp"

namespace verbscope::simulate {
namespace {

ibv_qp_type type_of(std::uint16_t port_space, std::uint8_t asked) {
  switch (port_space) {
    case RDMA_PS_TCP:
      return IBV_QPT_RC;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      return IBV_QPT_UD;
    case RDMA_PS_IB:
      return static_cast<ibv_qp_type>(asked);
    default:
      return {};
  }
}

template <class Address>
std::span<const std::byte> bytes_of(const Address& address, std::size_t size = sizeof(Address)) {
  return std::as_bytes(std::span(&address, 1)).first(std::min(size, sizeof address));
}

}  // namespace

ConnectionManager::ConnectionManager(SimCluster& cluster, const Profile& profile)
    : cluster_(cluster),
      engine_(cluster.engine()),
      wakeup_(profile.host.event_wakeup),
      network_{profile.wire.link_type, static_cast<std::uint32_t>(cluster.nodes())},
      one_way_(2 * profile.fabric.cable + profile.fabric.switch_latency + profile.host.event_wakeup),
      next_port_(network_.nodes, kFirstPort) {}

int ConnectionManager::open(const Call& call) {
  const int copy = call.process.copy_fd(call.in.get<int>());
  if (copy < 0) return errno;
  files_.push_back(std::make_unique<CmFile>(call.process, engine_, wakeup_));
  show_by(call, files_.back()->events, copy);
  call.out.put(static_cast<std::uint32_t>(files_.size()));
  return 0;
}

int ConnectionManager::close(const Call& call) {
  call.node.thread().sync();
  CmFile* const file = find_file(call.process, call.in.get<std::uint32_t>());
  if (file == nullptr) return EBADF;
  close(*file);
  return 0;
}

void ConnectionManager::close(CmFile& file) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, id] : ids_) {
    if (id.file == &file) numbers.push_back(number);
  }
  for (const std::uint32_t number : numbers) {
    if (find(number) != nullptr) destroy(number);  // else its listener has taken it along
  }
  file.open = false;
  file.events.close();
}

void ConnectionManager::end(const Process& process) {
  for (const auto& file : files_) {
    if (file->open && file->owner == &process) close(*file);
  }
}

CmFile* ConnectionManager::find_file(const Process& process, std::uint32_t number) {
  if (number == 0 || number > files_.size()) return nullptr;
  CmFile* const file = files_[number - 1].get();
  return file->open && file->owner == &process ? file : nullptr;
}

CmId* ConnectionManager::find(std::uint32_t number) {
  const auto found = ids_.find(number);
  return found == ids_.end() ? nullptr : &found->second;
}
CmId* ConnectionManager::find(const CmFile& file, std::uint32_t number) {
  CmId* const id = find(number);
  return id == nullptr || id->file != &file ? nullptr : id;
}

void ConnectionManager::enter(CmId& id, CmState state) {
  stop_timer(id);
  id.state = state;
  ++id.changes;
}

CmDevice ConnectionManager::device_of(const CmId& id) {
  auto& provider = static_cast<sim::SimProvider&>(cluster_.provider(static_cast<int>(id.node)));
  ibv_device_attr device{};
  CmDevice answer{network_, 0, {}};
  provider.query_device(nullptr, &device);
  provider.query_port(nullptr, 1, &answer.port);
  answer.guid = device.node_guid;
  return answer;
}

template <class T>
T ConnectionManager::Command::as() const {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

int ConnectionManager::Command::answer(std::uint64_t address, std::span<const std::byte> value,
                                       std::size_t least) const {
  if (head.out < least) return ENOSPC;
  call.out.put(address);
  call.out.put_bytes(value.data(), std::min<std::size_t>(value.size(), head.out));
  return 0;
}

int ConnectionManager::command(const Call& call) {
  CmFile* const file = find_file(call.process, call.in.get<std::uint32_t>());
  const bool waits = call.in.get<bool>();
  const auto source = call.in.get<std::uint32_t>();
  const auto size = call.in.get<std::uint32_t>();
  const auto bytes = call.in.bytes(size);
  const auto option_size = call.in.get<std::uint32_t>();
  ucma_abi_cmd_hdr head{};
  if (file == nullptr) return EBADF;
  if (bytes.size() < sizeof head) return EINVAL;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.in + sizeof head > bytes.size()) return EINVAL;
  call.node.thread().sync();
  return execute({call, *file, head, bytes, waits, source, call.in.bytes(option_size)});
}

int ConnectionManager::execute(const Command& command) {
  const auto with_id = [&](std::uint32_t number, auto&& act) {
    CmId* const id = find(command.file, number);
    return id == nullptr ? ENOENT : act(*id);
  };
  switch (command.head.cmd) {
    case UCMA_CMD_CREATE_ID:
      return create_id(command);
    case UCMA_CMD_DESTROY_ID:
      return destroy_id(command);
    case UCMA_CMD_BIND_IP: {
      const auto cmd = command.as<ucma_abi_bind_ip>();
      const auto address = read_address(bytes_of(cmd.addr));
      return !address ? EINVAL : with_id(cmd.id, [&](CmId& id) { return bind(id, *address); });
    }
    case UCMA_CMD_BIND: {
      const auto cmd = command.as<ucma_abi_bind>();
      const auto address = read_address(bytes_of(cmd.addr, cmd.addr_size));
      return !address ? EINVAL : with_id(cmd.id, [&](CmId& id) { return bind(id, *address); });
    }
    case UCMA_CMD_RESOLVE_IP: {
      const auto cmd = command.as<ucma_abi_resolve_ip>();
      return with_id(cmd.id, [&](CmId& id) {
        return resolve_address(id, bytes_of(cmd.src_addr), bytes_of(cmd.dst_addr), cmd.timeout_ms);
      });
    }
    case UCMA_CMD_RESOLVE_ADDR: {
      const auto cmd = command.as<ucma_abi_resolve_addr>();
      return with_id(cmd.id, [&](CmId& id) {
        return resolve_address(id, bytes_of(cmd.src_addr, cmd.src_size), bytes_of(cmd.dst_addr, cmd.dst_size),
                               cmd.timeout_ms);
      });
    }
    case UCMA_CMD_RESOLVE_ROUTE:
      return with_id(command.as<ucma_abi_resolve_route>().id, [&](CmId& id) { return resolve_route(id); });
    case UCMA_CMD_QUERY_ROUTE:
    case UCMA_CMD_QUERY:
      return query(command);
    case UCMA_CMD_CONNECT:
      return connect(command);
    case UCMA_CMD_LISTEN: {
      const auto cmd = command.as<ucma_abi_listen>();
      return with_id(cmd.id, [&](CmId& id) { return listen(id, static_cast<int>(cmd.backlog)); });
    }
    case UCMA_CMD_ACCEPT:
      return accept(command);
    case UCMA_CMD_REJECT:
      return reject(command);
    case UCMA_CMD_DISCONNECT:
      return with_id(command.as<ucma_abi_disconnect>().id, [&](CmId& id) { return disconnect(id); });
    case UCMA_CMD_INIT_QP_ATTR: {
      const auto cmd = command.as<ucma_abi_init_qp_attr>();
      return with_id(cmd.id, [&](const CmId& id) {
        ib_uverbs_qp_attr attr{};
        const int error = init_qp_attributes(id, device_of(id), cmd.qp_state, attr);
        return error != 0 ? error : command.answer(cmd.response, attr);
      });
    }
    case UCMA_CMD_GET_EVENT:
      return get_event(command);
    case UCMA_CMD_SET_OPTION:
      return set_option(command);
    case UCMA_CMD_NOTIFY: {
      const auto cmd = command.as<ucma_abi_notify>();
      return with_id(cmd.id, [&](CmId& id) { return notify(id, cmd.event); });
    }
    case UCMA_CMD_MIGRATE_ID:
      return migrate(command);
    case UCMA_CMD_JOIN_IP_MCAST:
    case UCMA_CMD_JOIN_MCAST:
      return join_group(command);
    case UCMA_CMD_LEAVE_MCAST:
      return leave_group(command);
    case UCMA_CMD_GET_OPTION:  // Linux has none
    default:
      return command.head.cmd > UCMA_CMD_JOIN_MCAST ? EINVAL : ENOSYS;
  }
}

CmId& ConnectionManager::add(CmFile& file, std::uint32_t node, std::uint16_t port_space, ibv_qp_type type) {
  CmId& id = ids_[++last_id_];
  id.number = last_id_;
  id.file = &file;
  id.node = node;
  id.port_space = id.service = port_space;
  id.qp_type = type;
  id.psn = (last_id_ * 0x9e3779b1u) >> 8;  // differs from one to the next, and is the same in each run
  return id;
}

int ConnectionManager::create_id(const Command& command) {
  const auto cmd = command.as<ucma_abi_create_id>();
  const ibv_qp_type type = type_of(cmd.ps, cmd.qp_type);
  if (type == ibv_qp_type{}) return EINVAL;
  if (command.head.out < sizeof(ucma_abi_create_id_resp)) return ENOSPC;
  CmId& id = add(command.file, static_cast<std::uint32_t>(command.call.process.node()), cmd.ps, type);
  id.uid = cmd.uid;
  return command.answer(cmd.response, ucma_abi_create_id_resp{.id = id.number});
}

int ConnectionManager::destroy_id(const Command& command) {
  const auto cmd = command.as<ucma_abi_destroy_id>();
  if (command.head.out < sizeof(ucma_abi_destroy_id_resp)) return ENOSPC;
  if (find(command.file, cmd.id) == nullptr) return ENOENT;
  return command.answer(cmd.response, ucma_abi_destroy_id_resp{.events_reported = destroy(cmd.id)});
}

std::uint32_t ConnectionManager::destroy(std::uint32_t number) {
  CmId& id = *find(number);
  std::vector<std::uint32_t> requests;  // that the program does not know yet
  id.file->events.forget([&](const CmEvent& event) {
    if (event.id == number && event.request != 0) requests.push_back(event.request);
    return event.id == number;
  });
  for (const std::uint32_t request : requests) destroy(request);
  switch (id.state) {
    case CmState::request_sent:
      if (!id.datagram()) send_reject(id, kRejectTimeout);
      break;
    case CmState::request_received:
      if (id.datagram()) {
        reply_to_datagram(id, kDatagramRejected, {});
      } else {
        send_reject(id, kRejectedByProgram);
      }
      break;
    case CmState::reply_sent:
    case CmState::reply_received:
      send_reject(id, kRejectedByProgram);
      break;
    case CmState::established:
      send({.kind = Kind::disconnect, .to = id.peer, .from = number});
      break;
    case CmState::disconnect_received:
      send({.kind = Kind::disconnect_reply, .to = id.peer, .from = number});
      break;
    default:
      break;
  }
  stop_timer(id);
  std::erase_if(memberships_, [number](const auto& entry) { return entry.second.id == number; });
  const std::uint32_t reported = id.reported;
  ids_.erase(number);
  return reported;
}

int ConnectionManager::query(const Command& command) {
  const auto cmd = command.as<ucma_abi_query>();
  const CmId* const id = find(command.file, cmd.id);
  if (id == nullptr) return ENOENT;
  const CmDevice device = device_of(*id);
  // Programs of older releases leave out what follows the device's index.
  if (command.head.cmd == UCMA_CMD_QUERY_ROUTE) {
    const ucma_abi_query_route_resp route = query_route(*id, device);
    return command.answer(cmd.response, bytes_of(route), offsetof(ucma_abi_query_route_resp, ibdev_index));
  }
  if (cmd.option == UCMA_QUERY_PATH)
    return command.answer(cmd.response, query_path(*id, device), sizeof(ucma_abi_query_path_resp));
  if (cmd.option > UCMA_QUERY_GID) return ENOSYS;
  const ucma_abi_query_addr_resp addresses =
      cmd.option == UCMA_QUERY_ADDR ? query_addresses(*id, device) : query_gids(*id, device);
  return command.answer(cmd.response, bytes_of(addresses), offsetof(ucma_abi_query_addr_resp, ibdev_index));
}

}  // namespace verbscope::simulate
