#include "drivers_patch/preload/extended_calls.hpp"

#include <cerrno>

#include "drivers_patch/objects.hpp"
#include "drivers_patch/preload/provider_calls.hpp"

namespace verbscope::driver {
namespace {

ibv_qp* traced_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const ibv_qp_cap asked = attr->cap;
  ibv_qp* const qp = wrapped(context)->create_qp_ex(context, attr);
  if (qp == nullptr) return qp;
  const ErrnoKept kept;
  const bool builds = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_qp_ex* const builder = builds ? VERBSCOPE_PROVIDER(ibv_qp_to_qp_ex, "IBVERBS_1.6")(qp) : nullptr;
  attach_qp(*qp, builder, asked, attr->sq_sig_all != 0, kLargestMtu);
  return qp;
}

ibv_cq_ex* traced_create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* const cq = wrapped(context)->create_cq_ex(context, attr);
  if (cq != nullptr) attach_cq_ex(*cq);
  return cq;
}

ibv_srq* traced_create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const std::uint32_t max_sge = attr->attr.max_sge;
  ibv_srq* const srq = wrapped(context)->create_srq_ex(context, attr);
  if (srq != nullptr) attach_srq(*srq, max_sge);
  return srq;
}

}  // namespace

void wrap_extended_calls(ibv_context& context) {
  WrappedContext* const known = wrapped(&context);
  if (known == nullptr) return;
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_qp_ex)) {
    known->create_qp_ex = table->create_qp_ex;
    table->create_qp_ex = &traced_create_qp_ex;
  }
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_cq_ex)) {
    known->create_cq_ex = table->create_cq_ex;
    table->create_cq_ex = &traced_create_cq_ex;
  }
  if (verbs_context* const table = verbs_get_ctx_op(&context, create_srq_ex)) {
    known->create_srq_ex = table->create_srq_ex;
    table->create_srq_ex = &traced_create_srq_ex;
  }
}

}  // namespace verbscope::driver
