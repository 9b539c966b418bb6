// Builds the send queues of a worker and the RECVs of its clients from the lanes that a thread is given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/choice.hpp"
#include "systems/answers/inbox.hpp"
#include "systems/answers/queue.hpp"

namespace verbscope {

// The bytes that an answer may have; inline, or read by the adapter from where they lie.
struct AnswerBodies {
  std::uint32_t bytes = 8;
  bool inlined = true;
};

// The UD QPs of a worker with their prebuilt answers, by port. A body is its answer's own until that has left.
class AnswerPorts {
 public:
  explicit AnswerPorts(const ThreadSetup& setup, const AnswerBodies& bodies = {});

  std::span<AnswerQueue> queues() { return queues_; }
  std::span<AnswerPort> ports() { return ports_; }

 private:
  void add_queue(const ThreadSetup& setup, std::uint32_t lane);

  std::uint32_t depth_;  // requests that a queue holds, a multiple of signal_every
  AnswerBodies shape_;
  std::uint64_t stride_;  // bytes from a body to the next
  Buffer bodies_;
  std::optional<Mr> mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<AnswerQueue> queues_;
  std::vector<AnswerPort> ports_;
};

// The UD QP that reaches a client thread, the port that goes there, and its machine.
struct ClientAddress {
  PeerQp qp;
  std::uint32_t port = 0;
  std::uint32_t node = 0;  // machine
};
// The addresses of all client threads; each stands at the thread's number among all.
std::vector<ClientAddress> client_addresses(const ThreadSetup& setup);

// RECVs for answers of up to `body` bytes on one lane of a client; wr_id is recv_id(lane, place).
class AnswerRecvs {
 public:
  AnswerRecvs(const ThreadSetup& setup, std::uint32_t lane, std::uint32_t count, std::uint32_t body = 8);

  // The inbox that posts these RECVs to `qp`.
  AnswerInbox inbox(ibv_qp* qp) {
    return {.qp = qp, .queue = lane_, .recvs = requests_, .bodies = body(0), .stride = stride_};
  }

 private:
  static constexpr std::uint64_t kLine = 64;  // bytes
  // A body begins on a line, behind the GRH.
  const std::byte* body(std::uint32_t index) const { return buffer_.data() + index * stride_ + kLine; }

  std::uint32_t lane_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> requests_;
};

// RECVs that a client thread needs with so many requests outstanding: some more, for answers that come twice.
constexpr std::uint32_t answer_recvs(std::uint32_t outstanding) {
  return 2 * outstanding;
}

// The client thread's number among those of all machines.
inline std::uint32_t number_of_client(const ThreadSetup& setup) {
  return setup.node * setup.topology.client_threads + setup.thread;
}

// The QP of a thread of the server that this client asks: always the same one, so that its requests stay in order.
// `peers`: those of the client's lane, by thread, then QP.
inline const PeerQp& asked_qp(const ThreadSetup& setup, const std::vector<LanePeer>& peers, std::uint32_t thread) {
  const std::size_t each = peers.size() / setup.topology.threads;
  return peers[thread * each + number_of_client(setup) % each].qp;
}

// Chooses one of `lanes` at random for each request of a client thread.
inline Choice choice_of(const ThreadSetup& setup, std::size_t lanes) {
  return {lanes, true, setup.operation.seed * 1'000'003 + number_of_client(setup), 0};
}

// A send queue of a client.
inline LaneQueue client_queue(const Lane& lane, std::uint32_t depth, std::uint32_t signal_every) {
  return {.qp = lane.qp, .builder = lane.builder, .depth = depth, .room = depth, .signal_every = signal_every};
}

}  // namespace verbscope
