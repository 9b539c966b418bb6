// Two devices, and an XRC domain of the second one. InfiniBand Architecture Specification 1.3, volume 1, annex A14;
// ibv_open_xrcd(3), ibv_create_srq_ex(3), ibv_open_qp(3).
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {

class Xrc : public virtual Rig {
 protected:
  ibv_xrcd* domain = nullptr;

  void SetUp() override {
    VERBSCOPE_NEEDS((b.device().attributes().device_cap_flags & IBV_DEVICE_XRC) != 0, "XRC");
    domain = open(b, -1, O_CREAT);
  }

  static ibv_xrcd* try_to_open(const Side& side, int file, int flags) {
    ibv_xrcd_init_attr attr{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = file, .oflags = flags};
    errno = 0;
    return ibv_open_xrcd(side.context(), &attr);
  }
  static ibv_xrcd* open(Side& side, int file, int flags) {
    ibv_xrcd* made = try_to_open(side, file, flags);
    return side.keep(made, "XRC domain", [made] { return ibv_close_xrcd(made); });
  }
  static ibv_srq_init_attr_ex queue_of(const Side& side, ibv_xrcd* xrcd, ibv_cq* cq, ibv_pd* pd) {
    ibv_srq_init_attr_ex attr{};
    attr.attr.max_wr = 16;
    attr.attr.max_sge = 2;
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = pd == nullptr ? side.pd() : pd;
    attr.xrcd = xrcd;
    attr.cq = cq == nullptr ? side.recv_cq() : cq;
    return attr;
  }
  static ibv_srq* make_queue(Side& side, ibv_xrcd* xrcd, ibv_cq* cq = nullptr, ibv_pd* pd = nullptr) {
    ibv_srq_init_attr_ex attr = queue_of(side, xrcd, cq, pd);
    return side.keep(ibv_create_srq_ex(side.context(), &attr), "XRC SRQ", &Provider::destroy_srq);
  }
  static std::uint32_t number_of(ibv_srq* srq) {
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(srq, &number), 0);
    return number;
  }
  static ibv_qp_init_attr_ex target_of(ibv_xrcd* xrcd) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd;
    return attr;
  }
  static ibv_qp* make_target(Side& side, ibv_xrcd* xrcd) {
    ibv_qp_init_attr_ex attr = target_of(xrcd);
    return side.keep(side.verbs().create_qp_ex(side.context(), &attr), "XRC target", &Provider::destroy_qp);
  }
  static ibv_qp* try_to_open_target(const Side& side, ibv_xrcd* xrcd, std::uint32_t number) {
    ibv_qp_open_attr attr{.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                          .qp_num = number,
                          .xrcd = xrcd,
                          .qp_context = nullptr,
                          .qp_type = IBV_QPT_XRC_RECV};
    errno = 0;
    return ibv_open_qp(side.context(), &attr);
  }
  // a sends, b receives.
  Pair link(const LinkOptions& options = {}) { return link_to(make_target(b, domain), options); }
  Pair link_to(ibv_qp* target, const LinkOptions& options = {}) {
    const Pair pair{a.make_qp(IBV_QPT_XRC_SEND), target};
    connect(pair, options);
    return pair;
  }
  Request to(ibv_srq* srq, const ibv_sge& data, std::uint64_t id = 1) {
    return {.sges = {data}, .id = id, .srqn = number_of(srq)};
  }
  static Request with_queue(Request request, ibv_srq* srq) {
    request.srqn = number_of(srq);
    return request;
  }
};

}  // namespace verbscope::conformance
