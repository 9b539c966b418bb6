#include "nic_sim/qp_state.hpp"

#include <array>

namespace verbscope::sim {
namespace {

struct Transition {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;
};

constexpr int kInitConnected = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kInitDatagram = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kRtrConnected = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRtrReliable = kRtrConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRts = IBV_QP_STATE | IBV_QP_SQ_PSN;
constexpr int kRtsReliable = kRts | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

constexpr std::array<Transition, 12> kTransitions{{
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, kInitConnected},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, kRtrReliable},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, kRtsReliable},
    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, kInitConnected},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, kRtrConnected},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, kRts},
    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, kInitDatagram},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_STATE},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, kRts},
}};

}  // namespace

bool transition_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;  // from any state
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return true;
  for (const Transition& transition : kTransitions) {
    if (transition.type == type && transition.from == from && transition.to == to) {
      return (mask & transition.needed) == transition.needed;
    }
  }
  return false;
}

}  // namespace verbscope::sim
