// A null device for the tests of QPs, and one with a QP for the tests of both ways to post.
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

// A null device and what a QP needs there.
struct NullSide {
  explicit NullSide(int cq_entries = 2 * kDepth, const NullLimits& limits = {})
      : provider(limits), cq(device, cq_entries) {}

  // `asked`, on this side's CQ, both queues kDepth deep.
  QpOptions options(QpOptions asked = {}) const {
    asked.send_cq = asked.recv_cq = cq.get();
    asked.send_depth = asked.recv_depth = kDepth;
    return asked;
  }

  NullProvider provider;
  Device device{provider, "null0:1"};
  Pd pd{device};
  Cq cq;
};

// A rig whose QP is in RTS.
struct NullRig : NullSide {
  explicit NullRig(const QpOptions& asked = {}, int cq_entries = 2 * kDepth)
      : NullSide(cq_entries), qp(pd, options(asked)) {
    bring_up(qp);
  }

  std::vector<ibv_wc> poll(int most = 64) {
    std::vector<ibv_wc> completions(static_cast<std::size_t>(most));
    completions.resize(static_cast<std::size_t>(ibv_poll_cq(cq.get(), most, completions.data())));
    return completions;
  }

  Qp qp;
  Ah ah{pd, PathAddress{}};
};

}  // namespace verbscope
