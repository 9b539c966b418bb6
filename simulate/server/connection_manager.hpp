// The connection manager of the simulated nodes, as the kernel's character device /dev/infiniband/rdma_cm shows it to
// programs: they write commands (struct ucma_abi_*, version 4) and wait for events. It behaves as Linux 6.1
// (drivers/infiniband/core/{ucma,cma,cm}.c).
//
// Nodes exchange the messages of InfiniBand's connection manager, which take the time of a packet through one switch
// and of the interrupt that wakes up the kernel's thread. The messages are not packets of the simulated network: they
// are few and small, no measured profile tells the CPU time of their handling in two kernels, which is most of what a
// connection takes, and nothing that the nodes' adapters do depends on them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/profile/profile.hpp"
#include "simulate/server/connection_answers.hpp"

namespace verbscope {
class SimCluster;
}

namespace verbscope::simulate {

struct Call;
class Process;

class ConnectionManager {
 public:
  ConnectionManager(SimCluster& cluster, const Profile& profile);
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  // Operations of programs (cm_open, cm_close; cm_command and cm_get_event). Return an errno.
  int open(const Call& call);
  int close(const Call& call);
  int command(const Call& call);
  // The process has ended, or begins again by exec(2): its files are closed.
  void end(const Process& process);

 private:
  // A command that was written to a file.
  struct Command {
    const Call& call;
    CmFile& file;
    ucma_abi_cmd_hdr head;
    std::span<const std::byte> bytes;
    bool waits;            // the file is not in non-blocking mode
    std::uint32_t source;  // MIGRATE_ID: the file that the identifier leaves
    std::span<const std::byte> option;

    // The command as this structure. What is beyond its end is zero.
    template <class T>
    T as() const;
    // Answers to this address of the program. Returns an errno.
    int answer(std::uint64_t address, std::span<const std::byte> value, std::size_t least) const;
    template <class T>
    int answer(std::uint64_t address, const T& value) const {
      return answer(address, std::as_bytes(std::span(&value, 1)), sizeof value);
    }
  };

  enum class Kind : std::uint8_t {
    address_resolved,
    route_resolved,
    request,
    reply,
    ready,
    reject,
    disconnect,
    disconnect_reply,
    datagram_reply,
    joined,   // a group
    give_up,  // nobody has answered
    end_time_wait
  };
  struct Message {
    Kind kind;
    std::uint32_t to;  // an identifier; 0: the listener that the sender names. joined: a membership
    std::uint32_t from = 0;
    std::uint32_t changes = 0;  // of the sender's state, when it was sent
    int status = 0;
    int tries = 1;
    ucma_abi_conn_param param{};
  };

  // Commands. Each returns an errno.
  int execute(const Command& command);
  int create_id(const Command& command);
  int destroy_id(const Command& command);
  int bind(CmId& id, CmAddress address);
  int resolve_address(CmId& id, std::span<const std::byte> from, std::span<const std::byte> to,
                      std::uint32_t timeout_ms);
  int resolve_route(CmId& id);
  int query(const Command& command);
  int connect(const Command& command);
  int listen(CmId& id, int backlog);
  int accept(const Command& command);
  int reply_to_datagram(CmId& id, int status, const ucma_abi_conn_param& param);
  int reject(const Command& command);
  int disconnect(CmId& id);
  int get_event(const Command& command);
  int set_option(const Command& command);
  int notify(CmId& id, std::uint32_t event);
  int migrate(const Command& command);
  // Of multicast groups, in connection_groups.cpp.
  int join_group(const Command& command);
  int join_group(const Command& command, std::uint32_t id, std::uint64_t uid, std::uint64_t response,
                 const std::optional<CmAddress>& address);
  int leave_group(const Command& command);
  std::uint16_t lid_of_group(const ibv_gid& gid) const;
  void receive_joined(std::uint32_t membership);

  // The identifier of this number in this file; null if it has none.
  CmId* find(const CmFile& file, std::uint32_t number);
  CmId* find(std::uint32_t number);
  CmFile* find_file(const Process& process, std::uint32_t number);
  CmId& add(CmFile& file, std::uint32_t node, std::uint16_t port_space, ibv_qp_type type);
  // Takes leave of the peer. Returns the number of events that the program has got.
  std::uint32_t destroy(std::uint32_t number);
  void close(CmFile& file);
  // Changes the state, which ends the timer of the one before.
  void enter(CmId& id, CmState state);
  CmDevice device_of(const CmId& id);

  int take_port(CmId& id);
  bool in_use(const CmId& id, std::uint16_t port, bool listening) const;
  CmId* listener_for(const CmId& sender);

  // Messages, in connection_messages.cpp.
  // Return the number of the message.
  std::uint64_t send(const Message& message, Picos delay);
  std::uint64_t send(const Message& message) { return send(message, one_way_); }
  void send_reject(const CmId& id, int reason, const ucma_abi_conn_param& param = {});
  static void deliver(void* manager, std::uint64_t number);
  void deliver(const Message& message);
  void receive_request(const Message& message);
  void receive_reply(CmId& id, const Message& message);
  void receive_disconnect(const Message& message);
  void expect_answer(CmId& id);
  void give_up(CmId& id);
  void begin_time_wait(CmId& id);
  void start_timer(CmId& id, Kind kind, Picos delay);
  void stop_timer(CmId& id);
  // Events for the program.
  void report(CmId& id, rdma_cm_event_type type, int status = 0, const ucma_abi_conn_param& param = {});
  void report_request(CmId& listener, CmId& request, const Message& message);
  void put_event(CmId& id, std::uint32_t request, const ucma_abi_event_resp& answer);

  SimCluster& cluster_;
  sim::Engine& engine_;
  Picos wakeup_;
  CmNetwork network_;
  Picos one_way_;
  // Files are kept until the simulation ends, because events of the engine may refer to them.
  std::deque<std::unique_ptr<CmFile>> files_;
  std::map<std::uint32_t, CmId> ids_;
  std::uint32_t last_id_ = 0;
  std::map<std::uint32_t, CmMembership> memberships_;
  std::uint32_t last_membership_ = 0;
  std::map<std::uint64_t, Message> messages_;
  std::uint64_t last_message_ = 0;
  std::vector<std::uint16_t> next_port_;  // of each node, to bind to where the program names none
};

}  // namespace verbscope::simulate
