// The replaced functions of libibverbs. Each calls libibverbs's own and records the result. They change neither results
// nor errno.
#include <dlfcn.h>

#include <cerrno>

#include "drivers_patch/objects.hpp"
#include "drivers_patch/preload/provider_calls.hpp"
#include "drivers_patch/preload/start.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))

using namespace verbscope::driver;

namespace {

// Registration functions of libibverbs call each other: only the outermost is counted.
thread_local int registering __attribute__((tls_model("initial-exec"))) = 0;

template <class Register>
ibv_mr* registered(ibv_pd* pd, const void* address, std::size_t length, Register&& provider) {
  ++registering;
  ibv_mr* const mr = provider();
  --registering;
  if (mr != nullptr && registering == 0) {
    const ErrnoGuard errno_guard;
    ensure_attached(*pd->context);
    count_registration(*pd->context, address, length);
  }
  return mr;
}

// Removes an object from the lookup before it is destroyed, because its address may be reused at once, and restores it
// if destroying fails.
template <class Record, class Object>
int destroyed(Object* object, Record* (*detach)(const Object&), void (*restore)(Record*), int (*provider)(Object*)) {
  const int before = errno;
  Record* const record = detach(*object);
  errno = before;
  const int result = provider(object);
  if (result != 0) {
    const ErrnoGuard errno_guard;
    restore(record);
  }
  return result;
}

}  // namespace

EXPORTED ibv_context* ibv_open_device(ibv_device* device) {
  ibv_context* const context = VERBSCOPE_PROVIDER(ibv_open_device, "IBVERBS_1.1")(device);
  if (context != nullptr) ensure_attached(*context);
  return context;
}

EXPORTED ibv_context* ibv_import_device(int fd) {
  ibv_context* const context = VERBSCOPE_PROVIDER(ibv_import_device, "IBVERBS_1.10")(fd);
  if (context != nullptr) ensure_attached(*context);
  return context;
}

EXPORTED int ibv_close_device(ibv_context* context) {
  detach_context(*context);
  const int result = VERBSCOPE_PROVIDER(ibv_close_device, "IBVERBS_1.1")(context);
  if (result != 0) ensure_attached(*context);
  return result;
}

EXPORTED ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                               int vector) {
  ibv_cq* const cq = VERBSCOPE_PROVIDER(ibv_create_cq, "IBVERBS_1.1")(context, entries, cq_context, channel, vector);
  if (cq == nullptr) return cq;
  ensure_attached(*cq->context);
  attach_cq(*cq);
  return cq;
}

EXPORTED int ibv_destroy_cq(ibv_cq* cq) {
  return destroyed(cq, detach_cq, restore_cq, VERBSCOPE_PROVIDER(ibv_destroy_cq, "IBVERBS_1.1"));
}

EXPORTED ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const std::uint32_t max_sge = attr->attr.max_sge;
  ibv_srq* const srq = VERBSCOPE_PROVIDER(ibv_create_srq, "IBVERBS_1.1")(pd, attr);
  if (srq == nullptr) return srq;
  ensure_attached(*srq->context);
  attach_srq(*srq, max_sge);
  return srq;
}

EXPORTED int ibv_destroy_srq(ibv_srq* srq) {
  return destroyed(srq, detach_srq, restore_srq, VERBSCOPE_PROVIDER(ibv_destroy_srq, "IBVERBS_1.1"));
}

EXPORTED ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_cap asked = attr->cap;
  ibv_qp* const qp = VERBSCOPE_PROVIDER(ibv_create_qp, "IBVERBS_1.1")(pd, attr);
  if (qp == nullptr) return qp;
  ensure_attached(*qp->context);
  attach_qp(*qp, nullptr, asked, attr->sq_sig_all != 0, kInitialMtu);
  return qp;
}

EXPORTED int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const int result = VERBSCOPE_PROVIDER(ibv_modify_qp, "IBVERBS_1.1")(qp, attr, mask);
  if (result == 0) modify_qp(*qp, *attr, mask);
  return result;
}

EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  return destroyed(qp, detach_qp, restore_qp, VERBSCOPE_PROVIDER(ibv_destroy_qp, "IBVERBS_1.1"));
}

EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return registered(pd, address, length,
                    [=] { return VERBSCOPE_PROVIDER(ibv_reg_mr, "IBVERBS_1.1")(pd, address, length, access); });
}

EXPORTED ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return registered(pd, address, length, [=] {
    return VERBSCOPE_PROVIDER(ibv_reg_mr_iova, "IBVERBS_1.7")(pd, address, length, iova, access);
  });
}

EXPORTED ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned int access) {
  return registered(pd, address, length, [=] {
    return VERBSCOPE_PROVIDER(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, address, length, iova, access);
  });
}

EXPORTED ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
  return registered(pd, nullptr, length, [=] {
    return VERBSCOPE_PROVIDER(ibv_reg_dmabuf_mr, "IBVERBS_1.12")(pd, offset, length, iova, fd, access);
  });
}

EXPORTED int ibv_dereg_mr(ibv_mr* mr) {
  ibv_context* const context = mr->context;
  const int result = VERBSCOPE_PROVIDER(ibv_dereg_mr, "IBVERBS_1.1")(mr);
  if (result == 0) count_deregistration(*context);
  return result;
}

EXPORTED ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* const ah = VERBSCOPE_PROVIDER(ibv_create_ah, "IBVERBS_1.1")(pd, attr);
  if (ah != nullptr) count_address_handle(*pd->context);
  return ah;
}
