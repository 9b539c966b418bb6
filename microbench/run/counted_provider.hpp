// A provider that reports the control path of a device to drivers_patch/, which then counts the posts and polls of a
// benchmark. Simulated and null devices have no libibverbs that a preloaded library could wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drivers_patch/summary.hpp"
#include "verbs/provider.hpp"
#include "wire/doorbell_registers.hpp"

namespace verbscope {

// True if --counter_sources names the source driver.
bool asks_for_driver(const std::string& counter_sources);

// Each function calls that of the provider.
class CountedProvider final : public Provider {
 public:
  // `provider` must outlive it. `wire`: the facts from which costs are computed; the first device of the process sets
  // them for all. None: the usual facts of the device's family. `real_time`: the device runs in the time of this
  // machine, so the time from post to completion is sampled.
  CountedProvider(Provider& provider, const std::optional<driver::WireFacts>& wire, bool real_time)
      : provider_(provider), wire_(wire), real_time_(real_time) {}

  // The counts of this provider's contexts, from a summary of the process.
  driver::Sums sums(const driver::Summary& summary) const;

  std::vector<std::string> device_names() override { return provider_.device_names(); }
  ibv_context* open(const std::string& name) override;
  int close(ibv_context* context) override;
  int set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) override {
    return provider_.set_inline_recv(context, transport, verb, bytes);
  }
  int set_doorbell_registers(const std::string& name, std::uint32_t total) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override {
    return provider_.query_device(context, attr);
  }
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override {
    return provider_.query_port(context, port, attr);
  }
  int query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) override {
    return provider_.query_gid(context, port, index, entry);
  }
  ibv_pd* alloc_pd(ibv_context* context) override { return provider_.alloc_pd(context); }
  int dealloc_pd(ibv_pd* pd) override { return provider_.dealloc_pd(pd); }
  ibv_td* alloc_td(ibv_context* context) override { return provider_.alloc_td(context); }
  int dealloc_td(ibv_td* td) override { return provider_.dealloc_td(td); }
  ibv_pd* alloc_parent_domain(ibv_pd* pd, ibv_td* td) override { return provider_.alloc_parent_domain(pd, td); }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) override;
  int dereg_mr(ibv_mr* mr) override;
  ibv_comp_channel* create_comp_channel(ibv_context* context) override {
    return provider_.create_comp_channel(context);
  }
  int destroy_comp_channel(ibv_comp_channel* channel) override { return provider_.destroy_comp_channel(channel); }
  ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) override;
  int destroy_cq(ibv_cq* cq) override;
  ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) override;
  int query_srq(ibv_srq* srq, ibv_srq_attr* attr) override { return provider_.query_srq(srq, attr); }
  int destroy_srq(ibv_srq* srq) override;
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp_ex* qp_to_qp_ex(ibv_qp* qp) override { return provider_.qp_to_qp_ex(qp); }
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override {
    return provider_.query_qp(qp, attr, mask, init);
  }
  int destroy_qp(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override { return provider_.destroy_ah(ah); }

 private:
  ibv_qp* attached(ibv_qp* qp, const ibv_qp_cap& asked, bool signal_all);

  Provider& provider_;
  std::optional<driver::WireFacts> wire_;
  bool real_time_;
  std::optional<DoorbellRegisters> registers_;
  std::vector<std::uint32_t> contexts_;  // numbers in the summary
};

}  // namespace verbscope
