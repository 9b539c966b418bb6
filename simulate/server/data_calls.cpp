// Operations on the data path: work requests from messages, polls, events.
#include <fcntl.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cerrno>
#include <optional>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/nic/objects.hpp"
#include "simulate/channel/channel.hpp"
#include "simulate/server/calls.hpp"

namespace verbscope::simulate {
namespace {

// A thread that polls its queues in vain looks at what else it may watch at least this often.
constexpr Picos kLongestPass{20'000'000};

// Reads the work requests of a message. Inline data stay in the message, in which they are contiguous. False if the
// message is broken.
bool read_list(const Call& call, bool datagram, std::uint32_t count) {
  Requests& list = call.requests;
  list.sends.clear();
  list.sges.clear();
  struct Place {
    std::size_t first_sge;
    const std::byte* inline_data;
  };
  boost::container::small_vector<Place, 16> places;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto message = call.in.get<SendMessage>();
    ibv_send_wr wr = message.wr;
    if (datagram) wr.wr.ud.ah = call.process.find<ibv_ah>(Kind::ah, message.ah);
    if (wr.opcode == IBV_WR_BIND_MW) {
      wr.bind_mw.mw = call.process.find<ibv_mw>(Kind::mw, message.mw);
      wr.bind_mw.bind_info.mr = call.process.find<ibv_mr>(Kind::mr, message.mr);
    }
    places.push_back({list.sges.size(), nullptr});
    for (int s = 0; s < wr.num_sge; ++s) list.sges.push_back(call.in.get<ibv_sge>());
    if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
      const auto bytes = call.in.bytes(message.inline_bytes);
      if (bytes.size() < message.inline_bytes) return false;
      places.back().inline_data = bytes.data();
    }
    list.sends.push_back(wr);
  }
  for (std::size_t i = 0; i < list.sends.size(); ++i) {
    ibv_send_wr& wr = list.sends[i];
    wr.next = i + 1 < list.sends.size() ? &list.sends[i + 1] : nullptr;
    wr.sg_list = list.sges.data() + places[i].first_sge;
    const std::byte* data = places[i].inline_data;
    if (data == nullptr) continue;
    for (int s = 0; s < wr.num_sge; ++s) {
      wr.sg_list[s].addr = reinterpret_cast<std::uint64_t>(data);
      data += wr.sg_list[s].length;
    }
  }
  return true;
}

// Tells how many requests were posted before the first bad one.
template <class Wr>
int tell_posted(const Call& call, int error, const std::vector<Wr>& wrs, const Wr* bad) {
  if (error != 0) call.out.put(static_cast<std::uint32_t>(bad == nullptr ? 0 : bad - wrs.data()));
  return error;
}

int post_send(const Call& call) {
  auto* const qp = call.process.find<ibv_qp>(Kind::qp, call.in.get<std::uint32_t>());
  const bool all = call.in.get<bool>();
  const auto count = call.in.get<std::uint32_t>();
  std::vector<ibv_send_wr>& sends = call.requests.sends;
  if (qp == nullptr || count == 0) return qp == nullptr ? EINVAL : 0;
  if (!read_list(call, qp->qp_type == IBV_QPT_UD, count)) return EINVAL;
  if (all) return sim::post_send_all(qp, sends.data());
  ibv_send_wr* bad = nullptr;
  const int error = sim::post_send(qp, sends.data(), &bad);
  return tell_posted(call, error, sends, bad);
}

template <class Post>
int post_recvs(const Call& call, Post&& post) {
  std::vector<ibv_recv_wr>& wrs = call.requests.recvs;
  std::vector<ibv_sge>& sges = call.requests.sges;
  const auto count = call.in.get<std::uint32_t>();
  if (count == 0) return 0;
  wrs.clear();
  sges.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto message = call.in.get<RecvMessage>();
    wrs.push_back({.wr_id = message.wr_id, .next = nullptr, .sg_list = nullptr, .num_sge = message.num_sge});
    for (int s = 0; s < message.num_sge; ++s) sges.push_back(call.in.get<ibv_sge>());
  }
  ibv_sge* sge = sges.data();
  for (std::size_t i = 0; i < wrs.size(); ++i) {
    wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = sge;
    sge += std::max(wrs[i].num_sge, 0);
  }
  ibv_recv_wr* bad = nullptr;
  const int error = post(wrs.data(), &bad);
  return tell_posted(call, error, wrs, bad);
}

// A pass over the same queues that has found nothing begins again: the thread spins until one has a completion, a peer
// writes to its memory, or a signal arrives.
void spin(const Call& call) {
  call.empty.clear();
  call.node.thread().poll_memory(Picos(0));
  call.node.idle_until(call.node.now() + kLongestPass);
}

bool begins_again(const Call& call, const ibv_cq* cq) {
  return std::ranges::find(call.empty, cq) != call.empty.end();
}

