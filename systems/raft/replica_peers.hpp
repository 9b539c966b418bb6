// The network of a replica: its messages are RPCs, and a result goes into the response to an earlier message of its
// receiver, if there is one. A message without a result has an empty response. A message of several parts is put
// together by its receiver. The library gets a message in the pass in which it arrives, so that its results leave in
// that pass.
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
  // `addresses`: of the replicas 1, 2, ... A peer that does not answer for `patience` gets a new session. The thread
  // must outlive the peers.
  ReplicaPeers(ServiceThread& thread, std::uint8_t type, raft_id own, const std::vector<std::string>& addresses,
               Picos patience);
  // Before the first pass: serves messages of peers under the RPC type, for this replica.
  void serve(RaftIo& io);
  ReplicaPeers(const ReplicaPeers&) = delete;
  ReplicaPeers& operator=(const ReplicaPeers&) = delete;

  std::byte* prepare(raft_id to, std::size_t bytes, MessageOrder order) override;
  void send(std::uint64_t tag) override;

  // Before RaftIo::poll(): reports what was delivered, and opens sessions.
  void poll();
  // After RaftIo::poll(): answers the messages that wait for a result that will not come.
  void answer_rest();

 private:
  // In front of each part of a message that is cut. A whole message begins with its type instead.
  struct Part {
    std::uint8_t mark = kPartMark;
    std::uint8_t unused[7] = {};
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
    std::deque<Call*> calls;     // on their way, oldest first
    std::deque<RpcHandle> asks;  // messages of the peer that have no response yet
    std::uint64_t arriving = 0;  // message whose parts arrive
    std::vector<std::byte> parts;
    bool sends_parts = false;
  };

  Call& new_call();
  void post(Call& call, std::size_t offset);
  static void done(void* context, std::uint64_t, RpcStatus status);
  void finish(Call& call);
  void take(const RpcRequest& request);
  void close(Peer& peer);

  static constexpr std::uint8_t kPartMark = 0xff;
  // Larger messages are cut, so that both ends need no large registered memory.
  static constexpr std::size_t kPart = 64 << 10;
  static constexpr std::size_t kResponse = 64;  // bytes: a result
  static constexpr std::size_t kMostCalls = 256;

  ServiceThread& thread_;
  RaftIo* io_ = nullptr;
  const std::uint8_t type_;
  const raft_id own_;
  const Picos patience_;
  std::vector<Peer> peers_;
  std::deque<Call> calls_;
  std::vector<Call*> free_;
  std::vector<std::uint64_t> answered_;  // tags of results in responses
  std::uint64_t messages_ = 0;
  Call* prepared_ = nullptr;
  std::optional<RpcHandle> prepared_answer_;
};

}  // namespace verbscope
