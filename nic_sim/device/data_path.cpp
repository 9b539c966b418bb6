#include "nic_sim/device/data_path.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "nic_sim/nic/nic.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "nic_sim/nic/windows.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/doorbell.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {
namespace {

// MMIO writes notify the NIC of work. Each takes CPU time of its thread, and waits for free write-combining buffers.

// Drains the lines to the link. Returns the time at which the last one has left.
Picos write_lines(Nic& nic, SimThread* thread, std::uint32_t lines, std::uint32_t line_bytes) {
  Picos departed{0};
  for (std::uint32_t i = 0; i < lines; ++i) {
    departed = nic.bus().mmio_write(line_bytes);
    if (thread != nullptr) thread->wc_buffers().line_departs(departed);
  }
  return departed;
}

void drain(SimQp& qp, SimThread* thread, const MmioWrite& write) {
  Nic& nic = *qp.nic;
  const Picos departed = write_lines(nic, thread, write.lines, write.line_bytes);
  nic.requester().batch_arrives(qp, write.batch, departed + nic.bus().propagation());
}

void drain_later(void* object, std::uint64_t argument) {
  auto* thread = reinterpret_cast<SimThread*>(argument);
  drain(*static_cast<SimQp*>(object), thread, thread->wc_buffers().drain_first());
}

NicFamily nic_family(const SimQp& qp) {
  return qp.nic->profile().wire.family;
}

// True if a register shared by QPs is locked for the write: mlx4 locks it only for BlueFlame.
bool needs_lock(NicFamily family, bool by_blueflame) {
  return family == NicFamily::mlx5 || by_blueflame;
}

// The write that posts the batch, and its CPU time.
std::pair<MmioWrite, Picos> mmio_write_of(const SimQp& qp, std::uint64_t first, bool blueflame, std::uint64_t size) {
  const Profile& profile = qp.nic->profile();
  const std::uint64_t batch = with_generation(qp.generation, first);
  if (!blueflame) {
    return {{batch, 1, static_cast<std::uint32_t>(profile.wire.doorbell_bytes.value)}, profile.host.doorbell};
  }
  const auto lines = static_cast<std::uint32_t>(divide_up(size, kCacheLine.value));
  return {{batch, lines, static_cast<std::uint32_t>(kCacheLine.value)}, profile.host.wc_line * std::int64_t{lines}};
}

// Posts the batch that begins at WQE `first` to the NIC, at the thread's time: by a doorbell or, if the WQE is marked
// by_blueflame, by writing its `size` bytes line by line. Without a thread no CPU time is charged.
//
// A single work request is written ahead of the engine: the thread continues at once, and the write drains when the
// engine reaches its time. After a list the thread synchronizes with the engine, because the WQEs are then read while
// the processor's caches hold them.
void write_batch(SimQp& qp, SimThread* thread, std::uint64_t first, std::uint64_t size) {
  const SendWqe& wqe = qp.send.at(first);
  const auto [write, cost] = mmio_write_of(qp, first, wqe.by_blueflame, size);
  if (thread == nullptr) return drain(qp, nullptr, write);
  thread->await_wc_buffers(write.lines);
  const bool locked = qp.doorbell_lock != nullptr && needs_lock(nic_family(qp), wqe.by_blueflame);
  if (locked) qp.doorbell_lock->take(*thread, cost);
  if (wqe.batch.count == 1) {
    thread->wc_buffers().begin(write);
    qp.nic->engine().schedule(thread->clock(), &drain_later, &qp, reinterpret_cast<std::uint64_t>(thread));
  } else {
    thread->sync();
    drain(qp, thread, write);
  }
  thread->spend(cost);
}

std::uint64_t length_of(const ibv_send_wr& wr) {
  return sge_bytes({wr.sg_list, static_cast<std::size_t>(std::max(wr.num_sge, 0))});
}

// `ahead`: work requests that will be posted before it. `connected`: of the QP's transport.
[[gnu::always_inline]] inline int check_send(const SimQp& qp, const ibv_send_wr& wr, Verb verb, std::uint64_t length,
                                             std::uint64_t ahead, bool connected) {
  const VerbRules& rules = row_of(*qp.send.verbs, verb);
  if (!rules.exists) return EINVAL;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.send.max_sge) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (!rules.may_inline) return EINVAL;
    if (length > qp.send.max_inline) return ENOMEM;
  }
  if (facts(verb).atomic && length != kAtomicBytes) return EINVAL;
  if (!connected && wr.wr.ud.ah == nullptr) return EINVAL;
  if (length > kLongestMessage) return EINVAL;
  if (qp.send.posted - qp.send.freed + ahead >= qp.send.depth) return ENOMEM;
  return 0;
}