int poll_cq(const Call& call) {
  auto* const cq = call.process.find<ibv_cq>(Kind::cq, call.in.get<std::uint32_t>());
  const int most = std::min(call.in.get<int>(), static_cast<int>(kMessageBytes / 2 / sizeof(ibv_wc)));
  if (cq == nullptr) {
    call.out.put(-1);
    return EINVAL;
  }
  std::vector<ibv_wc>& wcs = call.requests.completions;
  wcs.resize(static_cast<std::size_t>(std::max(most, 0)));
  if (begins_again(call, cq)) spin(call);
  const int polled = sim::poll_cq(cq, most, wcs.data());
  if (polled == 0) call.empty.push_back(cq);
  if (polled > 0) call.empty.clear();
  call.out.put(polled);
  for (int i = 0; i < polled; ++i) call.out.put(wcs[static_cast<std::size_t>(i)]);
  return 0;
}

int poll_extended(const Call& call, bool first) {
  auto* const cq = call.process.find<ibv_cq>(Kind::cq, call.in.get<std::uint32_t>());
  if (cq == nullptr) return EINVAL;
  sim::SimCq& queue = sim::as_sim(cq);
  if (queue.start_poll == nullptr) return EOPNOTSUPP;
  ibv_poll_cq_attr attr{};
  if (first && begins_again(call, cq)) spin(call);
  const int error = first ? queue.start_poll(&queue, &attr) : queue.next_poll(&queue);
  if (error == ENOENT && first) call.empty.push_back(cq);
  if (error != 0) return error;
  call.empty.clear();
  const sim::Completion& done = *queue.current;
  ExtendedCompletion out{};
  out.wc.wr_id = done.wr_id;
  out.wc.status = done.status;
  out.wc.opcode = done.opcode;
  out.wc.byte_len = done.bytes;
  out.wc.imm_data = done.immediate;
  out.wc.qp_num = done.qp->qp_num;
  out.wc.src_qp = done.source_qp;
  out.wc.slid = done.source_lid;
  out.wc.wc_flags = done.flags;
  if (queue.read_completion_ts != nullptr) out.timestamp = queue.read_completion_ts(&queue);
  if (queue.read_completion_wallclock_ns != nullptr) out.timestamp = queue.read_completion_wallclock_ns(&queue);
  call.out.put(out);
  return 0;
}

int get_cq_event(const Call& call) {
  auto* const channel = call.process.find<ibv_comp_channel>(Kind::channel, call.in.get<std::uint32_t>());
  if (channel == nullptr) return EINVAL;
  auto& events = static_cast<sim::SimChannel*>(channel)->events;
  sim::SimThread& thread = call.node.thread();
  const bool waits = (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
  std::optional<ibv_cq*> cq = events.await(thread, waits ? Picos::max() : thread.clock(), call.interrupted);
  if (!cq) return waits ? EINTR : EAGAIN;
  call.out.put((*cq)->cq_context);
  return 0;
}

}  // namespace

int execute_data(Operation operation, const Call& call) {
  switch (operation) {
    case Operation::post_send:
      call.empty.clear();
      return post_send(call);
    case Operation::post_recv: {
      call.empty.clear();
      auto* const qp = call.process.find<ibv_qp>(Kind::qp, call.in.get<std::uint32_t>());
      if (qp == nullptr) return EINVAL;
      return post_recvs(call, [qp](ibv_recv_wr* list, ibv_recv_wr** bad) { return sim::post_recv(qp, list, bad); });
    }
    case Operation::post_srq_recv: {
      call.empty.clear();
      auto* const srq = call.process.find<ibv_srq>(Kind::srq, call.in.get<std::uint32_t>());
      if (srq == nullptr) return EINVAL;
      return post_recvs(call,
                        [srq](ibv_recv_wr* list, ibv_recv_wr** bad) { return sim::post_srq_recv(srq, list, bad); });
    }
    case Operation::bind_mw: {
      auto* const qp = call.process.find<ibv_qp>(Kind::qp, call.in.get<std::uint32_t>());
      auto* const mw = call.process.find<ibv_mw>(Kind::mw, call.in.get<std::uint32_t>());
      auto* const mr = call.process.find<ibv_mr>(Kind::mr, call.in.get<std::uint32_t>());
      auto bind = call.in.get<ibv_mw_bind>();
      bind.bind_info.mr = mr;
      if (qp == nullptr || mw == nullptr) return EINVAL;
      const int error = sim::bind_mw(qp, mw, &bind);
      if (error == 0) call.out.put(mw->rkey);
      return error;
    }
    case Operation::poll_cq:
      return poll_cq(call);
    case Operation::start_poll:
      return poll_extended(call, true);
    case Operation::next_poll:
      return poll_extended(call, false);
    case Operation::end_poll: {
      auto* const cq = call.process.find<ibv_cq>(Kind::cq, call.in.get<std::uint32_t>());
      if (cq != nullptr && sim::as_sim(cq).end_poll != nullptr) sim::as_sim(cq).end_poll(&sim::as_sim(cq));
      return 0;
    }
    case Operation::req_notify_cq: {
      auto* const cq = call.process.find<ibv_cq>(Kind::cq, call.in.get<std::uint32_t>());
      return cq == nullptr ? EINVAL : sim::req_notify_cq(cq, call.in.get<int>());
    }
    case Operation::get_cq_event:
      return get_cq_event(call);
    default:
      return ENOSYS;
  }
}

int execute(Operation operation, const Call& call) {
  return operation >= Operation::post_send || operation == Operation::bind_mw || operation == Operation::get_cq_event
             ? execute_data(operation, call)
             : execute_control(operation, call);
}

}  // namespace verbscope::simulate
