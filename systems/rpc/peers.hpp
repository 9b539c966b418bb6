// Who asks and who is asked: numbers and addresses of client threads, and the QPs of the server that a client uses.
#pragma once

#include <cstdint>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/choice.hpp"

namespace verbscope {

// The UD QP that reaches a client thread, the port that goes there, and its machine.
struct ClientAddress {
  PeerQp qp;
  std::uint32_t port = 0;
  std::uint32_t node = 0;
};
// The addresses of all client threads, each at the thread's number.
std::vector<ClientAddress> client_addresses(const ThreadSetup& setup);
// Their QPs.
std::vector<PeerQp> client_qps(const ThreadSetup& setup);

// RECVs that a client thread needs with this many requests outstanding: some more, for responses that arrive twice.
constexpr std::uint32_t response_recvs(std::uint32_t outstanding) {
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

}  // namespace verbscope
