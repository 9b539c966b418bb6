// A null device for tests of QPs, and one with a QP for tests of both interfaces to post.
#pragma once

#include <cstddef>
#include <vector>

#include "verbs/null/provider.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

inline constexpr int kDepth = 8;  // depth of a QP's queues

inline void bring_up(Qp& qp) {
  qp.to_init({});
  qp.to_rtr({});
  qp.to_rts({});
}

// A null device with the objects that a QP needs.
struct NullSide {
  explicit NullSide(int cq_entries = 2 * kDepth, const NullLimits& limits = {})
      : provider(limits), cq(device, cq_entries) {}

  // These options with the CQ of this side and queues of depth kDepth.
  QpOptions options(QpOptions requested = {}) const {
    requested.send_cq = requested.recv_cq = cq.get();
    requested.send_depth = requested.recv_depth = kDepth;
    return requested;
  }

  NullProvider provider;
  Device device{provider, "null0:1"};
  Pd pd{device};
  Cq cq;
};

// A rig whose QP is in RTS.
struct NullRig : NullSide {
  explicit NullRig(const QpOptions& requested = {}, int cq_entries = 2 * kDepth)
      : NullSide(cq_entries), qp(pd, options(requested)) {
    bring_up(qp);
  }

  std::vector<ibv_wc> poll(int max_count = 64) {
    std::vector<ibv_wc> completions(static_cast<std::size_t>(max_count));
    completions.resize(static_cast<std::size_t>(ibv_poll_cq(cq.get(), max_count, completions.data())));
    return completions;
  }

  Qp qp;
  Ah ah{pd, PathAddress{}};
};

}  // namespace verbscope
