#include "tests/conformance/side.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace verbscope::conformance {

Side::Side(int number)
    : provider_(fabric().provider(number)),
      device_(provider_, fabric().device()),
      gid_(choose_gid(device_, -1)),
      buffer_(Bytes(kMemory), false) {
  pd_ = make_pd();
  mr_ = make_mr(0, kMemory, kAllAccess);
  send_cq_ = make_cq(256);
  recv_cq_ = make_cq(256);
}

Side::~Side() {
  destroy_all();
}

void Side::destroy_all() {
  while (!kept_.empty()) {
    const Kept last = kept_.back();
    kept_.pop_back();
    EXPECT_EQ(last.destroy(), 0) << "destroying what the test left";
  }
}

int Side::destroy(void* object) {
  const auto found = std::ranges::find(kept_, object, &Kept::object);
  if (found == kept_.end()) return ENOENT;
  const int error = found->destroy();
  if (error == 0) kept_.erase(found);
  return error;
}

ibv_pd* Side::make_pd() {
  return keep(provider_.alloc_pd(context()), "PD", &Provider::dealloc_pd);
}

ibv_mr* Side::make_mr(std::size_t offset, std::size_t length, int access, ibv_pd* pd) {
  return keep(provider_.reg_mr(pd == nullptr ? pd_ : pd, memory(offset), length, access), "memory region",
              &Provider::dereg_mr);
}

ibv_comp_channel* Side::make_channel() {
  return keep(provider_.create_comp_channel(context()), "completion channel", &Provider::destroy_comp_channel);
}

ibv_cq* Side::make_cq(int entries, ibv_comp_channel* channel) {
  return keep(provider_.create_cq(context(), entries, channel, 0), "CQ", &Provider::destroy_cq);
}

ibv_srq* Side::make_srq(std::uint32_t depth, std::uint32_t sges) {
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = depth;
  attr.attr.max_sge = sges;
  return keep(provider_.create_srq(pd_, &attr), "SRQ", &Provider::destroy_srq);
}

ibv_qp* Side::make_qp(ibv_qp_type type, const QpAsk& ask) {
  ibv_qp_init_attr attr = init_attributes(*this, type, ask);
  return keep(provider_.create_qp(ask.pd == nullptr ? pd_ : ask.pd, &attr), "QP", &Provider::destroy_qp);
}

ibv_qp* Side::make_qp_ex(ibv_qp_type type, std::uint64_t operations, const QpAsk& ask) {
  ibv_qp_init_attr_ex attr = extended_attributes(*this, type, ask);
  attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = operations;
  return keep(provider_.create_qp_ex(context(), &attr), "QP with the builder interface", &Provider::destroy_qp);
}

ibv_ah* Side::make_ah(const Side& to, bool global) {
  ibv_ah_attr attr = path_between(*this, to, global);
  return keep(provider_.create_ah(pd_, &attr), "address handle", &Provider::destroy_ah);
}

ibv_qp_init_attr init_attributes(const Side& side, ibv_qp_type type, const QpAsk& ask) {
  ibv_qp_init_attr attr{};
  attr.send_cq = ask.send_cq == nullptr ? side.send_cq() : ask.send_cq;
  attr.recv_cq = ask.recv_cq == nullptr ? side.recv_cq() : ask.recv_cq;
  attr.srq = ask.srq;
  attr.cap = ask.cap;
  attr.qp_type = type;
  attr.sq_sig_all = ask.signal_all ? 1 : 0;
  return attr;
}

ibv_qp_init_attr_ex extended_attributes(const Side& side, ibv_qp_type type, const QpAsk& ask) {
  const ibv_qp_init_attr plain = init_attributes(side, type, ask);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = plain.send_cq;
  attr.recv_cq = plain.recv_cq;
  attr.srq = plain.srq;
  attr.cap = plain.cap;
  attr.qp_type = type;
  attr.sq_sig_all = plain.sq_sig_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = ask.pd == nullptr ? side.pd() : ask.pd;
  return attr;
}

ibv_ah_attr path_between(const Side& from, const Side& to, bool global) {
  ibv_ah_attr attr{};
  attr.port_num = from.device().port();
  attr.dlid = to.device().port_attributes().lid;
  if (global || from.gid().global) {
    attr.is_global = 1;
    attr.grh.dgid = to.gid().gid;
    attr.grh.sgid_index = static_cast<std::uint8_t>(from.gid().index);
    attr.grh.hop_limit = 64;
  }
  return attr;
}

}  // namespace verbscope::conformance
