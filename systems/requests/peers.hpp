// Clients and servers as each other's peers: numbers and addresses of client threads, the QPs that a client uses, and
// the tags of requests and responses.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "common/error.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/choice.hpp"

namespace verbscope {

// A tag is an immediate: the thread of the server in a response, the client in a request by SEND, and the low bits of
// the request's number.
inline constexpr std::uint32_t kTagNumbers = 1u << 20;
inline constexpr std::uint32_t kMaxTagged = 1u << 12;  // threads, clients
constexpr std::uint32_t tag_of(std::uint32_t who, std::uint64_t number) {
  return who * kTagNumbers + static_cast<std::uint32_t>(number % kTagNumbers);
}
constexpr std::uint32_t tagged(std::uint32_t tag) {
  return tag / kTagNumbers;
}
// The number whose low bits a tag has, nearest to `near`.
constexpr std::uint64_t tagged_number(std::uint32_t tag, std::uint64_t near) {
  constexpr std::int64_t kHalf = kTagNumbers / 2;
  const auto ahead = static_cast<std::int64_t>((tag - near) % kTagNumbers);
  return near + static_cast<std::uint64_t>(ahead < kHalf ? ahead : ahead - 2 * kHalf);
}

// The UD QP of a client thread, the server's port that leads to it, and its machine.
struct ClientAddress {
  PeerQp qp;
  std::uint32_t port = 0;
  std::uint32_t node = 0;
};
// The addresses of all client threads, each at the thread's number.
std::vector<ClientAddress> client_addresses(const ThreadSetup& setup);
// Their QPs.
std::vector<PeerQp> client_qps(const ThreadSetup& setup);

// RECVs that a client thread needs with this many outstanding requests: more than one each, for repeated responses.
constexpr std::uint32_t response_recvs(std::uint32_t outstanding) {
  return 2 * outstanding;
}

// The client thread's number among those of all machines.
inline std::uint32_t number_of_client(const ThreadSetup& setup) {
  return setup.node * setup.topology.client_threads + setup.thread;
}

// The QP of a server thread that this client sends to: always the same one, so that its requests stay in order.
// `peers`: those of the client's lane, by thread, then QP.
inline const PeerQp& asked_qp(const ThreadSetup& setup, const std::vector<LanePeer>& peers, std::uint32_t thread) {
  const std::size_t each = peers.size() / setup.topology.threads;
  return peers[thread * each + number_of_client(setup) % each].qp;
}

// Chooses one of `lanes` at random for each request of a client thread.
inline Choice choice_of(const ThreadSetup& setup, std::size_t lanes) {
  return {lanes, true, setup.operation.seed * 1'000'003 + number_of_client(setup), 0};
}

// Finds the sender of a datagram: peers by the number of their QP and the LID of their port, as a completion names
// them. Ethernet has no LIDs; there only the numbers are compared.
class QpIndex {
 public:
  static constexpr std::uint32_t kNotFound = 0xffffffff;

  // Finds peer i of `peers` as i. Throws Error if two cannot be distinguished.
  explicit QpIndex(const std::vector<PeerQp>& peers);

  // kNotFound if the sender is none of the peers.
  std::uint32_t find(const ibv_wc& wc) const {
    const std::uint64_t wanted = key(wc.src_qp, by_lid_ ? wc.slid : std::uint16_t{0});
    for (std::uint64_t at = place(wanted);; at = (at + 1) & mask_) {
      if (entries_[at].peer == kNotFound || entries_[at].key == wanted) return entries_[at].peer;
    }
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t peer = kNotFound;
  };
  static constexpr std::uint64_t key(std::uint32_t qpn, std::uint16_t lid) { return std::uint64_t{lid} << 24 | qpn; }
  std::uint64_t place(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15u >> 32) & mask_; }

  bool by_lid_ = false;
  std::uint64_t mask_;
  std::vector<Entry> entries_;
};

}  // namespace verbscope
