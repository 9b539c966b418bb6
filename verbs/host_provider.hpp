// The devices of this machine, through libibverbs.
#pragma once

#include "verbs/provider.hpp"

namespace verbscope {

class HostProvider final : public Provider {
 public:
  // Empty if there is none or the kernel has no RDMA support.
  std::vector<std::string> device_names() override;
  ibv_context* open(const std::string& name) override;
  int close(ibv_context* context) override;
  int get_async_event(ibv_context* context, ibv_async_event* event) override;
  void ack_async_event(ibv_async_event* event) override;
  int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) override;
  int set_doorbell_registers(const std::string& name, std::uint32_t total) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override;
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override;
  int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) override;
  int query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) override;
  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_td* alloc_td(ibv_context* context) override;
  int dealloc_td(ibv_td* td) override;
  ibv_pd* alloc_parent_domain(ibv_pd* pd, ibv_td* td) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override;
  ibv_mr* reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) override;
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                        int access) override;
  int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  ibv_comp_channel* create_comp_channel(ibv_context* context) override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) override;
  int resize_cq(ibv_cq* cq, int entries) override;
  int destroy_cq(ibv_cq* cq) override;
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) override;
  int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override;
  int query_srq(ibv_srq* srq, ibv_srq_attr* attr) override;
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override;
  int query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) override;
  int destroy_qp(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override;
  int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) override;
  int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) override;
};

}  // namespace verbscope
