// One replica as a server: the RPCs of its peers and of clients on one thread.
#pragma once

#include <cstdint>
#include <string>

#include "systems/raft/replica.hpp"
#include "systems/raft/replica_peers.hpp"
#include "systems/service/service_thread.hpp"

namespace verbscope {

// The types of requests to a replica.
inline constexpr std::uint8_t kReplicaMessage = 1;
inline constexpr std::uint8_t kStoreRequest = 2;
// Answered with a report. With data "clear" the counts begin anew then.
inline constexpr std::uint8_t kReplicaReport = 3;

class ReplicaServer {
 public:
  // Throws Error. The arguments must outlive the server.
  ReplicaServer(ServiceThread& thread, const ReplicaOptions& options, RaftLog& log);
  ReplicaServer(const ReplicaServer&) = delete;
  ReplicaServer& operator=(const ReplicaServer&) = delete;

  // After each pass of the thread. Throws Error if the replica cannot go on.
  void poll();

  const Replica& replica() const { return replica_; }

 private:
  static void answer(void* server, const RpcHandle& handle, const StoreAnswer& content);
  void report(const RpcRequest& request);
  void say_if_full();
  void say_if_leader();

  ServiceThread& thread_;
  RaftLog& log_;
  const raft_id id_;
  ReplicaPeers peers_;
  Replica replica_;
  bool said_full_ = false;
  std::uint64_t said_leader_ = 0;  // term
  Picos since_{0};                 // when the counts were cleared
  Picos busy_{0};
};

}  // namespace verbscope
