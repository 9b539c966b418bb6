// The control path of a verbs device, as one interface with three implementations: libibverbs (verbs/host_provider),
// the null device (verbs/null/provider) and a node of the simulated cluster (nic_sim/device/provider). Each member has
// the meaning, the arguments and the errors of the ibv_* function it is named after (pointer results: null and errno).
// The data path does not pass here: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq and ibv_req_notify_cq
// go through ibv_context::ops of the context that `open` returned, the ibv_wr_* builders through the ibv_qp_ex that
// `qp_to_qp_ex` yields, on every provider alike. Sleeping until a completion event is the Node's (verbs/node.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "wire/transport.hpp"
#include "wire/verb.hpp"

namespace verbscope {

class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  virtual std::vector<std::string> device_names() = 0;
  // `name` is one of device_names(). Null and errno (ENODEV: no such device) on failure.
  virtual ibv_context* open(const std::string& name) = 0;
  virtual int close(ibv_context* context) = 0;
  // Inline receive for QPs of the transport that are created from now on: payloads of up to `bytes` that messages by
  // `verb` bring come where the driver takes them from (wire/inline_receive.hpp); 0 switches it off. EOPNOTSUPP when
  // the device has none, EINVAL when `bytes` is beyond its limit.
  virtual int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) = 0;
  // The doorbell registers that contexts of device `name` share among their QPs, of those that are opened from now on:
  // `total`, or 0, as many as the driver takes by itself. EOPNOTSUPP when the driver leaves no choice.
  virtual int set_doorbell_registers(const std::string& name, std::uint32_t total) = 0;
  virtual int query_device(ibv_context* context, ibv_device_attr* attr) = 0;
  virtual int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) = 0;
  // One entry of the GID table with its type (ibv_query_gid_ex); ENODATA for an empty entry.
  virtual int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) = 0;

  virtual ibv_pd* alloc_pd(ibv_context* context) = 0;
  virtual int dealloc_pd(ibv_pd* pd) = 0;
  // A thread domain has a doorbell register of its own; QPs that are created in a parent domain of it use that one, and
  // are used by one thread at a time.
  virtual ibv_td* alloc_td(ibv_context* context) = 0;
  virtual int dealloc_td(ibv_td* td) = 0;
  virtual ibv_pd* alloc_parent_domain(ibv_pd* pd, ibv_td* td) = 0;  // given back by dealloc_pd
  virtual ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) = 0;
  virtual int dereg_mr(ibv_mr* mr) = 0;
  virtual ibv_comp_channel* create_comp_channel(ibv_context* context) = 0;
  virtual int destroy_comp_channel(ibv_comp_channel* channel) = 0;
  // `channel` may be null: no events then.
  virtual ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) = 0;
  virtual int destroy_cq(ibv_cq* cq) = 0;
  virtual ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) = 0;
  virtual int query_srq(ibv_srq* srq, ibv_srq_attr* attr) = 0;
  virtual int destroy_srq(ibv_srq* srq) = 0;
  virtual ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) = 0;
  // ibv_create_qp_ex. comp_mask may have IBV_QP_INIT_ATTR_PD (must) and IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.
  virtual ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) = 0;
  // The builder interface of a QP made by create_qp_ex with send operations; null otherwise.
  virtual ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) = 0;
  virtual int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) = 0;
  virtual int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) = 0;
  virtual int destroy_qp(ibv_qp* qp) = 0;
  virtual ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) = 0;
  virtual int destroy_ah(ibv_ah* ah) = 0;
};

}  // namespace verbscope
