#include "verbs/host_provider.hpp"

#include <cerrno>
#include <memory>
#include <span>

namespace verbscope {

namespace {

// The list of libibverbs; empty when there is none.
class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_), ibv_free_device_list) {}
  std::span<ibv_device*> devices() const {
    return list_ == nullptr ? std::span<ibv_device*>{}
                            : std::span<ibv_device*>(list_.get(), static_cast<std::size_t>(count_));
  }

 private:
  int count_ = 0;
  std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list_;
};

}  // namespace

std::vector<std::string> HostProvider::device_names() {
  std::vector<std::string> names;
  const DeviceList list;
  for (ibv_device* device : list.devices()) names.emplace_back(ibv_get_device_name(device));
  return names;
}

ibv_context* HostProvider::open(const std::string& name) {
  const DeviceList list;
  for (ibv_device* device : list.devices()) {
    if (name == ibv_get_device_name(device)) return ibv_open_device(device);
  }
  errno = ENODEV;
  return nullptr;
}

int HostProvider::close(ibv_context* context) {
  return ibv_close_device(context);
}

int HostProvider::query_device(ibv_context* context, ibv_device_attr* attr) {
  return ibv_query_device(context, attr);
}

int HostProvider::query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) {
  return ibv_query_port(context, port, attr);
}

int HostProvider::query_gid(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) {
  return ibv_query_gid_ex(context, port, index, entry, 0);
}

ibv_pd* HostProvider::alloc_pd(ibv_context* context) {
  return ibv_alloc_pd(context);
}

int HostProvider::dealloc_pd(ibv_pd* pd) {
  return ibv_dealloc_pd(pd);
}

ibv_mr* HostProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_reg_mr(pd, address, length, static_cast<unsigned>(access));
}

int HostProvider::dereg_mr(ibv_mr* mr) {
  return ibv_dereg_mr(mr);
}

ibv_cq* HostProvider::create_cq(ibv_context* context, int entries) {
  return ibv_create_cq(context, entries, nullptr, nullptr, 0);
}

int HostProvider::destroy_cq(ibv_cq* cq) {
  return ibv_destroy_cq(cq);
}

ibv_qp* HostProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return ibv_create_qp(pd, attr);
}

int HostProvider::modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return ibv_modify_qp(qp, attr, mask);
}

int HostProvider::query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  return ibv_query_qp(qp, attr, mask, init);
}

int HostProvider::destroy_qp(ibv_qp* qp) {
  return ibv_destroy_qp(qp);
}

ibv_ah* HostProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return ibv_create_ah(pd, attr);
}

int HostProvider::destroy_ah(ibv_ah* ah) {
  return ibv_destroy_ah(ah);
}

}  // namespace verbscope
