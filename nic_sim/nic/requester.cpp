#include "nic_sim/nic/requester.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/windows.hpp"
#include "nic_sim/time/engine.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

namespace {

// True if the request carries the bytes of the message (SEND, WRITE); false if the response does.
bool carries_payload(const SendWqe& wqe) {
  return facts(wqe.verb).carries_payload;
}

// Size of a request's headers behind its BTH.
Bytes extensions(const Packet& packet) {
  Bytes bytes = facts(packet.transport).packet_header;
  static_assert(kImmDt == kIeth);
  if (packet.carried != Carried::nothing) bytes += kImmDt;
  if (packet.first) bytes += facts(packet.verb).request_header;
  return bytes;
}

}  // namespace

void PacketBuilder::send_next(SimQp& qp, const SendWqe& wqe) {
  Packet& packet = make(qp, wqe);
  count(qp, wqe, packet);
  if (wqe.inlined) {
    if (packet.payload > 0) {
      std::memcpy(packet.data(), qp.send.inline_data_of(wqe.index) + packet.offset, packet.payload);
    }
  } else if (packet.payload > 0 && !read_payload(qp, wqe, packet)) {
    packets_.give_back(packet);
    return completer_.fail_at(qp, wqe, IBV_WC_LOC_PROT_ERR);
  }
  qp.requester.unsent.push(packet);
  send_ready(qp);
}

Packet& PacketBuilder::make(const SimQp& qp, const SendWqe& wqe) {
  const std::uint32_t number = qp.requester.packet_of_next;
  const std::uint32_t offset = number * qp.path_mtu;
  Packet& packet = packets_.take(carries_payload(wqe) ? std::min(wqe.length - offset, qp.path_mtu) : 0);
  packet.kind = Packet::Kind::request;
  packet.verb = wqe.verb;
  packet.transport = qp.transport;
  packet.first = number == 0;
  packet.last = number + 1 == wqe.packets;
  packet.carried = packet.last ? wqe.carried : Carried::nothing;
  packet.global = wqe.global;
  packet.solicited = wqe.solicited && packet.last;
  packet.completes = packet.last && wqe.signaled && !facts(qp.transport).reliable;
  packet.port = qp.port;
  packet.source_node = node_;
  packet.target_node = wqe.target_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = wqe.target_qp;
  packet.sequence = wqe.sequence + number;
  packet.immediate = wqe.immediate;
  packet.qkey = wqe.qkey;
  packet.reads_left = 0;
  packet.offset = offset;
  packet.cookie = with_generation(qp.generation, wqe.index);
  packet.remote_address = wqe.remote_address;
  packet.rkey = wqe.rkey;
  packet.length = wqe.length;
  packet.operand = wqe.operand;
  packet.compare = wqe.compare;
  packet.wire_bytes = framing_.bytes(packet.payload, extensions(packet), packet.global);
  packet.priority = wqe.priority;
  return packet;
}

void PacketBuilder::count(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  ++counts_.packets_sent;
  packet.counted = false;
  if (sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    ++counts_.packets_resent;
  } else {
    qp.requester.sequence_unsent = packet.sequence + (carries_payload(wqe) ? 1 : wqe.sequences);
    packet.counted = packet.last;
  }
}

// Starts the DMA reads of a payload that is not inline; the unit does not wait for them. Returns false if the program
// has no access to the memory.
bool PacketBuilder::read_payload(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool granted = walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, packet.offset, packet.payload,
                                 [this, &qp](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                                   pieces_.push_back({address, bytes});
                                   return memory_.granted(qp, lkey, address, bytes, Region::kLocalRead) != nullptr;
                                 });
  packet.reads_left = static_cast<std::uint32_t>(pieces_.size());
  if (granted) {
    for (const Piece& piece : pieces_) {
      bus_.dma_read(piece.address, piece.bytes, events_.payload_read, events_.requester, as_argument(packet));
    }
  }
  pieces_.clear();
  return granted;
}

