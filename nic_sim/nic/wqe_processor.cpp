#include "nic_sim/nic/wqe_processor.hpp"

#include <algorithm>
#include <utility>

#include "nic_sim/time/prefetch.hpp"
#include "verbs/sge_walk.hpp"

namespace verbscope::sim {
// First looks up the addresses of the packet that comes next, or all that the response to a READ will bring.
void WqeProcessor::take_up(SimQp& qp) {
  const SendWqe& wqe = qp.send.at(qp.send.next);
  std::uint64_t missing = 0;
  if (!wqe.inlined && wqe.length > 0 && qp.state == IBV_QPS_RTS && qp.send.has_work()) {
    const std::uint64_t begin = qp.requester.packet_of_next * std::uint64_t{qp.path_mtu};
    const std::uint64_t most = wqe.wants_response() ? wqe.length : qp.path_mtu;
    walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, begin, std::min(wqe.length - begin, most),
              [this, &missing](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                missing += memory_.missing_translations(lkey, address, bytes);
                return true;
              });
  }
  if (wqe.inlined && wqe.length > 0) prefetch(qp.send.inline_data_of(wqe.index), wqe.length);
  if (missing == 0) return begin(qp);
  bus_.dma_read(0, missing * kCacheLine.value, &translations_read, this, as_argument(qp));
}

void WqeProcessor::translations_read(void* object, std::uint64_t qp) {
  static_cast<WqeProcessor*>(object)->begin(as_qp(qp));
}

void WqeProcessor::begin(SimQp& qp) {
  SendWqe& wqe = qp.send.at(qp.send.next);
  Picos time = profile_.next_packet;
  if (qp.requester.packet_of_next == 0) {
    const auto blocks = static_cast<std::int64_t>(wqe.bytes / kWqeBlock.value);
    time = (wqe.by_blueflame ? profile_.blueflame_wqe : profile_.doorbell_wqe) + profile_.wqe_block * blocks;
    if (std::exchange(wqe.led_reread, false)) {
      time += profile_.reread_wqe;
      scheduler_.note_reread(qp, profile_.reread_wqe);
    }
  }
  if (!wqe.inlined && wqe.length > 0 && facts(wqe.verb).carries_payload) time += profile_.gather;
  fetcher_.taken_up(qp, wqe);
  engine_.schedule(scheduler_.begin_work(qp, time), &time_is_over, this, as_argument(qp));
}

void WqeProcessor::time_is_over(void* object, std::uint64_t argument) {
  WqeProcessor& self = *static_cast<WqeProcessor*>(object);
  SimQp& qp = as_qp(argument);
  if (qp.state == IBV_QPS_RTS && !qp.requester.must_wait() && qp.send.has_work()) self.send_packet(qp);
  self.scheduler_.work_done(qp);
}

void WqeProcessor::send_packet(SimQp& qp) {
  SendWqe& wqe = qp.send.at(qp.send.next);
  if (facts(qp.transport).one_packet && wqe.packets > 1) {
    return completer_.fail_at(qp, wqe, IBV_WC_LOC_LEN_ERR);  // a datagram is one packet
  }
  packets_.send_next(qp, wqe);
  if (qp.state != IBV_QPS_RTS) return;
  if (wqe.wants_response()) qp.reads.begin(wqe.index);
  if (++qp.requester.packet_of_next == wqe.packets) wqe_sent(qp, wqe);
}

void WqeProcessor::wqe_sent(SimQp& qp, SendWqe& wqe) {
  SendQueue& queue = qp.send;
  ++queue.next;
  qp.requester.packet_of_next = 0;
  fetcher_.is_sent(wqe);
  if (facts(qp.transport).reliable) {
    if (queue.done + 1 == queue.next) qp.requester.progress_at = engine_.now();
    retransmitter_.start_timer(qp);
  }
}

}  // namespace verbscope::sim
