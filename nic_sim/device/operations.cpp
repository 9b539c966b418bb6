#include "nic_sim/device/operations.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/device/polling.hpp"
#include "nic_sim/device/provider.hpp"
#include "verbs/qp_rules.hpp"

namespace verbscope::sim {
namespace {

SimProvider& control(ibv_context* context) {
  return static_cast<SimDevice*>(context->device)->control;
}

// ibv_query_port(3) of a program that knows fewer attributes.
int query_port_begin(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t attr_size) {
  ibv_port_attr all{};
  const int error = control(context).query_port(context, port, &all);
  if (error == 0) std::memcpy(attr, &all, std::min(attr_size, sizeof all));
  return error;
}

// ibv_query_rt_values_ex(3). Drivers give the clock's cycles as nanoseconds, without seconds (rdma-core 44,
// providers/mlx5/verbs.c, mlx5_query_rt_values).
int query_clock(ibv_context* context, ibv_values_ex* values) {
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  const bool asked = (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0;
  if (asked) values->raw_clock = {.tv_sec = 0, .tv_nsec = static_cast<long>(hca_clock(time_of(*as_sim(context).nic)))};
  values->comp_mask = asked ? IBV_VALUES_MASK_RAW_CLOCK : 0;
  return 0;
}

}  // namespace

void set_operations(SimContext& context) {
  ibv_context_ops& ops = context.context.ops;
  ops.post_send = &post_send;
  ops.post_recv = &post_recv;
  ops.post_srq_recv = &post_srq_recv;
  ops.poll_cq = &poll_cq;
  ops.req_notify_cq = &req_notify_cq;
  ops.alloc_mw = [](ibv_pd* pd, ibv_mw_type type) { return control(pd->context).alloc_mw(pd, type); };
  ops.dealloc_mw = [](ibv_mw* mw) { return control(mw->context).dealloc_mw(mw); };
  ops.bind_mw = &bind_mw;
  context.query_port = &query_port_begin;
  context.query_device_ex = [](ibv_context* of, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                               std::size_t attr_size) {
    return control(of).query_device_ex(of, input, attr, attr_size);
  };
  context.create_cq_ex = [](ibv_context* of, ibv_cq_init_attr_ex* attr) { return control(of).create_cq_ex(of, attr); };
  context.query_rt_values = &query_clock;
  context.create_qp_ex = [](ibv_context* of, ibv_qp_init_attr_ex* attr) { return control(of).create_qp_ex(of, attr); };
  context.open_xrcd = [](ibv_context* of, ibv_xrcd_init_attr* attr) { return control(of).open_xrcd(of, attr); };
  context.close_xrcd = [](ibv_xrcd* xrcd) { return control(xrcd->context).close_xrcd(xrcd); };
  context.create_srq_ex = [](ibv_context* of, ibv_srq_init_attr_ex* attr) { return control(of).create_srq_ex(attr); };
  context.get_srq_num = [](ibv_srq* srq, std::uint32_t* number) {
    *number = as_sim(srq).number;
    return 0;
  };
  context.open_qp = [](ibv_context* of, ibv_qp_open_attr* attr) { return control(of).open_qp(of, attr); };
  context.alloc_td = [](ibv_context* of, ibv_td_init_attr* attr) -> ibv_td* {
    return attr->comp_mask == 0 ? control(of).alloc_td(of) : no_object(EINVAL);
  };
  context.dealloc_td = [](ibv_td* td) { return control(td->context).dealloc_td(td); };
  context.alloc_parent_domain = [](ibv_context* of, ibv_parent_domain_init_attr* attr) -> ibv_pd* {
    if (attr->pd == nullptr || attr->pd->context != of) return no_object(EINVAL);
    return attr->comp_mask == 0 ? control(of).alloc_parent_domain(attr->pd, attr->td) : no_object(EOPNOTSUPP);
  };
}

}  // namespace verbscope::sim
