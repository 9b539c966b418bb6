// libibverbs's codes for the transports and verbs of wire/.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "common/enum_table.hpp"
#include "wire/transport.hpp"
#include "wire/verb.hpp"

namespace verbscope {

struct QpTypeOfTransport {
  Transport value;
  ibv_qp_type type;
};

inline constexpr EnumTable<Transport, QpTypeOfTransport> kQpTypes{{
    {.value = Transport::rc, .type = IBV_QPT_RC},
    {.value = Transport::uc, .type = IBV_QPT_UC},
    {.value = Transport::ud, .type = IBV_QPT_UD},
    {.value = Transport::xrc, .type = IBV_QPT_XRC_SEND},  // the other side's is IBV_QPT_XRC_RECV
}};
static_assert(in_order(kQpTypes));

constexpr ibv_qp_type qp_type(Transport transport) {
  return row_of(kQpTypes, transport).type;
}
// None for QP types that verbscope does not support.
constexpr std::optional<Transport> transport_of(ibv_qp_type type) {
  if (type == IBV_QPT_XRC_RECV) return Transport::xrc;
  const auto* const row = std::ranges::find(kQpTypes, type, &QpTypeOfTransport::type);
  return row == kQpTypes.end() ? std::nullopt : std::optional(row->value);
}

struct VerbCodes {
  Verb value;
  ibv_wc_opcode completion;                     // at the side that posts it
  std::optional<ibv_wr_opcode> request;         // none for RECV, which has its own call
  std::optional<ibv_wr_opcode> with_immediate;  // none if the verb has no immediate
  std::uint64_t builder;                        // IBV_QP_EX_WITH_* of the calls of the ibv_wr_* interface
};

inline constexpr EnumTable<Verb, VerbCodes> kVerbCodes{{
    {.value = Verb::send,
     .completion = IBV_WC_SEND,
     .request = IBV_WR_SEND,
     .with_immediate = IBV_WR_SEND_WITH_IMM,
     .builder = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM},
    {.value = Verb::write,
     .completion = IBV_WC_RDMA_WRITE,
     .request = IBV_WR_RDMA_WRITE,
     .with_immediate = IBV_WR_RDMA_WRITE_WITH_IMM,
     .builder = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM},
    {.value = Verb::read,
     .completion = IBV_WC_RDMA_READ,
     .request = IBV_WR_RDMA_READ,
     .with_immediate = {},
     .builder = IBV_QP_EX_WITH_RDMA_READ},
    {.value = Verb::compare_swap,
     .completion = IBV_WC_COMP_SWAP,
     .request = IBV_WR_ATOMIC_CMP_AND_SWP,
     .with_immediate = {},
     .builder = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP},
    {.value = Verb::fetch_add,
     .completion = IBV_WC_FETCH_ADD,
     .request = IBV_WR_ATOMIC_FETCH_AND_ADD,
     .with_immediate = {},
     .builder = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD},
    {.value = Verb::recv, .completion = IBV_WC_RECV, .request = {}, .with_immediate = {}, .builder = 0},
}};
static_assert(in_order(kVerbCodes));

constexpr ibv_wc_opcode completion_opcode(Verb verb) {
  return row_of(kVerbCodes, verb).completion;
}
// Preconditions: `verb` is posted to a send queue and, if `immediate`, has an immediate.
constexpr ibv_wr_opcode request_opcode(Verb verb, bool immediate) {
  const VerbCodes& codes = row_of(kVerbCodes, verb);
  return immediate ? *codes.with_immediate : *codes.request;
}

// The verb of each opcode. It contains opcodes 0 to 6; verbscope does not support the verbs of larger ones.
inline constexpr auto kVerbOfOpcode = [] {
  std::array<std::optional<Verb>, IBV_WR_ATOMIC_FETCH_AND_ADD + 1> verbs;
  for (const VerbCodes& codes : kVerbCodes) {
    if (codes.request) verbs.at(*codes.request) = codes.value;
    if (codes.with_immediate) verbs.at(*codes.with_immediate) = codes.value;
  }
  return verbs;
}();

// None for opcodes that verbscope does not support.
constexpr std::optional<Verb> verb_of(ibv_wr_opcode opcode) {
  return opcode < kVerbOfOpcode.size() ? kVerbOfOpcode[opcode] : std::nullopt;
}

}  // namespace verbscope
