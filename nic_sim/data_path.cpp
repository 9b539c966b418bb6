#include "nic_sim/data_path.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic_sim/nic.hpp"
#include "nic_sim/send_layout.hpp"

namespace verbscope::sim {
namespace {

int check_send(const SimQp& qp, const ibv_send_wr& wr, std::uint64_t length) {
  if (wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) return EINVAL;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.send.max_sge) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && length > qp.send.max_inline) return ENOMEM;
  if (qp.transport == Transport::ud && wr.wr.ud.ah == nullptr) return EINVAL;
  if (length > 1u << 31) return EINVAL;
  if (qp.send.posted - qp.send.freed >= qp.send.depth) return ENOMEM;
  return 0;
}

// Where the WQE lies in the send queue.
void place(SendQueue& queue, SendWqe& wqe) {
  if (queue.slot_bytes > 0) {
    wqe.ring_offset = static_cast<std::uint32_t>(wqe.index * queue.slot_bytes % queue.ring_bytes);
  } else {
    wqe.ring_offset = static_cast<std::uint32_t>(queue.posted_bytes % queue.ring_bytes);
    queue.posted_bytes += wqe.bytes;
  }
}

// Writes the work request into the send queue. Yields the size of its WQE in 16-byte units' bytes.
std::uint64_t write_wqe(SimQp& qp, const ibv_send_wr& wr, std::uint64_t length) {
  SendQueue& queue = qp.send;
  SendWqe& wqe = queue.at(queue.posted);
  const std::uint64_t slot = queue.posted & (queue.ring.size() - 1);
  const auto message = static_cast<std::uint32_t>(length);
  wqe = SendWqe{};
  wqe.wr_id = wr.wr_id;
  wqe.index = queue.posted;
  wqe.qp = &qp;
  wqe.length = message;
  wqe.immediate = wr.imm_data;
  wqe.packets = message == 0 ? 1 : (message + qp.path_mtu - 1) / qp.path_mtu;
  wqe.sequence = qp.requester.sequence_to_post;
  qp.requester.sequence_to_post += wqe.packets;
  wqe.signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  wqe.has_immediate = wr.opcode == IBV_WR_SEND_WITH_IMM;
  wqe.inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (qp.transport == Transport::ud) {
    const SimAh& ah = *static_cast<const SimAh*>(wr.wr.ud.ah);
    wqe.target_node = ah.node;
    wqe.has_grh = ah.global;
    wqe.target_qp = wr.wr.ud.remote_qpn;
    wqe.qkey = wr.wr.ud.remote_qkey;
  } else {
    wqe.target_node = qp.peer_node;
    wqe.has_grh = qp.has_grh;
    wqe.target_qp = qp.peer_qp;
  }
  SendLayout layout = queue.before_data;
  if (wqe.inlined) {
    std::byte* out = length == 0 ? nullptr : &queue.inline_data[slot * queue.max_inline];
    for (int i = 0; i < wr.num_sge; ++i) {
      if (wr.sg_list[i].length == 0) continue;
      std::memcpy(out, reinterpret_cast<const std::byte*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      out += wr.sg_list[i].length;
    }
    layout.add_inline(length);
  } else {
    wqe.sges = static_cast<std::uint8_t>(wr.num_sge);
    std::copy_n(wr.sg_list, wr.num_sge, queue.sges.begin() + static_cast<std::ptrdiff_t>(slot * queue.max_sge));
    layout.add_sges(wqe.sges);
  }
  wqe.bytes = static_cast<std::uint32_t>(layout.blocks_size());
  place(queue, wqe);
  ++queue.posted;
  return layout.size();
}

// BlueFlame: the CPU writes the WQE itself, line by line, as write-combining buffers are free.
Picos write_by_blueflame(Nic& nic, SimThread* thread, std::uint64_t lines) {
  const HostProfile& host = nic.profile().host;
  if (thread != nullptr) {
    thread->stall_until(thread->buffer_free_for(std::min(lines, host.wc_buffers)));
    thread->sync();
  }
  Picos departed{0};
  for (std::uint64_t i = 0; i < lines; ++i) {
    departed = nic.bus().mmio_write(kCacheLine.value);
    if (thread != nullptr) thread->line_departs(departed);
  }
  if (thread != nullptr) thread->spend(host.wc_line * static_cast<std::int64_t>(lines));
  return departed;
}

Picos ring_doorbell(Nic& nic, SimThread* thread) {
  if (thread != nullptr) {
    thread->stall_until(thread->buffer_free_for(1));
    thread->sync();
  }
  const Picos departed = nic.bus().mmio_write(nic.profile().wire.doorbell_bytes.value);
  if (thread != nullptr) {
    thread->line_departs(departed);
    thread->spend(nic.profile().host.doorbell);
  }
  return departed;
}

// rdma-core 44, mlx5_post_send and mlx4_post_send: BlueFlame for a lone WQE of more than one 16-byte unit that is small
// enough, on mlx4 only with inline data; otherwise a doorbell.
bool goes_by_blueflame(const SimQp& qp, const SendWqe& wqe, std::uint64_t count, std::uint64_t size) {
  const ClusterWire& wire = qp.nic->profile().wire;
  if (count != 1 || size <= kWqeUnit.value || size > wire.blueflame_max.value) return false;
  return !family_facts(wire.family).blueflame_needs_inline || (wqe.inlined && wqe.length > 0);
}

void announce(SimQp& qp, std::uint64_t first, std::uint64_t last_size, std::uint32_t bytes) {
  SendQueue& queue = qp.send;
  Nic& nic = *qp.nic;
  SimThread* thread = nic.running_thread();
  const std::uint64_t count = queue.posted - first;
  if (thread != nullptr) {
    const HostProfile& host = nic.profile().host;
    thread->spend(host.post_call + host.post_wqe * static_cast<std::int64_t>(count));
  }
  SendWqe& wqe = queue.at(first);
  const bool blueflame = goes_by_blueflame(qp, wqe, count, last_size);
  wqe.by_blueflame = blueflame;
  const std::uint64_t number = queue.batches_posted++;
  queue.batch(number) = Batch{first, static_cast<std::uint32_t>(count), bytes, 0, blueflame, false};
  const Picos departed =
      blueflame ? write_by_blueflame(nic, thread, divide_up(last_size, kCacheLine.value)) : ring_doorbell(nic, thread);
  nic.requester().announce(qp, number, departed + nic.bus().propagation());
}

}  // namespace

