#include "nic_sim/nic/requester.hpp"

namespace verbscope::sim {

// The steps of a WQE's life in their order, then the steps that few WQEs take.
enum class Requester::Step {
  batch_arrives,
  context_is_here,
  wqes_fetched,
  unit_has_it,
  translations_read,
  unit_has_worked,
  payload_read,
  sent,
  answered,

  wqes_read_again,
  rate_allows,
  wqe_read_for_answer,
  wqe_handled_for_answer,
  receiver_wait_over,
  retry_due
};

Requester::Requester(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, const Profile& profile,
                     NicCounts& counts, EthernetCounts& ethernet, const QpTable& qps, QpContexts& contexts,
                     HostMemory& memory, Congestion& congestion, PayloadWriter& payload_writer, CqeWriter& cqes,
                     RecvConsumer& recvs, ReceivingUnits& units, std::uint32_t node, std::uint64_t seed)
    : engine_(engine),
      bus_(bus),
      profile_(profile.nic),
      qps_(qps),
      contexts_(contexts),
      events_{.requester = this,
              .wqes_fetched = &on<Step::wqes_fetched>,
              .wqes_read_again = &on<Step::wqes_read_again>,
              .sent = &on<Step::sent>,
              .wqe_read_for_answer = &on<Step::wqe_read_for_answer>,
              .wqe_handled_for_answer = &on<Step::wqe_handled_for_answer>,
              .receiver_wait_over = &on<Step::receiver_wait_over>,
              .retry_due = &on<Step::retry_due>,
              .payload_read = &on<Step::payload_read>,
              .rate_allows = &on<Step::rate_allows>},
      scheduler_(engine, profile.nic.requester_units),
      fetcher_(engine, bus, profile.nic, counts, events_, scheduler_, seed),
      completer_(fabric, pool.memory(), fetcher_, recvs, units, cqes),
      retransmitter_(engine, profile.nic, ethernet.ack_timeout_ps, events_, scheduler_, fetcher_, completer_),
      packets_(bus, fabric, pool, profile.wire.link_type, counts, events_, memory, congestion, scheduler_, completer_,
               node),
      processor_(engine, profile.nic, memory, scheduler_, fetcher_, packets_, completer_, retransmitter_),
      answers_(engine, bus, fabric, pool.memory(), profile.nic, counts, events_, memory, payload_writer, units,
               scheduler_, fetcher_, completer_, retransmitter_) {}

// The life of a send WQE, from doorbell to completion. Each case runs until the NIC must wait; the event it waits for
// starts the next case. `argument` is the argument of the event.
template <Requester::Step step>
inline void Requester::live(SimQp& qp, std::uint64_t argument) {
  switch (step) {
    case Step::batch_arrives:  // the batch's doorbell, or the WQE itself by BlueFlame
      if (!contexts_.at_hand(qp.requester_context, &on<Step::context_is_here>, this, argument)) return;
      [[fallthrough]];
    case Step::context_is_here:
      fetcher_.context_is_here(qp, QpWord::count(argument));
      while (fetcher_.begin_next(qp)) serve();  // doorbell: read the WQEs by DMA; BlueFlame: the QP joins the line
      return;
    case Step::wqes_fetched:
      fetcher_.fetched(qp, QpWord::count(argument));  // the QP joins the line
      break;
    case Step::unit_has_it:
      if (const std::uint64_t missing = processor_.missing_translations(qp); missing > 0) {
        return bus_.dma_read(0, missing * kCacheLine.value, &on<Step::translations_read>, this, as_argument(qp));
      }
      [[fallthrough]];
    case Step::translations_read:
      return engine_.schedule(processor_.begin_work(qp), &on<Step::unit_has_worked>, this, as_argument(qp));
    case Step::unit_has_worked:
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
    default:
      break;
  }
  serve();
}

// Steps that few WQEs take: after eviction from the WQE cache, congestion, a receiver without RECVs, and loss.
template <Requester::Step step>
inline void Requester::detour(SimQp& qp, std::uint64_t argument) {
  switch (step) {
    case Step::wqes_read_again:
      fetcher_.read_again_is_back(qp, QpWord::count(argument));
      break;
    case Step::rate_allows:
      packets_.rate_allows(qp);
      break;
    case Step::wqe_read_for_answer:
      answers_.wqe_is_back(qp, argument);
      break;
    case Step::wqe_handled_for_answer:
      answers_.wqe_is_handled(qp, QpWord::count(argument));
      break;
    case Step::receiver_wait_over:
      retransmitter_.receiver_wait_over(qp, QpWord::count(argument));
      break;
    case Step::retry_due:
      retransmitter_.retry_due(qp);
      break;
    default:
      break;
  }
  serve();
}

// Gives idle units the QPs in line. A QP whose next WQE was evicted leaves the line until the WQE was read again.
void Requester::serve_line() {
  while (SimQp* qp = scheduler_.next_in_line()) {
    if (!fetcher_.at_hand(*qp)) continue;
    scheduler_.give_unit(*qp);
    live<Step::unit_has_it>(*qp, 0);
  }
}

// The QP of an event; null if it was destroyed or reset, or no longer sends.
template <Requester::Step step>
inline SimQp* Requester::qp_of(std::uint64_t argument) const {
  if constexpr (step == Step::translations_read || step == Step::unit_has_worked || step == Step::rate_allows) {
    return &as_qp(argument);
  } else if constexpr (step == Step::payload_read) {
    return &qps_.once_there(as_packet(argument).source_qp);
  } else {
    SimQp* const qp = qps_.current(argument);
    return qp != nullptr && qp->state == IBV_QPS_RTS ? qp : nullptr;
  }
}

template <Requester::Step step>
void Requester::on(void* object, std::uint64_t argument) {
  Requester& self = *static_cast<Requester*>(object);
  SimQp* const qp = self.qp_of<step>(argument);
  if (qp == nullptr) return;
  if constexpr (step <= Step::answered) {
    self.live<step>(*qp, argument);
  } else {
    self.detour<step>(*qp, argument);
  }
}

void Requester::batch_arrives(SimQp& qp, std::uint64_t batch, Picos when) {
  engine_.schedule(when + profile_.front_end + contexts_.distance(qp), &on<Step::batch_arrives>, this,
                   QpWord::make(qp.qp_num, static_cast<std::uint16_t>(batch), without_generation(batch)));
}

void Requester::left_port(SimQp& qp, const Packet& packet, Picos when) {
  const auto generation = static_cast<std::uint16_t>(packet.cookie);  // not the QP's: a reset may have happened since
  engine_.schedule(when, events_.sent, this, QpWord::make(qp.qp_num, generation, without_generation(packet.cookie)));
}

void Requester::take_answer(SimQp& qp, Packet& answer) {
  live<Step::answered>(qp, as_argument(answer));
}

}  // namespace verbscope::sim
