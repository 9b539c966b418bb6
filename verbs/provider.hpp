// The control path of a verbs device: one interface with three implementations, libibverbs (verbs/host_provider), the
// null device (verbs/null/provider) and a node of the simulated cluster (nic_sim/device/provider). Each member has the
// meaning, arguments and errors of the ibv_* function of the same name (pointer results: null and errno).
//
// Calls that few devices have fail with EOPNOTSUPP where an implementation leaves them out. Calls that libibverbs
// inlines through the tables of an opened context (ibv_query_device_ex, ibv_create_cq_ex, ...) need no member.
//
// The data path does not use this interface: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq and
// ibv_req_notify_cq go through ibv_context::ops of the opened context, and the ibv_wr_* builders through the ibv_qp_ex
// that `qp_to_qp_ex` returns. Node (machine/node.hpp) waits for completion events.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/transport.hpp"
#include "wire/verb.hpp"

namespace verbscope {

// Is notified of the objects that verbs/resources.hpp creates, changes and destroys.
class ProviderObserver {
 public:
  virtual ~ProviderObserver() = default;
  // Contexts opened from now on share `total` doorbell registers; 0: the driver's default.
  virtual void set_doorbell_registers(std::uint32_t total) = 0;
  virtual void created(ibv_context& context) = 0;
  virtual void created(ibv_mr& mr, const ibv_context& context, void* address, std::size_t length) = 0;
  virtual void created(ibv_cq& cq) = 0;
  virtual void created(ibv_srq& srq, std::uint32_t max_sge) = 0;
  // `builder`: as Provider::qp_to_qp_ex. `asked`: the requested capabilities.
  virtual void created(ibv_qp& qp, ibv_qp_ex* builder, const ibv_qp_cap& asked, bool signal_all) = 0;
  virtual void created(ibv_ah& ah, const ibv_context& context) = 0;
  virtual void modified(ibv_qp& qp, const ibv_qp_attr& attr, int mask) = 0;
  // Before the object is destroyed.
  virtual void destroying(ibv_context& context) = 0;
  virtual void destroying(ibv_mr& mr) = 0;
  virtual void destroying(ibv_cq& cq) = 0;
  virtual void destroying(ibv_srq& srq) = 0;
  virtual void destroying(ibv_qp& qp) = 0;
  template <class Other>
  void destroying(Other&) {}
};

class Provider {
 public:
  Provider() = default;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;
  virtual ~Provider() = default;

  // Null: no observer. It must outlive the objects of the provider.
  void set_observer(ProviderObserver* observer) { observer_ = observer; }
  ProviderObserver* observer() const { return observer_; }

