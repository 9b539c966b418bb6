#include "verbs/host_provider.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

// The device list of libibverbs; empty if there is none.
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

// True if the mlx5 driver runs the device. The driver of the bus device is not sufficient, because an emulated device
// (rxe) on the Ethernet port of an adapter has the same bus device.
bool is_mlx5(ibv_context* context) {
  ibv_device_attr attr{};
  if (ibv_query_device(context, &attr) != 0 || attr.vendor_id != kMellanox) return false;
  std::error_code error;
  const auto link = std::filesystem::path(context->device->ibdev_path) / "device/driver";
  return std::filesystem::read_symlink(link, error).filename() == "mlx5_core";
}

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

int HostProvider::get_async_event(ibv_context* context, ibv_async_event* event) {
  return ibv_get_async_event(context, event);
}

void HostProvider::ack_async_event(ibv_async_event* event) {
  ibv_ack_async_event(event);
}

// mlx5 calls it scatter to CQE and reads the variable when it creates a QP (rdma-core 44, providers/mlx5/verbs.c,
// use_scatter_to_cqe). Other drivers have no setting that libibverbs can reach.
int HostProvider::set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) {
  if (!is_mlx5(context)) return bytes > 0 ? EOPNOTSUPP : 0;
  const InlineReceiveRoom room = inline_receive_room(NicFamily::mlx5, transport, verb, facts(NicFamily::mlx5).cqe);
  if (bytes > 0 && room.place == InlineReceive::nowhere) return EOPNOTSUPP;
  if (bytes > room.max_payload.value) return EINVAL;
  return setenv("MLX5_SCATTER_TO_CQE", bytes > 0 ? "1" : "0", 1) == 0 ? 0 : errno;
}

// mlx5 reads both variables when it opens a context (rdma-core 44, providers/mlx5/mlx5.c). Other drivers have no such
// setting.
int HostProvider::set_doorbell_registers(const std::string& name, std::uint32_t total) {
  if (total == 0) return 0;
  ibv_context* const context = open(name);
  if (context == nullptr) return errno;
  const bool has_choice = is_mlx5(context);
  ibv_close_device(context);
  if (!has_choice) return EOPNOTSUPP;
  const std::uint32_t exclusive = DoorbellRegisters{.total = total}.exclusive();
  if (setenv("MLX5_TOTAL_UUARS", std::to_string(total).c_str(), 1) != 0) return errno;
  return setenv("MLX5_NUM_LOW_LAT_UUARS", std::to_string(exclusive).c_str(), 1) == 0 ? 0 : errno;
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

int HostProvider::query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  return ibv_query_pkey(context, port, index, pkey);
}

ibv_pd* HostProvider::alloc_pd(ibv_context* context) {
  return ibv_alloc_pd(context);
}

int HostProvider::dealloc_pd(ibv_pd* pd) {
  return ibv_dealloc_pd(pd);
}

ibv_td* HostProvider::alloc_td(ibv_context* context) {
  ibv_td_init_attr attr{};
  return ibv_alloc_td(context, &attr);
}

int HostProvider::dealloc_td(ibv_td* td) {
  return ibv_dealloc_td(td);
}

ibv_pd* HostProvider::alloc_parent_domain(ibv_pd* pd, ibv_td* td) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  return ibv_alloc_parent_domain(pd->context, &attr);
}

ibv_mr* HostProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  // libibverbs itself detects whether the memory has huge pages.
  return ibv_reg_mr(pd, address, length, static_cast<unsigned>(access & ~IBV_ACCESS_HUGETLB));
}

ibv_mr* HostProvider::reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return ibv_reg_mr_iova(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* HostProvider::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                                    int access) {
  return ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

int HostProvider::rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  return ibv_rereg_mr(mr, flags, pd, address, length, access);
}

int HostProvider::dereg_mr(ibv_mr* mr) {
  return ibv_dereg_mr(mr);
}

ibv_comp_channel* HostProvider::create_comp_channel(ibv_context* context) {
  return ibv_create_comp_channel(context);
}

int HostProvider::destroy_comp_channel(ibv_comp_channel* channel) {
  return ibv_destroy_comp_channel(channel);
}

ibv_cq* HostProvider::create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
  return ibv_create_cq(context, entries, nullptr, channel, vector);
}

int HostProvider::resize_cq(ibv_cq* cq, int entries) {
  return ibv_resize_cq(cq, entries);
}

int HostProvider::destroy_cq(ibv_cq* cq) {
  return ibv_destroy_cq(cq);
}

ibv_srq* HostProvider::create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return ibv_create_srq(pd, attr);
}

int HostProvider::modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return ibv_modify_srq(srq, attr, mask);
}

int HostProvider::query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  return ibv_query_srq(srq, attr);
}

int HostProvider::destroy_srq(ibv_srq* srq) {
  return ibv_destroy_srq(srq);
}

ibv_qp* HostProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return ibv_create_qp(pd, attr);
}

ibv_qp* HostProvider::create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return ibv_create_qp_ex(context, attr);
}

ibv_qp_ex* HostProvider::qp_to_qp_ex(ibv_qp* qp) {
  return ibv_qp_to_qp_ex(qp);
}

int HostProvider::modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return ibv_modify_qp(qp, attr, mask);
}

int HostProvider::query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  return ibv_query_qp(qp, attr, mask, init);
}

int HostProvider::query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  return ibv_query_qp_data_in_order(qp, opcode, flags);
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

int HostProvider::attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return ibv_attach_mcast(qp, gid, lid);
}

int HostProvider::detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return ibv_detach_mcast(qp, gid, lid);
}

}  // namespace verbscope
