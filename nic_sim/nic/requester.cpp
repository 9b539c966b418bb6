#include "nic_sim/nic/requester.hpp"

namespace verbscope::sim {

// The steps of a WQE's life, in its order; behind them those that few WQEs have.
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

// The life of a send WQE. A step ends where the NIC waits, and the event for which it waits begins the next. `argument`
// is the event's.
template <Requester::Step step>
inline void Requester::live(SimQp& qp, std::uint64_t argument) {
  switch (step) {
    case Step::batch_arrives:  // the doorbell of its batch, or the WQE itself by BlueFlame
      if (!contexts_.at_hand(qp.requester_context, &on<Step::context_is_here>, this, argument)) return;
      [[fallthrough]];
    case Step::context_is_here:
      fetcher_.context_is_here(qp, QpWord::count(argument));
      while (fetcher_.begin_next(qp)) serve();  // rung for: DMA reads of WQEs; else the QP stands in line
      return;
    case Step::wqes_fetched:
      fetcher_.fetched(qp, QpWord::count(argument));  // the QP stands in line
      break;
    case Step::unit_has_it:
      if (const std::uint64_t missing = processor_.missing_translations(qp); missing > 0) {
        return bus_.dma_read(0, missing * kCacheLine.value, &on<Step::translations_read>, this, as_argument(qp));
      }
      [[fallthrough]];
    case Step::translations_read:
      return engine_.schedule(processor_.begin_work(qp), &on<Step::unit_has_worked>, this, as_argument(qp));
    case Step::unit_has_worked:
      processor_.send_packet(qp);  // not inline: DMA reads of its payload; else it is sent
      scheduler_.work_done(qp);    // for the next packet, or the next WQE, the QP stands in line again
      break;
    case Step::payload_read:
      packets_.payload_read(qp, as_packet(argument));  // it is sent
      break;
    case Step::sent:  // UC, UD: the last packet has left the port
      completer_.sent(qp, QpWord::count(argument));
      break;
    case Step::answered:  // RC: by an acknowledgement or a response, which may end several WQEs
      answers_.take(qp, as_packet(argument));
      break;
    default:
      break;
  }
  serve();
}

// What few WQEs meet: eviction from the WQE cache, congestion, receivers without RECVs, and loss.
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

// Idle units take the QPs that stand in line. Whose WQE was evicted waits until it has been read again.
void Requester::serve_line() {
  while (SimQp* qp = scheduler_.next_in_line()) {
    if (!fetcher_.at_hand(*qp)) continue;
    scheduler_.give_unit(*qp);
    live<Step::unit_has_it>(*qp, 0);
  }
}

// Whose event it is; null: the QP is gone, was reset, or sends no more.
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
  const auto generation = static_cast<std::uint16_t>(packet.cookie);  // it may have waited at the port for longer
  engine_.schedule(when, events_.sent, this, QpWord::make(qp.qp_num, generation, without_generation(packet.cookie)));
}

void Requester::take_answer(SimQp& qp, Packet& answer) {
  live<Step::answered>(qp, as_argument(answer));
}

}  // namespace verbscope::sim
