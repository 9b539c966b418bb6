#include "verbs/qp_rules.hpp"

#include <algorithm>
#include <array>

namespace verbscope {

namespace {

// The attributes that a transition requires, and those that it allows.
struct Attributes {
  int required;
  int optional;
};

struct Transitions {
  ibv_qp_type type;
  Attributes reset_to_init;
  Attributes init_to_init;
  Attributes init_to_rtr;
  Attributes rtr_to_rts;
  Attributes rts_to_rts;
};

constexpr int kPath = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kAlternate = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kMigration = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kResponder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kDatagram = IBV_QP_CUR_STATE | IBV_QP_QKEY;

constexpr std::array kTransitions = {
    Transitions{.type = IBV_QPT_RC,
                .reset_to_init = {.required = kInit | IBV_QP_ACCESS_FLAGS, .optional = 0},
                .init_to_init = {.required = 0, .optional = kInit | IBV_QP_ACCESS_FLAGS},
                .init_to_rtr = {.required = kPath | kResponder, .optional = kAlternate},
                .rtr_to_rts = {.required = IBV_QP_SQ_PSN | kRetries, .optional = kMigration | IBV_QP_MIN_RNR_TIMER},
                .rts_to_rts = {.required = 0, .optional = kMigration | IBV_QP_MIN_RNR_TIMER}},
    Transitions{.type = IBV_QPT_UC,
                .reset_to_init = {.required = kInit | IBV_QP_ACCESS_FLAGS, .optional = 0},
                .init_to_init = {.required = 0, .optional = kInit | IBV_QP_ACCESS_FLAGS},
                .init_to_rtr = {.required = kPath, .optional = kAlternate},
                .rtr_to_rts = {.required = IBV_QP_SQ_PSN, .optional = kMigration},
                .rts_to_rts = {.required = 0, .optional = kMigration}},
    Transitions{.type = IBV_QPT_UD,
                .reset_to_init = {.required = kInit | IBV_QP_QKEY, .optional = 0},
                .init_to_init = {.required = 0, .optional = kInit | IBV_QP_QKEY},
                .init_to_rtr = {.required = 0, .optional = IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
                .rtr_to_rts = {.required = IBV_QP_SQ_PSN, .optional = kDatagram},
                .rts_to_rts = {.required = 0, .optional = kDatagram}},
    Transitions{.type = IBV_QPT_XRC_SEND,
                .reset_to_init = {.required = kInit | IBV_QP_ACCESS_FLAGS, .optional = 0},
                .init_to_init = {.required = 0, .optional = kInit | IBV_QP_ACCESS_FLAGS},
                .init_to_rtr = {.required = kPath, .optional = kAlternate},
                .rtr_to_rts = {.required = IBV_QP_SQ_PSN | kRetries, .optional = kMigration},
                .rts_to_rts = {.required = 0, .optional = kMigration}},
    Transitions{
        .type = IBV_QPT_XRC_RECV,
        .reset_to_init = {.required = kInit | IBV_QP_ACCESS_FLAGS, .optional = 0},
        .init_to_init = {.required = 0, .optional = kInit | IBV_QP_ACCESS_FLAGS},
        .init_to_rtr = {.required = kPath | kResponder, .optional = kAlternate},
        .rtr_to_rts = {.required = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT, .optional = kMigration | IBV_QP_MIN_RNR_TIMER},
        .rts_to_rts = {.required = 0, .optional = kMigration | IBV_QP_MIN_RNR_TIMER}},
};
static_assert(std::ranges::all_of(kQpTypes, [](const QpTypeOfTransport& row) {
  return std::ranges::find(kTransitions, row.type, &Transitions::type) != kTransitions.end();
}));

struct Step {
  ibv_qp_state from;
  ibv_qp_state to;
  Attributes Transitions::*attributes;
};

constexpr std::array kSteps = {
    Step{IBV_QPS_RESET, IBV_QPS_INIT, &Transitions::reset_to_init},
    Step{IBV_QPS_INIT, IBV_QPS_INIT, &Transitions::init_to_init},
    Step{IBV_QPS_INIT, IBV_QPS_RTR, &Transitions::init_to_rtr},
    Step{IBV_QPS_RTR, IBV_QPS_RTS, &Transitions::rtr_to_rts},
    Step{IBV_QPS_RTS, IBV_QPS_RTS, &Transitions::rts_to_rts},
};

// Attributes of the other side of XRC, which programs set on QPs of both types: the kernel ignores them
// (drivers/infiniband/core/uverbs_cmd.c, modify_qp_mask).
constexpr int ignored_attributes(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return kResponder;
    case IBV_QPT_XRC_RECV:
      return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    default:
      return 0;
  }
}

}  // namespace

bool may_modify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int given = mask & ~(IBV_QP_STATE | ignored_attributes(type));
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return given == 0;
  const auto* const step =
      std::ranges::find_if(kSteps, [&](const Step& entry) { return entry.from == from && entry.to == to; });
  const auto* const row = std::ranges::find(kTransitions, type, &Transitions::type);
  if (step == kSteps.end() || row == kTransitions.end()) return false;
  const Attributes& rule = row->*step->attributes;
  return (given & rule.required) == rule.required && (given & ~(rule.required | rule.optional)) == 0;
}

}  // namespace verbscope
