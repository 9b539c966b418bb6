// The null device "null0": its queues accept everything at once, so that it measures the load generator itself. It
// enforces the rules of a device (QP states, queue depths, SGE and inline limits, CQ size, children before parents). No
// byte moves, no packet leaves, and every signaled request and every RECV is complete when the post returns; RECVs may
// also wait for null_deliver(). It has no completion events, shared receive queues or inline receive. Threads can share
// it like a real device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "verbs/provider.hpp"

namespace verbscope {

// Limits that create_* and post_* enforce.
struct NullLimits {
  int max_qp_wr = 16384;
  int max_sge = 16;
  int max_cqe = 4 << 20;
  int max_inline = 1024;  // bytes
  int max_qp = 1 << 16;
};

class NullProvider : public Provider {
 public:
  explicit NullProvider(const NullLimits& limits = {});
  ~NullProvider() override;

  std::vector<std::string> device_names() override;
  ibv_context* open(const std::string& name) override;
  int close(ibv_context* context) override;  // EBUSY while a PD or CQ lives
  int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) override;
  int set_doorbell_registers(const std::string& name, std::uint32_t total) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override;
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override;
  int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) override;
  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;  // EBUSY while an MR, QP or AH lives
  ibv_td* alloc_td(ibv_context* context) override;
  int dealloc_td(ibv_td* td) override;
  ibv_pd* alloc_parent_domain(ibv_pd* pd, ibv_td* td) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  ibv_comp_channel* create_comp_channel(ibv_context* context) override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) override;
  int destroy_cq(ibv_cq* cq) override;  // EBUSY while a QP uses it
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) override;
  int query_srq(ibv_srq* srq, ibv_srq_attr* attr) override;
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override;
  int destroy_qp(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For programs that need the bytes of a peer: they play it themselves.

// From now on a RECV of this UD QP is complete when null_deliver() fills it. Call before the first RECV is posted. Each
// RECV has one SGE.
void null_hold_recvs(ibv_qp* qp);
// Fills the oldest RECV of the QP with a GRH of any content and `packet`, and completes it. Allocates nothing. False:
// the receive queue is empty, the RECV is too short, or the completion queue is full.
bool null_deliver(ibv_qp* qp, std::span<const std::byte> packet);

}  // namespace verbscope