void PacketBuilder::payload_read(SimQp& qp, Packet& packet) {
  if (--packet.reads_left > 0) return;
  // This may be a repeated packet whose first copy was acknowledged meanwhile. Then the work request is done and its
  // place may be reused; the receiver drops the copy, whatever is in it.
  const std::uint64_t wqe = without_generation(packet.cookie);
  const bool stale = qp.state != IBV_QPS_RTS || !of_this_generation(qp, packet.cookie) || wqe < qp.send.done;
  if (!stale && !gather(qp, packet)) completer_.fail_at(qp, qp.send.at(wqe), IBV_WC_LOC_PROT_ERR);
  send_ready(qp);
}

// Copies the payload into the packet. Returns false if a region was deregistered during the read.
bool PacketBuilder::gather(SimQp& qp, Packet& packet) const {
  std::byte* out = packet.data();
  return walk_sges({qp.send.sges_of(without_generation(packet.cookie)), qp.send.max_sge}, packet.offset, packet.payload,
                   [this, &out](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                     const Region* region = memory_.find(lkey, address, bytes);
                     if (region == nullptr) return false;
                     HostMemory::read(*region, address, out, bytes);
                     out += bytes;
                     return true;
                   });
}

// Packets leave in order, each when its payload was read and the rate of the QP allows it.
void PacketBuilder::send_ready(SimQp& qp) {
  PacketQueue& unsent = qp.requester.unsent;
  while (!unsent.empty() && unsent.front().reads_left == 0 && !qp.requester.waits_for_rate) {
    Packet& packet = unsent.front();
    const bool wanted = qp.state == IBV_QPS_RTS && of_this_generation(qp, packet.cookie);
    if (wanted && !congestion_.may_send(qp, packet, events_.rate_allows, events_.requester)) {
      qp.requester.waits_for_rate = true;
      return;
    }
    unsent.pop(packets_.memory());
    if (wanted) {
      fabric_.send(packet);
    } else {
      packets_.give_back(packet);
    }
  }
}

void PacketBuilder::rate_allows(SimQp& qp) {
  qp.requester.waits_for_rate = false;
  send_ready(qp);
  scheduler_.activate(qp);
}

std::uint64_t WqeProcessor::missing_translations(SimQp& qp) {
  const SendWqe& wqe = qp.send.at(qp.send.next);
  std::uint64_t missing = 0;
  if (!wqe.inlined && wqe.length > 0 && qp.state == IBV_QPS_RTS && qp.send.has_work()) {
    const std::uint64_t begin = qp.requester.packet_of_next * std::uint64_t{qp.path_mtu};
    const std::uint64_t limit = wqe.wants_response() ? wqe.length : qp.path_mtu;
    missing = memory_.missing_translations({qp.send.sges_of(wqe.index), wqe.sges}, begin,
                                           std::min(wqe.length - begin, limit));
  }
  if (wqe.inlined && wqe.length > 0) prefetch(qp.send.inline_data_of(wqe.index), wqe.length);
  return missing;
}

Picos WqeProcessor::begin_work(SimQp& qp) {
  SendWqe& wqe = qp.send.at(qp.send.next);
  Picos time = profile_.next_packet;
  if (qp.requester.packet_of_next == 0) {
    const auto blocks = static_cast<std::int64_t>(wqe.bytes / kWqeBlock.value);
    time = (wqe.by_blueflame ? profile_.blueflame_wqe : profile_.doorbell_wqe) + profile_.wqe_block * blocks;
    if (!wqe.inlined && wqe.length > 0 && carries_payload(wqe)) time += profile_.gather;
    if (std::exchange(wqe.led_reread, false)) {
      time += profile_.reread_wqe;
      scheduler_.note_reread(qp, profile_.reread_wqe);
    }
  }
  fetcher_.unit_starts(qp, wqe);
  return scheduler_.begin_work(qp, time);
}

void WqeProcessor::send_packet(SimQp& qp) {
  if (qp.state != IBV_QPS_RTS || qp.requester.must_wait() || !qp.send.has_work()) return;
  SendWqe& wqe = qp.send.at(qp.send.next);
  if (wqe.packets != 1) {
    if (wqe.packets == 0) return do_key_work(qp, wqe);
    if (facts(qp.transport).one_packet) return completer_.fail_at(qp, wqe, IBV_WC_LOC_LEN_ERR);
  }
  packets_.send_next(qp, wqe);
  if (qp.state != IBV_QPS_RTS) return;
  if (wqe.wants_response()) qp.reads.begin(wqe.index);
  if (++qp.requester.packet_of_next == wqe.packets) wqe_sent(qp, wqe);
}

