#include "verbs/qp_states.hpp"

#include <algorithm>
#include <array>

namespace verbscope {

namespace {

struct Rule {
  ibv_qp_type type;
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kAlternate = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kMigration = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kResponder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

constexpr std::array kRules = {
    Rule{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_QKEY, 0},
    Rule{IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_ACCESS_FLAGS, 0},
    Rule{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_ACCESS_FLAGS, 0},
    Rule{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, kInit | IBV_QP_QKEY},
    Rule{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, kInit | IBV_QP_ACCESS_FLAGS},
    Rule{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, kInit | IBV_QP_ACCESS_FLAGS},
    Rule{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    Rule{IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, kPath, kAlternate},
    Rule{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, kPath | kResponder, kAlternate},
    Rule{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    Rule{IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kMigration},
    Rule{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | kRetries, kMigration | IBV_QP_MIN_RNR_TIMER},
    Rule{IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    Rule{IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, kMigration},
    Rule{IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, kMigration | IBV_QP_MIN_RNR_TIMER},
};

}  // namespace

bool may_modify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int attributes = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return attributes == 0;
  const auto rule = std::ranges::find_if(
      kRules, [&](const Rule& entry) { return entry.type == type && entry.from == from && entry.to == to; });
  if (rule == kRules.end()) return false;
  return (attributes & rule->required) == rule->required && (attributes & ~(rule->required | rule->optional)) == 0;
}

}  // namespace verbscope