int post_send(ibv_qp* verbs_qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  SimQp& qp = as_sim(verbs_qp);
  const std::uint64_t first = qp.send.posted;
  std::uint64_t size = 0;
  std::uint32_t bytes = 0;
  int error = qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_ERR ? 0 : EINVAL;
  for (; error == 0 && wr != nullptr; wr = wr->next) {
    std::uint64_t length = 0;
    for (int i = 0; i < wr->num_sge; ++i) length += wr->sg_list[i].length;
    error = check_send(qp, *wr, length);
    if (error != 0) break;
    size = write_wqe(qp, *wr, length);
    bytes += qp.send.at(qp.send.posted - 1).bytes;
  }
  if (error != 0) *bad_wr = wr;
  if (qp.send.posted == first) return error;
  if (qp.state == IBV_QPS_ERR) {
    qp.nic->requester().flush(qp);
  } else {
    announce(qp, first, size, bytes);
  }
  return error;
}

int post_recv(ibv_qp* verbs_qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  SimQp& qp = as_sim(verbs_qp);
  RecvQueue& queue = qp.recv;
  const std::uint64_t first = queue.posted;
  int error = qp.state == IBV_QPS_RESET ? EINVAL : 0;
  for (; error == 0 && wr != nullptr; wr = wr->next) {
    if (wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > queue.max_sge) {
      error = EINVAL;
    } else if (queue.posted - queue.freed >= queue.depth) {
      error = ENOMEM;
    }
    if (error != 0) break;
    RecvWqe& wqe = queue.at(queue.posted);
    wqe = RecvWqe{wr->wr_id, static_cast<std::uint32_t>(wr->num_sge), 0};
    std::copy_n(wr->sg_list, wr->num_sge, queue.sges_of(queue.posted));
    for (int i = 0; i < wr->num_sge; ++i) wqe.length += wr->sg_list[i].length;
    ++queue.posted;
  }
  if (error != 0) *bad_wr = wr;
  if (queue.posted == first) return error;
  if (SimThread* thread = qp.nic->running_thread()) {
    const HostProfile& host = qp.nic->profile().host;
    thread->spend(host.post_recv_call + host.post_recv_wqe * static_cast<std::int64_t>(queue.posted - first));
    thread->sync();
  }
  if (qp.state == IBV_QPS_ERR) {
    qp.nic->responder().flush(qp);
  } else {
    qp.nic->responder().prefetch(qp);
  }
  return error;
}

int poll_cq(ibv_cq* verbs_cq, int entries, ibv_wc* wc) {
  SimCq& cq = *static_cast<SimCq*>(verbs_cq);
  Nic& nic = *static_cast<SimContext*>(cq.context)->nic;
  SimThread* thread = nic.running_thread();
  const HostProfile& host = nic.profile().host;
  const auto wanted = static_cast<std::uint64_t>(std::max(entries, 0));
  if (thread != nullptr) {
    thread->spend(host.poll_call);
    // When enough can be seen already, what happens up to the thread's time cannot change what it gets.
    if (cq.waiting() < wanted || cq.at(cq.polled + wanted - 1).visible > thread->clock()) thread->sync();
  }
  const Picos now = thread != nullptr ? thread->clock() : nic.engine().now();
  int taken = 0;
  while (taken < entries && cq.waiting() > 0 && cq.at(cq.polled).visible <= now) {
    const Completion& done = cq.at(cq.polled++);
    ibv_wc& out = wc[taken++];
    out = ibv_wc{};
    out.wr_id = done.wr_id;
    out.status = done.status;
    out.opcode = done.opcode;
    out.byte_len = done.bytes;
    out.imm_data = done.immediate;
    out.qp_num = done.qp->qp_num;
    out.src_qp = done.source_qp;
    out.wc_flags = done.flags;
    std::uint64_t& freed = done.of_send ? done.qp->send.freed : done.qp->recv.freed;
    freed = std::max(freed, done.index + 1);
  }
  if (taken == 0 && cq.overrun) return -1;
  if (thread != nullptr) {
    if (taken == 0) {
      thread->note_empty(cq, host.poll_call);
    } else {
      thread->spend(host.poll_cqe * taken);
    }
  }
  return taken;
}

}  // namespace verbscope::sim