void write_remote(SendWqe& wqe, const ibv_send_wr& wr) {
  const VerbFacts& verb = facts(wqe.verb);
  if (verb.atomic) {
    wqe.remote_address = wr.wr.atomic.remote_addr;
    wqe.rkey = wr.wr.atomic.rkey;
    const bool adds = wqe.verb == Verb::fetch_add;
    wqe.operand = adds ? wr.wr.atomic.compare_add : wr.wr.atomic.swap;
    wqe.compare = wr.wr.atomic.compare_add;
  } else if (verb.one_sided) {
    wqe.remote_address = wr.wr.rdma.remote_addr;
    wqe.rkey = wr.wr.rdma.rkey;
  }
}

// A datagram to a multicast group. Receivers drop it if it names another QP than all that are attached.
[[gnu::noinline]] void write_group(SendWqe& wqe, const MulticastGroup& group) {
  constexpr std::uint32_t kNoQp = 0;
  wqe.operand = group.subnet_prefix;
  wqe.compare = group.interface_id;
  wqe.rkey = group.lid;
  if (wqe.target_qp != kMulticastQp) wqe.target_qp = kNoQp;
}

// Assigns the WQE's place in the send queue.
void place(SendQueue& queue, SendWqe& wqe) {
  if (queue.slot_bytes > 0) {
    wqe.ring_offset = static_cast<std::uint32_t>(wqe.index * queue.slot_bytes & (queue.ring_bytes - 1));
  } else {
    wqe.ring_offset = static_cast<std::uint32_t>(queue.posted_bytes & (queue.ring_bytes - 1));
    queue.posted_bytes += wqe.bytes;
  }
}

// Writes the work request into the send queue. Returns the size of its WQE in bytes, a multiple of 16. Inlined into
// both callers; only one of them is common.
[[gnu::always_inline]] inline std::uint64_t write_wqe(SimQp& qp, const ibv_send_wr& wr, Verb verb, std::uint64_t length,
                                                      bool connected) {
  SendQueue& queue = qp.send;
  SendWqe& wqe = queue.at(queue.posted);
  const auto message = static_cast<std::uint32_t>(length);
  wqe = SendWqe{};
  wqe.wr_id = wr.wr_id;
  wqe.index = queue.posted;
  wqe.qp = &qp;
  wqe.length = message;
  wqe.immediate = wr.imm_data;
  wqe.verb = verb;
  wqe.sequences = message <= qp.path_mtu ? 1 : (message + qp.path_mtu - 1) / qp.path_mtu;
  wqe.packets = facts(verb).carries_payload ? wqe.sequences : 1;
  wqe.sequence = qp.requester.sequence_to_post;
  qp.requester.sequence_to_post += wqe.sequences;
  wqe.signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  wqe.fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  if (wr.opcode == row_of(kVerbCodes, verb).with_immediate) wqe.carried = Carried::immediate;
  wqe.inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (!connected) {
    const SimAh& ah = *static_cast<const SimAh*>(wr.wr.ud.ah);
    wqe.target_node = ah.node;
    wqe.global = ah.global;
    wqe.priority = ah.priority;
    wqe.target_qp = wr.wr.ud.remote_qpn;
    // A controlled Q_Key selects the QP's own: InfiniBand Architecture Specification 1.3, volume 1, section 10.2.4.
    wqe.qkey = (wr.wr.ud.remote_qkey >> 31) != 0 ? qp.qkey : wr.wr.ud.remote_qkey;
    if (ah.node == kEveryNode) [[unlikely]]
      write_group(wqe, ah.group);
  } else {
    wqe.target_node = qp.peer_node;
    wqe.global = qp.global;
    wqe.priority = qp.priority;
    wqe.target_qp = qp.peer_qp;
    if (qp.transport == Transport::xrc) [[unlikely]]
      wqe.qkey = wr.qp_type.xrc.remote_srqn;
    write_remote(wqe, wr);
  }
  SendLayout layout = row_of(*queue.verbs, verb).before_data;
  if (wqe.inlined) {
    std::byte* out = length == 0 ? nullptr : queue.inline_data_of(wqe.index);
    for (int i = 0; i < wr.num_sge; ++i) {
      if (wr.sg_list[i].length == 0) continue;
      std::memcpy(out, reinterpret_cast<const std::byte*>(wr.sg_list[i].addr), wr.sg_list[i].length);
      out += wr.sg_list[i].length;
    }
    layout.add_inline(length);
  } else {
    wqe.sges = static_cast<std::uint8_t>(wr.num_sge);
    std::copy_n(wr.sg_list, wr.num_sge, queue.sges_of(wqe.index));
    layout.add_sges(wqe.sges);
  }
  wqe.bytes = static_cast<std::uint32_t>(layout.blocks_size());
  place(queue, wqe);
  ++queue.posted;
  return layout.size();
}

