// The network of a replica: its messages are RPCs, and a result goes into the response to an earlier message of its
// receiver, if there is one. Without the results that the library makes of it in this pass, a message has an empty
// response. A message of several parts is put together by its receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "systems/raft/raft_io.hpp"
#include "systems/service/service_thread.hpp"

namespace verbscope {

class ReplicaPeers final : public RaftNetwork {
 public:
  // `addresses`: of the replicas 1, 2, ... Messages are handled under the RPC type `type`. A peer that does not answer
  // for `patience` gets a new session. The thread must outlive the peers.
  ReplicaPeers(ServiceThread& thread, std::uint8_t type, raft_id own, const std::vector<std::string>& addresses,
               Picos patience);
  ReplicaPeers(const ReplicaPeers&) = delete;
  ReplicaPeers& operator=(const ReplicaPeers&) = delete;

  std::byte* prepare(raft_id to, std::size_t bytes, bool result) override;
  void send(std::uint64_t tag) override;

  // Handles an RPC of a peer.
  void take(RaftIo& io, const RpcRequest& request);
  // Gives the library what its messages have brought, after a pass. Opens sessions.
  void poll(RaftIo& io);
  // Answers the messages that wait for a result, after a call of RaftIo::poll().
  void answer_rest(const RaftIo& io);

 private:
  // In front of each part of a message.
  struct Part {
    std::uint64_t message = 0;
    std::uint64_t offset = 0;
    std::uint64_t total = 0;  // bytes of the message
    std::uint64_t sender = 0;
  };
  // A message, or a part of one, on its way.
  struct Call {
    ReplicaPeers* peers = nullptr;
    MessageBuffer request, response;
    raft_id to = 0;
    std::uint64_t tag = 0;
    Picos sent{0};
    std::vector<std::byte> whole;  // a message of several parts
    std::uint64_t message = 0;
    std::size_t next = 0;  // offset of the part after this one
    bool delivered = false;
  };
  struct Peer {
    std::string address;
    std::optional<std::uint16_t> session;
    Picos open_at{0};
    std::deque<Call*> calls;      // on their way, oldest first
    std::deque<RpcHandle> asks;   // messages of the peer that have no response yet
    std::uint64_t arriving = 0;   // message whose parts arrive
    std::vector<std::byte> parts;
    bool sends_parts = false;
  };

  Call& new_call();
  void post(Call& call, std::size_t offset);
  static void done(void* context, std::uint64_t, RpcStatus status);
  void finish(RaftIo& io, Call& call);
  void close(Peer& peer);

  // Larger messages are cut, so that both ends need no large registered memory.
  static constexpr std::size_t kPart = 64 << 10;
  static constexpr std::size_t kResponse = 64;  // bytes: a result
  static constexpr std::size_t kMostCalls = 256;

  ServiceThread& thread_;
  const std::uint8_t type_;
  const raft_id own_;
  const Picos patience_;
  std::vector<Peer> peers_;
  std::deque<Call> calls_;
  std::vector<Call*> free_;
  std::vector<Call*> done_;
  std::vector<std::uint64_t> answered_;  // tags of results in responses
  std::uint64_t messages_ = 0;
  Call* prepared_ = nullptr;
  std::optional<RpcHandle> prepared_answer_;
};

}  // namespace verbscope
