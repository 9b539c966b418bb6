// The control path of a simulated node: Provider over its Nic (QPs: provider_qp.cpp). Calls take no virtual time,
// except reg_mr and resize_cq. Objects are checked as in the kernel: capabilities, state transitions, and no parent is
// freed before its children.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_sim/nic/nic.hpp"
#include "verbs/provider.hpp"
#include "verbs/request_builder.hpp"

namespace verbscope::sim {

// Limits of the simulated adapter that the profile does not set, as generous as those of adapters. More of them are in
// queries.cpp.
inline constexpr int kMaxQueueDepth = 65536;  // ConnectX-5 (eRPC, NSDI 2019, section 4.1.1)
inline constexpr int kMaxSge = 16;
inline constexpr int kMaxCqEntries = 1 << 22;
inline constexpr int kMaxQps = 1 << 16;
inline constexpr int kPkeys = 1;          // of a port: the default partition
inline constexpr int kPageBits = 12;      // 4 KB
inline constexpr int kHugePageBits = 21;  // 2 MB

class SimProvider;

// The device of all contexts of a node, from which libibverbs' inline calls reach the control path.
struct SimDevice : ibv_device {
  SimProvider& control;
};

class SimProvider : public Provider {
 public:
  explicit SimProvider(Nic& nic);

  const Profile& profile() const { return nic_.profile(); }

  // Contexts and completion channels that are made from now on have file descriptors, which are readable while an event
  // waits.
  void make_pollable() { pollable_ = true; }

  std::vector<std::string> device_names() override;
  ibv_context* open(const std::string& name) override;
  int close(ibv_context* context) override;
  int get_async_event(ibv_context* context, ibv_async_event* event) override;
  void ack_async_event(ibv_async_event* event) override;
  int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) override;
  int set_multi_packet_recv(ibv_context* context, std::uint32_t recvs) override;
  int set_doorbell_registers(const std::string& name, std::uint32_t total) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override;
  int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                      std::size_t attr_size);
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
  int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
  int dealloc_mw(ibv_mw* mw);
  ibv_comp_channel* create_comp_channel(ibv_context* context) override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) override;
  ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
  int resize_cq(ibv_cq* cq, int entries) override;
  int destroy_cq(ibv_cq* cq) override;
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) override;
  ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
  int close_xrcd(ibv_xrcd* xrcd);
  ibv_srq* create_srq_ex(ibv_srq_init_attr_ex* attr);
  int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) override;
  int query_srq(ibv_srq* srq, ibv_srq_attr* attr) override;
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);
  ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override;
  int query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) override;
  int destroy_qp(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override;
  int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) override;
  int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) override;

  // Charges the running thread for a command to the adapter, which goes on with its work meanwhile.
  void await_command();

 private:
  // The target of an address handle, and the header that names it.
  struct Path {
    std::uint32_t node;  // kEveryNode: the group
    GlobalHeader global;
    MulticastGroup group;
  };

  // None if the attributes name neither a node nor a multicast group.
  std::optional<Path> resolve(const ibv_ah_attr& attr) const;
  // Charges the running thread for registering memory, or for another command if `length` is 0.
  void spend_on_registration(std::uint64_t begin, std::size_t length);
  // Drops the asynchronous events of an object that is destroyed.
  static void forget_events(ibv_context& context, const void* object);
  bool acceptable(const ibv_qp_attr& attr, int mask) const;
  // A QP in RESET without queues. `pd`: null for an XRC target.
  SimQp& add_qp(const ibv_qp_init_attr& attr, Transport transport, ibv_context* context, ibv_pd* pd);
  void destroy(SimQp& qp);
  // QPs of IBV_QPT_XRC_RECV. `handle`: that of create_qp_ex or of open_qp; the QP ends with its last one.
  ibv_qp* create_xrc_target(SimXrcd& xrcd, void* qp_context);
  int close_xrc_target(SimQp& handle);

  Nic& nic_;
  SimDevice device_;
  std::uint32_t doorbell_registers_ = 0;  // from set_doorbell_registers()
  bool pollable_ = false;
  // Kept until the simulation ends, because events may refer to destroyed ones.
  std::vector<std::unique_ptr<SimContext>> contexts_;
  std::vector<std::unique_ptr<SimChannel>> channels_;
  std::vector<std::unique_ptr<SimQp>> qps_;
  std::vector<std::unique_ptr<RequestBuilder>> builders_;
  std::vector<std::unique_ptr<SimSrq>> srqs_;
  std::vector<std::unique_ptr<XrcDomain>> xrc_domains_;
  std::vector<std::unique_ptr<SimCq>> retired_cqs_;
};

}  // namespace verbscope::sim