// It completes in order: after the peer has confirmed all earlier packets.
void WqeProcessor::do_key_work(SimQp& qp, SendWqe& wqe) {
  if (wqe.key_work == KeyWork::bind || wqe.key_work == KeyWork::invalidate) {
    const ibv_wc_status status = perform_key_work(memory_, qp, wqe);
    if (status != IBV_WC_SUCCESS) return completer_.fail_at(qp, wqe, status);
    wqe.key_work = wqe.key_work == KeyWork::bind ? KeyWork::bound : KeyWork::invalidated;
  }
  wqe_sent(qp, wqe);
  completer_.complete_all_confirmed(qp);
}

void WqeProcessor::wqe_sent(SimQp& qp, SendWqe& wqe) {
  SendQueue& queue = qp.send;
  ++queue.next;
  qp.requester.packet_of_next = 0;
  fetcher_.mark_sent(wqe);
  if (facts(qp.transport).reliable) {
    if (queue.done + 1 == queue.next) qp.requester.progress_at = engine_.now();
    retransmitter_.start_timer(qp);
  }
}

// The steps of a WQE's life in their order, then the steps that few WQEs take.
enum class Requester::Step {
  batch_arrives,
  context_ready,
  wqes_fetched,
  unit_assigned,
  translations_read,
  service_done,
  payload_read,
  sent,
  answered,

  wqes_reread,
  rate_allows,
  wqe_read_for_answer,
  wqe_handled_for_answer,
  rnr_wait_over,
  retry_due
};

Requester::Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile,
                     NicCounts& counts, EthernetCounts& ethernet, const QpTable& qps, QpContexts& contexts,
                     HostMemory& memory, Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes,
                     AsyncEvents& async_events, RecvConsumer& recvs, ReceivingUnits& units, std::uint32_t node,
                     std::uint64_t seed)
    : engine_(engine),
      bus_(bus),
      profile_(profile.nic),
      qps_(qps),
      contexts_(contexts),
      events_{.requester = this,
              .wqes_fetched = &on<Step::wqes_fetched>,
              .wqes_reread = &on<Step::wqes_reread>,
              .sent = &on<Step::sent>,
              .wqe_read_for_answer = &on<Step::wqe_read_for_answer>,
              .wqe_handled_for_answer = &on<Step::wqe_handled_for_answer>,
              .rnr_wait_over = &on<Step::rnr_wait_over>,
              .retry_due = &on<Step::retry_due>,
              .payload_read = &on<Step::payload_read>,
              .rate_allows = &on<Step::rate_allows>},
      scheduler_(engine, profile.nic.requester_units),
      fetcher_(engine, bus, profile.nic, counts, events_, scheduler_, seed),
      completer_(fabric, pool.memory(), fetcher_, recvs, units, cqes, async_events),
      retransmitter_(engine, profile.nic, ethernet.ack_timeout_ps, events_, scheduler_, fetcher_, completer_),
      packets_(bus, fabric, pool, profile, counts, events_, memory, congestion, scheduler_, completer_, node),
      processor_(engine, profile.nic, memory, scheduler_, fetcher_, packets_, completer_, retransmitter_),
      answers_(engine, bus, fabric, pool.memory(), profile.nic, counts, events_, memory, payload_writer, units,
               scheduler_, fetcher_, completer_, retransmitter_) {}

