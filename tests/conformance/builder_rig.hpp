// The fixture of the builder's tests: pairs whose a is posted to through ibv_wr_*.
#pragma once

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {

constexpr std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kReads =
    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

inline std::uint64_t operations_of(ibv_qp_type type) {
  return type == IBV_QPT_UD ? kSends : type == IBV_QPT_UC ? kSends | kWrites : kSends | kWrites | kReads;
}

// A pair whose a is posted to through the builder.
struct Built : Pair {
  ibv_qp_ex* ex = nullptr;
  ibv_ah* ah = nullptr;
};

class BuilderRig : public Rig {
 protected:
  Built build(ibv_qp_type type, const QpAsk& ask = {}) {
    Built built{{a.make_qp_ex(type, operations_of(type), ask), b.make_qp(type)}, nullptr, nullptr};
    connect(built);
    built.ex = a.verbs().qp_to_qp_ex(built.a);
    if (built.ex == nullptr) throw Error("a QP made for the builder has no builder interface");
    if (type == IBV_QPT_UD) built.ah = a.make_ah(b);
    return built;
  }
  // Begins a request: its id and flags.
  void next(const Built& built, std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    built.ex->wr_id = id;
    built.ex->wr_flags = flags;
  }
  void address(const Built& built) {
    if (built.ah != nullptr) ibv_wr_set_ud_addr(built.ex, built.ah, built.b->qp_num, kQkey);
  }
  // Flags of a signaled request with inline data.
  unsigned inline_flags() const {
    return IBV_SEND_SIGNALED | (deviates("builder-inline-needs-the-flag") ? unsigned{IBV_SEND_INLINE} : 0u);
  }
  void set_sge(const Built& built, std::size_t offset, std::uint32_t length) {
    ibv_wr_set_sge(built.ex, a.mr()->lkey, a.address(offset), length);
  }
};

}  // namespace verbscope::conformance
