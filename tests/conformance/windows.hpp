// A pair of sides with a region for memory windows. InfiniBand Architecture Specification 1.3, volume 1, section
// 10.6.7; ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3).
#pragma once

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {

inline constexpr unsigned kWindowAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class Windows : public virtual Rig {
 protected:
  static constexpr std::size_t kPlace = 8192;   // of the region in b's memory
  static constexpr std::size_t kLength = 8192;  // bytes
  static constexpr std::size_t kStart = 1024;   // of the window in the region
  static constexpr std::size_t kSize = 2048;    // bytes

  ibv_mr* mr = nullptr;

  Windows() { mr = b.make_mr(kPlace, kLength, kAllAccess | IBV_ACCESS_MW_BIND); }

  bool supported() const { return (b.device().attributes().device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0; }
  std::uint64_t window_address(std::size_t offset = 0) const { return b.address(kPlace + kStart + offset); }
  ibv_mw* make(ibv_mw_type type) {
    ibv_mw* mw = ibv_alloc_mw(b.pd(), type);
    return b.keep(mw, "memory window", [mw] { return ibv_dealloc_mw(mw); });
  }
  ibv_mw_bind_info range(unsigned access = kWindowAccess) const {
    return {.mr = mr, .addr = window_address(), .length = kSize, .mw_access_flags = access};
  }
  // The status of a WRITE of 8 bytes over a new pair by the key of a window.
  ibv_wc_status write(std::uint32_t key, std::uint64_t address) { return write(connect(IBV_QPT_RC), key, address); }
  ibv_wc_status write(const Pair& pair, std::uint32_t key, std::uint64_t address) {
    send(pair.a, {.opcode = IBV_WR_RDMA_WRITE, .sges = {a.sge(0, 8)}, .remote = address, .rkey = key});
    return await_one(a.send_cq(), "a WRITE by a window's key").status;
  }
  int post_one(ibv_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  // Of a window of type 2.
  int post_bind(ibv_qp* qp, ibv_mw* mw, std::uint32_t key, const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw = {.mw = mw, .rkey = key, .bind_info = info};
    return post_one(qp, wr);
  }
  int post_invalidate(ibv_qp* qp, std::uint32_t key) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    return post_one(qp, wr);
  }
  // A SEND from a that invalidates a key of its receiver. `srqn`: on XRC.
  int post_invalidating_send(ibv_qp* qp, std::uint32_t key, std::uint32_t bytes, std::uint32_t srqn = 0) {
    ibv_sge piece = a.sge(0, bytes);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.invalidate_rkey = key;
    wr.qp_type.xrc.remote_srqn = srqn;
    return post_one(qp, wr);
  }
};

}  // namespace verbscope::conformance
