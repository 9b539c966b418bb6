// The way of a QP from RESET to RTS: the attributes of each step, for a test to take or to change.
#pragma once

#include <cstdint>

#include "tests/conformance/side.hpp"

namespace verbscope::conformance {

constexpr std::uint32_t kQkey = 0x1234567;

// The way in which a pair of QPs is brought up.
struct LinkOptions {
  std::uint8_t timeout = 17;  // 4.096 us * 2^17 = 0.54 s: emulated machines are slow
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;     // 7 means for ever
  std::uint8_t min_rnr_timer = 10;  // 0.32 ms
  std::uint8_t max_rd_atomic = 4;
  unsigned access = kRemoteAccess;  // rights that the QP gives its peer
  std::uint32_t psn = 0x1234;
  bool global = false;
};

// One call of modify_qp.
struct Step {
  ibv_qp_attr attr{};
  int mask = 0;
};

// The usual steps of a QP of `type` on `side`; the address and number of the peer count on UC, RC and XRC only.
Step to_init(const Side& side, ibv_qp_type type, const LinkOptions& options = {});
Step to_rtr(const Side& side, ibv_qp_type type, const Side& peer, std::uint32_t peer_qpn,
            const LinkOptions& options = {});
Step to_rts(ibv_qp_type type, const LinkOptions& options = {});
Step to_state(ibv_qp_state state);

int modify(const Side& side, ibv_qp* qp, Step step);
// Takes the QP from RESET to RTS. 0 or the first error.
int bring_up(const Side& side, ibv_qp* qp, const Side& peer, std::uint32_t peer_qpn, const LinkOptions& options = {});
// The state that query_qp tells.
ibv_qp_state state_of(const Side& side, ibv_qp* qp);

}  // namespace verbscope::conformance