void post_batch(SimQp& qp, std::uint64_t first, std::uint64_t last_size, std::uint32_t bytes) {
  SendQueue& queue = qp.send;
  Nic& nic = *qp.nic;
  SimThread* thread = nic.running_thread();
  const std::uint64_t count = queue.posted - first;
  if (thread != nullptr) {
    const HostProfile& host = nic.profile().host;
    thread->spend(host.post_call + host.post_wqe * static_cast<std::int64_t>(count));
  }
  SendWqe& wqe = queue.at(first);
  const ClusterWire& wire = nic.profile().wire;
  const Post post{
      .verb = wqe.verb, .payload = Bytes(wqe.length), .inlined = wqe.inlined, .size = Bytes(last_size), .list = count};
  wqe.by_blueflame = goes_by_blueflame(wire.family, wire.blueflame_max, post);
  wqe.batch = Batch{static_cast<std::uint32_t>(count), bytes, 0, false, false};
  write_batch(qp, thread, first, last_size);
}

// Requests on the keys of memory windows, which few programs post. Windows have no local access: drivers accept the
// flag (rdma-core 44, tests/test_mr.py, binds with it).
[[gnu::noinline]] int check_key_request(const SimQp& qp, const ibv_send_wr& wr, std::uint64_t length,
                                        std::uint64_t ahead) {
  constexpr unsigned kAccess =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  if (!has_key_work(qp.qp_type)) return EINVAL;
  if (wr.opcode == IBV_WR_SEND_WITH_INV) return check_send(qp, wr, Verb::send, length, ahead, true);
  const bool binds = wr.opcode == IBV_WR_BIND_MW;
  if (!binds && wr.opcode != IBV_WR_LOCAL_INV) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 || wr.num_sge != 0) return EINVAL;
  const ibv_mw_bind_info& range = wr.bind_mw.bind_info;
  if (binds && (wr.bind_mw.mw == nullptr || (range.mw_access_flags & ~kAccess) != 0)) return EINVAL;
  if (binds && range.mr == nullptr && range.length != 0) return EINVAL;
  return qp.send.posted - qp.send.freed + ahead >= qp.send.depth ? ENOMEM : 0;
}

[[gnu::noinline]] std::uint64_t write_key_request(SimQp& qp, const ibv_send_wr& wr, std::uint64_t length) {
  SendQueue& queue = qp.send;
  SendWqe& wqe = queue.at(queue.posted);
  if (wr.opcode == IBV_WR_SEND_WITH_INV) {
    const std::uint64_t size = write_wqe(qp, wr, Verb::send, length, true);
    wqe.carried = Carried::key;
    return size;
  }
  wqe = SendWqe{};
  wqe.wr_id = wr.wr_id;
  wqe.index = queue.posted;
  wqe.qp = &qp;
  wqe.verb = Verb::send;
  wqe.sequence = qp.requester.sequence_to_post;  // that of the next packet: it has none of its own
  wqe.signaled = qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.fenced = (wr.send_flags & IBV_SEND_FENCE) != 0;
  const bool binds = wr.opcode == IBV_WR_BIND_MW;
  wqe.key_work = binds ? KeyWork::bind : KeyWork::invalidate;
  if (binds) {
    constexpr std::uint32_t kTag = (1u << HostMemory::kKeyTagBits) - 1;
    const ibv_mw_bind_info& range = wr.bind_mw.bind_info;
    wqe.immediate = wr.bind_mw.mw->rkey;
    wqe.rkey = (wqe.immediate & ~kTag) | (wr.bind_mw.rkey & kTag);
    wqe.remote_address = range.addr;
    wqe.compare = range.length;
    wqe.operand = range.mw_access_flags;
    queue.sges_of(wqe.index)->lkey = range.mr != nullptr ? range.mr->lkey : 0;
  } else {
    wqe.rkey = wr.invalidate_rkey;
  }
  const SendLayout layout = key_work_layout(nic_family(qp), binds);
  wqe.bytes = static_cast<std::uint32_t>(layout.blocks_size());
  place(queue, wqe);
  ++queue.posted;
  return layout.size();
}