// The life of a send WQE, from doorbell to completion. Each case runs until the NIC must wait; the event it waits for
// starts the next case. `argument` is the argument of the event.
template <Requester::Step step>
inline void Requester::advance(SimQp& qp, std::uint64_t argument) {
  switch (step) {
    case Step::batch_arrives:  // the batch's doorbell, or the WQE itself by BlueFlame
      if (!contexts_.lookup(qp.requester_context, &on<Step::context_ready>, this, argument)) return;
      [[fallthrough]];
    case Step::context_ready:
      fetcher_.context_ready(qp, QpWord::count(argument));
      while (fetcher_.begin_next(qp)) serve();  // doorbell: read the WQEs by DMA; BlueFlame: the QP joins the line
      return;
    case Step::wqes_fetched:
      fetcher_.fetched(qp, QpWord::count(argument));  // the QP joins the line
      break;
    case Step::unit_assigned:
      if (const std::uint64_t missing = processor_.missing_translations(qp); missing > 0) {
        return bus_.dma_read(0, missing * kCacheLine.value, &on<Step::translations_read>, this, as_argument(qp));
      }
      [[fallthrough]];
    case Step::translations_read:
      return engine_.schedule(processor_.begin_work(qp), &on<Step::service_done>, this, as_argument(qp));
    case Step::service_done:
      processor_.send_packet(qp);  // inline payload: send it; else read the payload by DMA
      scheduler_.work_done(qp);    // the QP joins the line again for its next packet or WQE
      break;
    case Step::payload_read:
      packets_.payload_read(qp, as_packet(argument));  // sends the packet
      break;
    case Step::sent:  // UC and UD: the last packet has left the port
      completer_.sent(qp, QpWord::count(argument));
      break;
    case Step::answered:  // RC: an ACK or a response, which may complete several WQEs
      answers_.take(qp, as_packet(argument));
      break;
    // Steps that few WQEs take: after eviction from the WQE cache, congestion, a receiver without RECVs, and loss.
    case Step::wqes_reread:
      fetcher_.reread_done(qp, QpWord::count(argument));
      break;
    case Step::rate_allows:
      packets_.rate_allows(qp);
      break;
    case Step::wqe_read_for_answer:
      answers_.wqe_reread(qp, argument);
      break;
    case Step::wqe_handled_for_answer:
      answers_.wqe_handled(qp, QpWord::count(argument));
      break;
    case Step::rnr_wait_over:
      retransmitter_.rnr_wait_over(qp, QpWord::count(argument));
      break;
    case Step::retry_due:
      retransmitter_.retry_due(qp);
      break;
  }
  serve();
}

// Gives idle units the QPs in line. A QP whose next WQE was evicted leaves the line until the WQE was read again.
void Requester::serve_line() {
  while (SimQp* qp = scheduler_.next_in_line()) {
    if (!fetcher_.next_ready(*qp)) continue;
    scheduler_.give_unit(*qp);
    advance<Step::unit_assigned>(*qp, 0);
  }
}

// The QP of an event; null if it was destroyed or reset, or no longer sends.
template <Requester::Step step>
inline SimQp* Requester::qp_of(std::uint64_t argument) const {
  if constexpr (step == Step::translations_read || step == Step::service_done || step == Step::rate_allows) {
    return &as_qp(argument);
  } else if constexpr (step == Step::payload_read) {
    return &qps_.find_any(as_packet(argument).source_qp);
  } else {
    SimQp* const qp = qps_.current(argument);
    return qp != nullptr && qp->state == IBV_QPS_RTS ? qp : nullptr;
  }
}

template <Requester::Step step>
void Requester::on(void* object, std::uint64_t argument) {
  Requester& self = *static_cast<Requester*>(object);
  SimQp* const qp = self.qp_of<step>(argument);
  if (qp != nullptr) self.advance<step>(*qp, argument);
}

void Requester::batch_arrives(SimQp& qp, std::uint64_t batch, Picos when) {
  engine_.schedule(when + profile_.front_end + contexts_.delay(qp), &on<Step::batch_arrives>, this,
                   QpWord::make(qp.qp_num, static_cast<std::uint16_t>(batch), without_generation(batch)));
}

void Requester::left_port(SimQp& qp, const Packet& packet, Picos when) {
  const auto generation = static_cast<std::uint16_t>(packet.cookie);  // not the QP's: a reset may have happened since
  engine_.schedule(when, events_.sent, this, QpWord::make(qp.qp_num, generation, without_generation(packet.cookie)));
}

void Requester::take_answer(SimQp& qp, Packet& answer) {
  advance<Step::answered>(qp, as_argument(answer));
}

}  // namespace verbscope::sim
