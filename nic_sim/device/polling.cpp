#include "nic_sim/device/polling.hpp"

#include <algorithm>
#include <cerrno>

#include "nic_sim/device/data_path.hpp"

namespace verbscope::sim {
namespace {

// True if the engine must advance to `clock`, the polling thread's time, before the result of the poll is known. A CQE
// is known some time before it is visible, but the data that its completion refers to must be in memory.
bool must_catch_up(Nic& nic, SimCq& cq, int entries, Picos clock) {
  const Picos now = nic.engine().now();
  if (clock > now + nic.bus().write_latency()) return true;
  if (nic.payload_writer().under_way() == 0 || cq.waiting() == 0 || entries <= 0) return false;
  const std::uint64_t taken = std::min(cq.waiting(), static_cast<std::uint64_t>(entries));
  return cq.at(cq.polled).visible <= clock && cq.at(cq.polled + taken - 1).visible > now;
}

// Takes the driver's lock of the CQ for a poll of its visible completions.
void lock_for_poll(SimCq& cq, int entries, SimThread& thread, Nic& nic) {
  const HostProfile& host = nic.profile().host;
  const std::uint64_t taken = std::min(cq.waiting(), static_cast<std::uint64_t>(std::max(entries, 0)));
  cq.lock.take(thread, host.poll_call + host.poll_cqe * static_cast<std::int64_t>(taken), host, nic.lock_times());
}

bool is_visible(SimCq& cq, Picos now) {
  return cq.waiting() > 0 && cq.at(cq.polled).visible <= now;
}

// Takes the next completion, and frees the places of its work request and of those before it.
const Completion& take(SimCq& cq) {
  const Completion& done = cq.at(cq.polled++);
  if (done.of_send || done.qp->srq == nullptr) {
    std::uint64_t& freed = done.of_send ? done.qp->send.freed : done.qp->recv.freed;
    freed = std::max(freed, done.index + 1);
  }
  return done;
}

}  // namespace

int poll_cq(ibv_cq* verbs_cq, int entries, ibv_wc* wc) {
  SimCq& cq = as_sim(verbs_cq);
  Nic& nic = *as_sim(cq.context).nic;
  SimThread* thread = nic.running_thread();
  const HostProfile& host = nic.profile().host;
  if (thread != nullptr) {
    if (cq.is_shared()) lock_for_poll(cq, entries, *thread, nic);
    thread->spend_polling(host.poll_call);
    if (must_catch_up(nic, cq, entries, thread->clock())) thread->sync();
  }
  const Picos now = thread != nullptr ? thread->clock() : nic.engine().now();
  int taken = 0;
  while (taken < entries && is_visible(cq, now)) {
    const Completion& done = take(cq);
    ibv_wc& out = wc[taken++];
    out = ibv_wc{};
    out.wr_id = done.wr_id;
    out.status = done.status;
    out.opcode = done.opcode;
    out.byte_len = done.bytes;
    out.imm_data = done.immediate;
    out.qp_num = done.qp->qp_num;
    out.src_qp = done.source_qp;
    out.slid = done.source_lid;
    out.wc_flags = done.flags;
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

// Extended CQs: ibv_create_cq_ex(3). A poll is a call of start_poll and of next_poll for each further completion; both
// cost what ibv_poll_cq costs. The driver holds its lock between start_poll and end_poll, which a simulated thread
// approximates by taking it for each completion.
namespace {

// Makes the next visible completion current. Returns 0, or ENOENT if there is none.
int advance(SimCq& cq, SimThread* thread, Nic& nic) {
  const HostProfile& host = nic.profile().host;
  if (thread != nullptr && must_catch_up(nic, cq, 1, thread->clock())) thread->sync();
  if (!is_visible(cq, time_of(nic))) return ENOENT;
  cq.current = &take(cq);
  cq.wr_id = cq.current->wr_id;
  cq.status = cq.current->status;
  if (thread != nullptr) thread->spend(host.poll_cqe);
  return 0;
}

bool takes_lock(const SimCq& cq, const SimThread* thread) {
  return thread != nullptr && cq.is_shared() && !cq.single_threaded;
}

// EIO: the queue has overrun.
int start_poll(ibv_cq_ex* extended, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  SimCq& cq = as_sim(extended);
  Nic& nic = *as_sim(cq.context).nic;
  SimThread* const thread = nic.running_thread();
  const Picos cost = nic.profile().host.poll_call;
  if (takes_lock(cq, thread)) lock_for_poll(cq, 1, *thread, nic);
  if (thread != nullptr) thread->spend_polling(cost);
  const int result = advance(cq, thread, nic);
  if (result == 0) return 0;
  if (cq.overrun) return EIO;
  if (thread != nullptr) thread->note_empty(cq, cost);
  return result;
}

int next_poll(ibv_cq_ex* extended) {
  SimCq& cq = as_sim(extended);
  Nic& nic = *as_sim(cq.context).nic;
  SimThread* const thread = nic.running_thread();
  if (takes_lock(cq, thread)) cq.lock.take(*thread, nic.profile().host.poll_cqe, nic.profile().host, nic.lock_times());
  return advance(cq, thread, nic);
}

void end_poll(ibv_cq_ex* cq) {
  as_sim(cq).current = nullptr;
}

// The functions that read the current completion.
template <auto member>
auto read(ibv_cq_ex* cq) {
  return as_sim(cq).current->*member;
}

// The adapter takes the time when it writes the CQE.
std::uint64_t read_time(ibv_cq_ex* extended) {
  const SimCq& cq = as_sim(extended);
  return hca_clock(cq.current->visible - as_sim(cq.context).nic->bus().write_latency());
}

}  // namespace

void set_poll_functions(SimCq& cq, std::uint64_t fields) {
  cq.start_poll = &start_poll;
  cq.next_poll = &next_poll;
  cq.end_poll = &end_poll;
  cq.read_opcode = &read<&Completion::opcode>;
  cq.read_wc_flags = &read<&Completion::flags>;
  cq.read_vendor_err = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
  const auto offer = [fields](std::uint64_t field, auto& function, auto implementation) {
    if ((fields & field) != 0) function = implementation;
  };
  offer(IBV_WC_EX_WITH_BYTE_LEN, cq.read_byte_len, &read<&Completion::bytes>);
  offer(IBV_WC_EX_WITH_IMM, cq.read_imm_data, &read<&Completion::immediate>);
  offer(IBV_WC_EX_WITH_QP_NUM, cq.read_qp_num, [](ibv_cq_ex* of) { return as_sim(of).current->qp->qp_num; });
  offer(IBV_WC_EX_WITH_SRC_QP, cq.read_src_qp, &read<&Completion::source_qp>);
  offer(IBV_WC_EX_WITH_SLID, cq.read_slid,
        [](ibv_cq_ex* of) -> std::uint32_t { return as_sim(of).current->source_lid; });
  // As in ibv_wc of ibv_poll_cq.
  offer(IBV_WC_EX_WITH_SL, cq.read_sl, [](ibv_cq_ex*) -> std::uint8_t { return 0; });
  offer(IBV_WC_EX_WITH_DLID_PATH_BITS, cq.read_dlid_path_bits, [](ibv_cq_ex*) -> std::uint8_t { return 0; });
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq.read_completion_ts, &read_time);
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq.read_completion_wallclock_ns, &read_time);
}

}  // namespace verbscope::sim
