#include "tests/conformance/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace verbscope::conformance {

Step to_init(const Side& side, ibv_qp_type type, const LinkOptions& options) {
  Step step;
  step.attr.qp_state = IBV_QPS_INIT;
  step.attr.port_num = side.device().port();
  step.attr.qkey = kQkey;
  step.attr.qp_access_flags = options.access;
  if (type == IBV_QPT_UC) step.attr.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
  step.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  step.mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return step;
}

Step to_rtr(const Side& side, ibv_qp_type type, const Side& peer, std::uint32_t peer_qpn, const LinkOptions& options) {
  Step step;
  step.attr.qp_state = IBV_QPS_RTR;
  step.mask = IBV_QP_STATE;
  if (type == IBV_QPT_UD) return step;
  step.attr.ah_attr = path_between(side, peer, options.global);
  step.attr.path_mtu = std::min(side.device().port_attributes().active_mtu, peer.device().port_attributes().active_mtu);
  step.attr.dest_qp_num = peer_qpn;
  step.attr.rq_psn = options.psn;
  step.mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV) {
    step.attr.max_dest_rd_atomic = options.max_rd_atomic;
    step.attr.min_rnr_timer = options.min_rnr_timer;
    step.mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  return step;
}

Step to_rts(ibv_qp_type type, const LinkOptions& options) {
  Step step;
  step.attr.qp_state = IBV_QPS_RTS;
  step.attr.sq_psn = options.psn;
  step.mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_UC || type == IBV_QPT_UD) return step;
  step.attr.timeout = options.timeout;
  step.mask |= IBV_QP_TIMEOUT;
  if (type == IBV_QPT_XRC_RECV) return step;
  step.attr.retry_cnt = options.retries;
  step.attr.rnr_retry = options.rnr_retries;
  step.attr.max_rd_atomic = options.max_rd_atomic;
  step.mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return step;
}

Step to_state(ibv_qp_state state) {
  Step step;
  step.attr.qp_state = state;
  step.mask = IBV_QP_STATE;
  return step;
}

int modify(const Side& side, ibv_qp* qp, Step step) {
  return side.verbs().modify_qp(qp, &step.attr, step.mask);
}

int bring_up(const Side& side, ibv_qp* qp, const Side& peer, std::uint32_t peer_qpn, const LinkOptions& options) {
  if (const int error = modify(side, qp, to_init(side, qp->qp_type, options))) return error;
  if (const int error = modify(side, qp, to_rtr(side, qp->qp_type, peer, peer_qpn, options))) return error;
  return modify(side, qp, to_rts(qp->qp_type, options));
}

ibv_qp_state state_of(const Side& side, ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(side.verbs().query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

}  // namespace verbscope::conformance
