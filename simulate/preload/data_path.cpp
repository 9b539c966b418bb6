// The data path of a program's verbs: its lists of work requests and its polls as requests to the simulator.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "simulate/preload/objects.hpp"

namespace verbscope::simulate {
namespace {

std::uint32_t length_of(const ibv_send_wr& wr) {
  std::uint32_t length = 0;
  for (int i = 0; i < std::min(wr.num_sge, kMostSges); ++i) length += wr.sg_list[i].length;
  return length;
}

void put(Request& request, const ibv_send_wr& wr, bool datagram) {
  SendMessage message{.wr = wr, .ah = 0, .mw = 0, .mr = 0, .inline_bytes = 0};
  message.wr.next = nullptr;
  message.wr.sg_list = nullptr;
  message.wr.num_sge = std::min(wr.num_sge, kMostSges);
  const bool inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (datagram) message.ah = handle_of(wr.wr.ud.ah);
  if (wr.opcode == IBV_WR_BIND_MW) {
    message.mw = handle_of(wr.bind_mw.mw);
    message.mr = handle_of(wr.bind_mw.bind_info.mr);
  }
  if (inlined) message.inline_bytes = length_of(wr);
  request.put(message);
  for (int i = 0; i < message.wr.num_sge; ++i) {
    request.put(wr.sg_list[i]);
  }
  if (!inlined) return;
  for (int i = 0; i < message.wr.num_sge; ++i) {
    request.put_bytes(reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
  }
}

template <class Wr>
std::uint32_t count_of(const Wr* list) {
  std::uint32_t count = 0;
  for (; list != nullptr; list = list->next) ++count;
  return count;
}

// On an error, the first request that was not posted.
template <class Wr>
int posted(Request& request, Wr* list, Wr** bad) {
  const int error = request.ask();
  if (error == 0) return 0;
  Wr* failed = list;
  for (auto done = request.get<std::uint32_t>(); done > 0 && failed->next != nullptr; --done) failed = failed->next;
  if (bad != nullptr) *bad = failed;
  return error;
}

int post_list(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad, bool all) {
  Request request(Operation::post_send);
  request.put(qp->handle).put(all).put(count_of(list));
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) put(request, *wr, qp->qp_type == IBV_QPT_UD);
  return posted(request, list, bad);
}

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  return post_list(qp, list, bad, false);
}

int post_recvs(Operation operation, std::uint32_t queue, ibv_recv_wr* list, ibv_recv_wr** bad) {
  Request request(operation);
  request.put(queue).put(count_of(list));
  for (const ibv_recv_wr* wr = list; wr != nullptr; wr = wr->next) {
    const RecvMessage message{.wr_id = wr->wr_id, .num_sge = std::min(wr->num_sge, kMostSges)};
    request.put(message);
    for (int i = 0; i < message.num_sge; ++i) request.put(wr->sg_list[i]);
  }
  return posted(request, list, bad);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return post_recvs(Operation::post_recv, qp->handle, list, bad);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return post_recvs(Operation::post_srq_recv, srq->handle, list, bad);
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  Request request(Operation::poll_cq);
  request.put(cq->handle).put(entries);
  request.ask();
  const int polled = request.get<int>();
  for (int i = 0; i < polled; ++i) wc[i] = request.get<ibv_wc>();
  return polled;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return ask(Operation::req_notify_cq, cq->handle, solicited_only);
}

int poll_extended(Operation operation, ibv_cq_ex* extended) {
  Cq& cq = own(extended);
  Request request(operation);
  request.put(verbs(cq)->handle);
  const int error = request.ask();
  if (error != 0) return error;
  cq.current = request.get<ExtendedCompletion>();
  cq.wr_id = cq.current.wc.wr_id;
  cq.status = cq.current.wc.status;
  return 0;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  return attr->comp_mask != 0 ? EINVAL : poll_extended(Operation::start_poll, cq);
}
int next_poll(ibv_cq_ex* cq) {
  return poll_extended(Operation::next_poll, cq);
}
void end_poll(ibv_cq_ex* cq) {
  ask(Operation::end_poll, verbs(own(cq))->handle);
}

template <auto member>
auto read(ibv_cq_ex* cq) {
  return own(cq).current.wc.*member;
}
std::uint64_t read_time(ibv_cq_ex* cq) {
  return own(cq).current.timestamp;
}

}  // namespace

int post_send_all(ibv_qp* qp, ibv_send_wr* list) {
  return post_list(qp, list, nullptr, true);
}

void set_poll_functions(Cq& cq, std::uint64_t fields) {
  cq.start_poll = &start_poll;
  cq.next_poll = &next_poll;
  cq.end_poll = &end_poll;
  cq.read_opcode = &read<&ibv_wc::opcode>;
  cq.read_wc_flags = [](ibv_cq_ex* of) -> unsigned { return own(of).current.wc.wc_flags; };
  cq.read_vendor_err = &read<&ibv_wc::vendor_err>;
  const auto offer = [fields](std::uint64_t field, auto& function, auto implementation) {
    if ((fields & field) != 0) function = implementation;
  };
  offer(IBV_WC_EX_WITH_BYTE_LEN, cq.read_byte_len, &read<&ibv_wc::byte_len>);
  offer(IBV_WC_EX_WITH_IMM, cq.read_imm_data, [](ibv_cq_ex* of) { return own(of).current.wc.imm_data; });
  offer(IBV_WC_EX_WITH_QP_NUM, cq.read_qp_num, &read<&ibv_wc::qp_num>);
  offer(IBV_WC_EX_WITH_SRC_QP, cq.read_src_qp, &read<&ibv_wc::src_qp>);
  offer(IBV_WC_EX_WITH_SLID, cq.read_slid, [](ibv_cq_ex* of) -> std::uint32_t { return own(of).current.wc.slid; });
  offer(IBV_WC_EX_WITH_SL, cq.read_sl, &read<&ibv_wc::sl>);
  offer(IBV_WC_EX_WITH_DLID_PATH_BITS, cq.read_dlid_path_bits, &read<&ibv_wc::dlid_path_bits>);
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq.read_completion_ts, &read_time);
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq.read_completion_wallclock_ns, &read_time);
}

void set_data_path(ibv_context_ops& ops) {
  ops.post_send = &post_send;
  ops.post_recv = &post_recv;
  ops.post_srq_recv = &post_srq_recv;
  ops.poll_cq = &poll_cq;
  ops.req_notify_cq = &req_notify_cq;
}

}  // namespace verbscope::simulate