  virtual std::vector<std::string> device_names() = 0;
  // `name` must be one of device_names(). Null and errno on failure (ENODEV: no such device).
  virtual ibv_context* open(const std::string& name) = 0;
  virtual int close(ibv_context* context) = 0;
  // Waits for the next asynchronous event, unless ibv_context::async_fd has O_NONBLOCK (-1 and EAGAIN).
  virtual int get_async_event(ibv_context* /*context*/, ibv_async_event* /*event*/) {
    errno = EOPNOTSUPP;
    return -1;
  }
  virtual void ack_async_event(ibv_async_event* /*event*/) {}
  // Inline receive for QPs of the transport created from now on: payloads of up to `bytes`, in messages by `verb`,
  // arrive where the driver copies them from (wire/wqe.hpp). 0 disables it. EOPNOTSUPP if the device has
  // none, EINVAL if `bytes` exceeds its limit.
  virtual int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) = 0;
  // Multi-packet receive queues for UD QPs created from now on: this many consecutive RECVs, with buffers one behind
  // the other, share a descriptor, which is posted and fetched as one. 1: none do. EOPNOTSUPP if the device has no such
  // queues; with libibverbs they exist for raw Ethernet only.
  virtual int set_multi_packet_recv(ibv_context* /*context*/, std::uint32_t recvs) {
    return recvs == 1 ? 0 : EOPNOTSUPP;
  }
  // The number of doorbell registers that a context of device `name`, opened from now on, shares among its QPs. 0: the
  // driver's default. EOPNOTSUPP if the driver has no such setting.
  virtual int set_doorbell_registers(const std::string& name, std::uint32_t total) = 0;
  virtual int query_device(ibv_context* context, ibv_device_attr* attr) = 0;
  virtual int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) = 0;
  // One entry of the GID table with its type (ibv_query_gid_ex); ENODATA for an empty entry.
  virtual int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) = 0;
  virtual int query_pkey(ibv_context* /*context*/, std::uint8_t /*port*/, int /*index*/, __be16* /*pkey*/) {
    errno = EOPNOTSUPP;
    return -1;
  }

  virtual ibv_pd* alloc_pd(ibv_context* context) = 0;
  virtual int dealloc_pd(ibv_pd* pd) = 0;
  // A thread domain has its own doorbell register. QPs created in a parent domain with it use that register, and only
  // one thread at a time may use them.
  virtual ibv_td* alloc_td(ibv_context* context) = 0;
  virtual int dealloc_td(ibv_td* td) = 0;
  virtual ibv_pd* alloc_parent_domain(ibv_pd* pd, ibv_td* td) = 0;  // freed by dealloc_pd
  virtual ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) = 0;
  // Requests name the first byte of the region by the address `iova`.
  virtual ibv_mr* reg_mr_iova(ibv_pd* /*pd*/, void* /*address*/, std::size_t /*length*/, std::uint64_t /*iova*/,
                              int /*access*/) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  virtual ibv_mr* reg_dmabuf_mr(ibv_pd* /*pd*/, std::uint64_t /*offset*/, std::size_t /*length*/,
                                std::uint64_t /*iova*/, int /*fd*/, int /*access*/) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  // An ibv_rereg_mr_err_code, and errno.
  virtual int rereg_mr(ibv_mr* /*mr*/, int /*flags*/, ibv_pd* /*pd*/, void* /*address*/, std::size_t /*length*/,
                       int /*access*/) {
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_CMD;
  }
  virtual int dereg_mr(ibv_mr* mr) = 0;
  virtual ibv_comp_channel* create_comp_channel(ibv_context* context) = 0;
  virtual int destroy_comp_channel(ibv_comp_channel* channel) = 0;
  // `channel` may be null: no events. `vector`: 0 to ibv_context::num_comp_vectors - 1.
  virtual ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) = 0;
  virtual int resize_cq(ibv_cq* /*cq*/, int /*entries*/) { return EOPNOTSUPP; }
  virtual int destroy_cq(ibv_cq* cq) = 0;
  virtual ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) = 0;
  virtual int modify_srq(ibv_srq* /*srq*/, ibv_srq_attr* /*attr*/, int /*mask*/) { return EOPNOTSUPP; }
  virtual int query_srq(ibv_srq* srq, ibv_srq_attr* attr) = 0;
  virtual int destroy_srq(ibv_srq* srq) = 0;
  virtual ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) = 0;
  // ibv_create_qp_ex. comp_mask must have IBV_QP_INIT_ATTR_PD (IBV_QP_INIT_ATTR_XRCD for IBV_QPT_XRC_RECV) and may have
  // IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.
  virtual ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) = 0;
  // The builder of a QP that create_qp_ex created with send operations; else null.
  virtual ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) = 0;
  virtual int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) = 0;
  virtual int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) = 0;
  // 1: the bytes of each such request appear in order; 0: unknown.
  virtual int query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*opcode*/, std::uint32_t /*flags*/) { return 0; }
  virtual int destroy_qp(ibv_qp* qp) = 0;
  virtual ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) = 0;
  virtual int destroy_ah(ibv_ah* ah) = 0;
  // UD. While it is attached to a group, a QP cannot be destroyed (EBUSY).
  virtual int attach_mcast(ibv_qp* /*qp*/, const ibv_gid* /*gid*/, std::uint16_t /*lid*/) { return EOPNOTSUPP; }
  virtual int detach_mcast(ibv_qp* /*qp*/, const ibv_gid* /*gid*/, std::uint16_t /*lid*/) { return EOPNOTSUPP; }

 private:
  ProviderObserver* observer_ = nullptr;
};

}  // namespace verbscope
