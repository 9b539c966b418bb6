// The half of a NIC that answers: request packets wait in line for the unit of their QP. A SEND takes a RECV; payload
// and CQE are written; READs and atomics are answered, all else is acknowledged on reliable transports, in order.
#pragma once

#include <span>
#include <vector>

#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Responder {
 public:
  explicit Responder(Nic& nic);

  // Binds a new QP to a unit, one after the other.
  void bind(SimQp& qp);

  // A request packet has arrived.
  void receive(Packet& packet);

  // RECVs were posted: the NIC fetches them in aligned groups, ahead of use.
  void prefetch(SimQp& qp);
  void prefetch(SimSrq& srq);

  // The times of each unit so far.
  std::vector<UnitTime> unit_times() const;

  // Completes all RECVs of the QP's own queue, and the one in use, as flushed.
  void flush(SimQp& qp);
  // Drops what waits for the QP before it is destroyed or reset.
  void forget(SimQp& qp);

 private:
  struct alignas(64) Unit {  // one cache line
    PacketQueue line;
    bool busy = false;
    bool waits_for_recv = false;
    bool waits_for_atomic = false;  // an earlier one of the same QP
    bool translated = false;        // the addresses of the packet in front have been looked up
    std::uint16_t generation = 0;   // of its QP when the packet in front was taken up: a reset ends what it began
    bool repeats = false;           // the READ in front was answered before
    std::uint32_t responses = 0;    // packets made of the response to the READ in front
    Picos slot_wanted_at{0};        // when the atomic in front found its slot taken
    Picos waiting_since{0};         // when the packet in front began to wait, or came to the front
    UnitTime time;
  };
  // What is to be done with a packet.
  enum class Verdict { take, repeat, drop, duplicate, gap, invalid, no_access, no_recv, wait_for_recv };

  // responder.cpp
  void note_waited(Unit& unit);
  static void context_read(void* qp, std::uint64_t);
  static void translations_read(void* qp, std::uint64_t);
  static void service_done(void* qp, std::uint64_t packet);
  static void unit_free(void* responder, std::uint64_t unit);
  Unit& unit_of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.responder.unit)]; }
  void serve_next(Unit& unit);
  void begin_service(SimQp& qp, Packet& packet);
  std::uint64_t missing_translations(SimQp& qp, const Packet& packet);
  Picos service_time(SimQp& qp, const Packet& packet, Verdict verdict) const;
  bool take(SimQp& qp, Packet& packet);
  void finish_message(SimQp& qp, const Packet& packet);
  void refuse(SimQp& qp, const Packet& packet, Verdict verdict);
  void front_is_done(Unit& unit);
  void free_later(Unit& unit, Picos when);

  // responder_judge.cpp: what is said to a request
  static bool takes_recv(const SimQp& qp, const Packet& packet);
  Verdict judge(SimQp& qp, const Packet& packet);
  Verdict judge_order(SimQp& qp, const Packet& packet);
  Verdict judge_access(SimQp& qp, const Packet& packet);

  // responder_recv.cpp: RECVs
  static void recvs_fetched(void* qp, std::uint64_t count);
  static void shared_recvs_fetched(void* srq, std::uint64_t count);
  bool inline_receive(const SimQp& qp, const Packet& packet) const;
  void prefetch(RecvQueue& queue, Engine::Action fetched, void* owner, std::uint16_t generation);
  void resume(Unit& unit);
  void take_recv(SimQp& qp);
  ibv_wc_status deliver(SimQp& qp, const Packet& packet);
  ibv_wc_status scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data, bool by_cqe);
  void complete_recv(SimQp& qp, const Packet& packet, ibv_wc_status status);
  void flush_recv(SimQp& qp, std::uint64_t wr_id, std::uint64_t index);

  // responder_answers.cpp: acknowledgements, READ, atomics
  static void response_read(void* qp, std::uint64_t packet);
  static void operand_read(void* qp, std::uint64_t packet);
  static void operand_handled(void* qp, std::uint64_t packet);
  static bool still_there(const SimQp& qp, const Packet& answer, std::uint64_t bytes);
  static void finish_answer(SimQp& qp, Packet& answer, bool there);
  Packet& make_answer(SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload);
  void send_ready_answers(SimQp& qp);
  void acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence);
  bool respond(SimQp& qp, const Packet& packet);
  bool begin_atomic(SimQp& qp, Packet& packet);
  void start_atomic(SimQp& qp, const Packet& packet);
  void repeat_atomic(SimQp& qp, const Packet& packet);
  void give_up_slot(std::uint64_t address);
  void atomic_ended(SimQp& qp, std::uint16_t generation);
  bool in_front(const Unit& unit, const SimQp& qp) const;

  Nic& nic_;
  std::vector<Unit> units_;
  int next_unit_ = 0;
};

}  // namespace verbscope::sim
