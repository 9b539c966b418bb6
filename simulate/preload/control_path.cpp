// The functions of libibverbs that make, change and destroy domains, memory regions and windows, and address handles.
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>

#include <cstring>

#include "simulate/preload/exported.hpp"
#include "simulate/preload/objects.hpp"

namespace verbscope::simulate {
namespace {

// The simulator's number of a thread domain has no place in libibverbs' structure.
struct Td : ibv_td {
  std::uint32_t handle = 0;
};

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) return no_object(EINVAL);
  auto* td = new Td{};
  td->context = context;
  return create(Operation::alloc_td, td, own(context).handle);
}

int dealloc_td(ibv_td* td) {
  return destroyed(Operation::dealloc_td, static_cast<Td*>(td));
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  if (attr->comp_mask != 0) return no_object(EOPNOTSUPP);
  if (attr->pd == nullptr || attr->pd->context != context) return no_object(EINVAL);
  auto* pd = new ibv_pd{.context = context, .handle = 0};
  return create(Operation::alloc_parent_domain, pd, attr->pd->handle, handle_of(static_cast<Td*>(attr->td)));
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  if (attr->comp_mask != (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)) return no_object(EINVAL);
  auto* xrcd = new Xrcd{};
  xrcd->context = context;
  return create(Operation::open_xrcd, xrcd, own(context).handle, attr->fd, attr->oflags);
}

int close_xrcd(ibv_xrcd* xrcd) {
  return destroyed(Operation::close_xrcd, static_cast<Xrcd*>(xrcd));
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  auto* mw = new ibv_mw{.context = pd->context, .pd = pd, .rkey = 0, .handle = 0, .type = type};
  return create<&ibv_mw::rkey>(Operation::alloc_mw, mw, pd->handle, type);
}

int dealloc_mw(ibv_mw* mw) {
  return destroyed(Operation::dealloc_mw, mw);
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  Request request(Operation::bind_mw);
  const int error = request.put(qp->handle).put(mw->handle).put(handle_of(bind->bind_info.mr)).put(*bind).ask();
  if (error == 0) mw->rkey = request.get<std::uint32_t>();
  return error;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  auto* mr = new ibv_mr{
      .context = pd->context, .pd = pd, .addr = address, .length = length, .handle = 0, .lkey = 0, .rkey = 0};
  return create<&ibv_mr::lkey, &ibv_mr::rkey>(Operation::reg_mr, mr, pd->handle, address, length, iova, access);
}

// The sender's and the receiver's GID of a datagram, and the type of these.
struct DatagramPath {
  ibv_gid from;
  ibv_gid to;
  ibv_gid_type type;
};

ibv_gid mapped(const char* ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(&gid.raw[12], ipv4, 4);
  return gid;
}

// From the 40 bytes before the data of a datagram: a GRH, an IPv6 header, or 20 bytes and an IPv4 header (InfiniBand
// Architecture Specification, annex A17.4.5.1).
DatagramPath path_of(const ibv_grh& grh) {
  constexpr std::uint8_t kUdp = 17;
  if ((be32toh(grh.version_tclass_flow) >> 28) == 6)
    return {grh.sgid, grh.dgid, grh.next_hdr == kUdp ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1};
  const char* const ipv4 = reinterpret_cast<const char*>(&grh) + 20;
  return {mapped(ipv4 + 12), mapped(ipv4 + 16), IBV_GID_TYPE_ROCE_V2};
}

// The index of a port's GID. -1: it has none of these.
int find_gid(ibv_context* context, std::uint8_t port, const DatagramPath& path) {
  ibv_gid_entry entry{};
  for (std::uint32_t i = 0; _ibv_query_gid_ex(context, port, i, &entry, 0, sizeof entry) == 0; ++i) {
    const bool ethernet = entry.gid_type != IBV_GID_TYPE_IB;
    if (std::memcmp(&entry.gid, &path.to, sizeof entry.gid) == 0 && (!ethernet || entry.gid_type == path.type))
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

void set_domain_calls(Context& context) {
  context.context.ops.alloc_mw = &alloc_mw;
  context.context.ops.dealloc_mw = &dealloc_mw;
  context.context.ops.bind_mw = &bind_mw;
  context.alloc_td = &alloc_td;
  context.dealloc_td = &dealloc_td;
  context.alloc_parent_domain = &alloc_parent_domain;
  context.open_xrcd = &open_xrcd;
  context.close_xrcd = &close_xrcd;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* pd = new ibv_pd{.context = context, .handle = 0};
  return create(Operation::alloc_pd, pd, own(context).handle);
}

EXPORTED int ibv_dealloc_pd(ibv_pd* pd) {
  return destroyed(Operation::dealloc_pd, pd);
}

EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return reg_mr(pd, address, length, reinterpret_cast<std::uint64_t>(address), access);
}

EXPORTED ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return reg_mr(pd, address, length, iova, access);
}

EXPORTED ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned int access) {
  return reg_mr(pd, address, length, iova, static_cast<int>(access));
}

EXPORTED ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return no_object(EOPNOTSUPP);
}

EXPORTED int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  Request request(Operation::rereg_mr);
  const int error = request.put(mr->handle).put(flags).put(handle_of(pd)).put(address).put(length).put(access).ask();
  if (error != 0) {
    errno = error;
    return request.get<int>();
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) mr->pd = pd;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    mr->addr = address;
    mr->length = length;
  }
  return 0;
}

EXPORTED int ibv_dereg_mr(ibv_mr* mr) {
  return destroyed(Operation::dereg_mr, mr);
}

EXPORTED ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  auto* ah = new ibv_ah{.context = pd->context, .pd = pd, .handle = 0};
  return create(Operation::create_ah, ah, pd->handle, *attr);
}

EXPORTED int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attr) {
  constexpr std::uint8_t kMostHops = 0xff;
  *attr = ibv_ah_attr{};
  attr->dlid = wc->slid;
  attr->sl = wc->sl;
  attr->src_path_bits = wc->dlid_path_bits;
  attr->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
  const DatagramPath path = path_of(*grh);
  const int index = find_gid(context, port, path);
  if (index < 0) return -1;
  const std::uint32_t labels = be32toh(grh->version_tclass_flow);
  attr->is_global = 1;
  attr->grh.dgid = path.from;
  attr->grh.sgid_index = static_cast<std::uint8_t>(index);
  attr->grh.flow_label = labels & 0xfffff;
  attr->grh.traffic_class = static_cast<std::uint8_t>(labels >> 20);
  attr->grh.hop_limit = kMostHops;
  return 0;
}

EXPORTED ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attr{};
  return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0 ? nullptr : ibv_create_ah(pd, &attr);
}

EXPORTED int ibv_destroy_ah(ibv_ah* ah) {
  return destroyed(Operation::destroy_ah, ah);
}