// Takes the driver's lock of the send queue for a post of the list.
void lock_for_post(SimQp& qp, const ibv_send_wr* list) {
  SimThread* const thread = qp.nic->running_thread();
  if (thread == nullptr || qp.lock.is_alone(*thread)) return;
  const HostProfile& host = qp.nic->profile().host;
  Picos time = host.post_call + host.doorbell;
  for (; list != nullptr; list = list->next) time += host.post_wqe;
  qp.lock.take(*thread, time, host, qp.nic->lock_times());
}

}  // namespace

int post_send(ibv_qp* verbs_qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  SimQp& qp = as_sim(verbs_qp);
  lock_for_post(qp, wr);
  const bool connected = facts(qp.transport).connected;
  const std::uint64_t first = qp.send.posted;
  std::uint64_t size = 0;
  std::uint32_t bytes = 0;
  int error = qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_ERR ? 0 : EINVAL;
  for (; error == 0 && wr != nullptr; wr = wr->next) {
    const std::uint64_t length = length_of(*wr);
    const std::optional<Verb> verb = verb_of(wr->opcode);
    error = verb ? check_send(qp, *wr, *verb, length, 0, connected) : check_key_request(qp, *wr, length, 0);
    if (error != 0) break;
    size = verb ? write_wqe(qp, *wr, *verb, length, connected) : write_key_request(qp, *wr, length);
    bytes += qp.send.at(qp.send.posted - 1).bytes;
  }
  if (error != 0) *bad_wr = wr;
  if (qp.send.posted == first) return error;
  if (qp.state == IBV_QPS_ERR) {
    qp.nic->requester().completer().flush(qp);
  } else {
    post_batch(qp, first, size, bytes);
  }
  return error;
}

int post_send_all(ibv_qp* verbs_qp, ibv_send_wr* list) {
  const SimQp& qp = as_sim(verbs_qp);
  const bool connected = facts(qp.transport).connected;
  std::uint64_t ahead = 0;
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next, ++ahead) {
    const std::uint64_t length = length_of(*wr);
    const std::optional<Verb> verb = verb_of(wr->opcode);
    const int error =
        verb ? check_send(qp, *wr, *verb, length, ahead, connected) : check_key_request(qp, *wr, length, ahead);
    if (error != 0) return error;
  }
  ibv_send_wr* bad = nullptr;
  return post_send(verbs_qp, list, &bad);
}

// ibv_bind_mw(3): windows of type 1.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const ibv_mw_bind_info& range = bind->bind_info;
  if (range.mr == nullptr && (range.addr != 0 || range.length != 0)) return EINVAL;
  if (range.mr != nullptr && range.mr->pd != mw->pd) return EPERM;
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = range;
  ibv_send_wr* bad = nullptr;
  const int error = post_send(qp, &wr, &bad);
  if (error == 0) mw->rkey = wr.bind_mw.rkey;
  return error;
}

namespace {

// Writes the doorbell that arms a completion queue, after synchronizing the thread with the engine. Returns the time at
// which the write has drained to the link.
Picos ring_arm_doorbell(Nic& nic, SimThread* thread) {
  if (thread != nullptr) {
    thread->await_wc_buffers(1);
    thread->sync();
  }
  const Picos departed = write_lines(nic, thread, 1, static_cast<std::uint32_t>(kArmDoorbell.value));
  if (thread != nullptr) thread->spend(nic.profile().host.doorbell);
  return departed;
}

}  // namespace

int req_notify_cq(ibv_cq* verbs_cq, int solicited_only) {
  SimCq& cq = as_sim(verbs_cq);
  Nic& nic = *as_sim(cq.context).nic;
  const Picos departed = ring_arm_doorbell(nic, nic.running_thread());
  nic.completion_events().arm(cq, solicited_only != 0 ? Notify::solicited : Notify::any,
                              departed + nic.bus().propagation());
  return 0;
}

}  // namespace verbscope::sim
