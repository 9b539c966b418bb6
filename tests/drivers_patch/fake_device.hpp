// A provider of a device that does nothing, with every entry of libibverbs. Tests remove entries and choose what
// completes.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <deque>

namespace verbscope::driver {

struct FakeDevice : verbs_context {
  FakeDevice() : verbs_context{} {
    sz = sizeof(verbs_context);
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context.device = &device;
    ibv_context_ops& ops = context.ops;
    ops.post_send = [](ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; };
    ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    // Accepts the first request of a list.
    ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
      *bad = wr->next;
      return wr->next == nullptr ? 0 : ENOMEM;
    };
    ops.poll_cq = [](ibv_cq* cq, int, ibv_wc* wc) {
      std::deque<ibv_wc>& waiting = of(cq->context).completions;
      int polled = 0;
      for (; !waiting.empty(); waiting.pop_front()) wc[polled++] = waiting.front();
      return polled;
    };
    ops.req_notify_cq = [](ibv_cq*, int) { return 0; };
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  static FakeDevice& of(ibv_context* context) { return *static_cast<FakeDevice*>(verbs_get_ctx(context)); }

  ibv_qp qp(std::uint32_t number, ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp qp{};
    qp.context = &context;
    qp.qp_num = number;
    qp.qp_type = type;
    return qp;
  }
  ibv_cq cq() {
    ibv_cq cq{};
    cq.context = &context;
    return cq;
  }
  // An extended queue that reports QP numbers and lengths.
  ibv_cq_ex extended_cq() {
    ibv_cq_ex cq{};
    cq.context = &context;
    cq.start_poll = [](ibv_cq_ex* queue, ibv_poll_cq_attr*) { return stand_at_first(*queue); };
    cq.next_poll = [](ibv_cq_ex* queue) {
      of(queue->context).completions.pop_front();
      return stand_at_first(*queue);
    };
    cq.end_poll = [](ibv_cq_ex* queue) {
      if (!of(queue->context).completions.empty()) of(queue->context).completions.pop_front();
    };
    cq.read_opcode = [](ibv_cq_ex* queue) { return of(queue->context).completions.front().opcode; };
    cq.read_byte_len = [](ibv_cq_ex* queue) { return of(queue->context).completions.front().byte_len; };
    cq.read_qp_num = [](ibv_cq_ex* queue) { return of(queue->context).completions.front().qp_num; };
    return cq;
  }
  void complete(std::uint32_t qp_num, ibv_wc_opcode opcode, ibv_wc_status status = IBV_WC_SUCCESS,
                std::uint32_t bytes = 0) {
    ibv_wc wc{};
    wc.qp_num = qp_num;
    wc.opcode = opcode;
    wc.status = status;
    wc.byte_len = bytes;
    completions.push_back(wc);
  }

  ibv_device device{};
  std::deque<ibv_wc> completions;

 private:
  static int stand_at_first(ibv_cq_ex& queue) {
    const std::deque<ibv_wc>& waiting = of(queue.context).completions;
    if (waiting.empty()) return ENOENT;
    queue.status = waiting.front().status;
    queue.wr_id = waiting.front().wr_id;
    return 0;
  }
};

}  // namespace verbscope::driver
