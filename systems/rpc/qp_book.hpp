// Who sent a datagram: peers by the number of their QP and the LID of their port, as a completion names them. Ethernet
// has no LIDs; there the numbers alone must do.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "common/error.hpp"
#include "microbench/bench/benchmark.hpp"

namespace verbscope {

class QpBook {
 public:
  static constexpr std::uint32_t kNobody = 0xffffffff;

  // Peer i of `peers` is found as i. Throws Error when two cannot be told apart.
  explicit QpBook(const std::vector<PeerQp>& peers);

  // kNobody for a stranger.
  std::uint32_t find(const ibv_wc& wc) const {
    const std::uint64_t wanted = key(wc.src_qp, by_lid_ ? wc.slid : std::uint16_t{0});
    for (std::uint64_t at = place(wanted);; at = (at + 1) & mask_) {
      if (entries_[at].peer == kNobody || entries_[at].key == wanted) return entries_[at].peer;
    }
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t peer = kNobody;
  };
  static constexpr std::uint64_t key(std::uint32_t qpn, std::uint16_t lid) { return std::uint64_t{lid} << 24 | qpn; }
  std::uint64_t place(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15u >> 32) & mask_; }

  bool by_lid_ = false;
  std::uint64_t mask_;
  std::vector<Entry> entries_;
};

}  // namespace verbscope
