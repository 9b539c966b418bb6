// The half of a NIC that asks: takes doorbells and BlueFlame WQEs, fetches WQEs, has them processed by the unit of
// their QP, reads payload, takes the responses to READs and atomics, and completes WQEs when sent (unreliable),
// acknowledged or answered (reliable).
#pragma once

#include <deque>
#include <vector>

#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class Requester {
 public:
  explicit Requester(Nic& nic);

  // Binds a new QP to a unit, one after the other.
  void bind(SimQp& qp);

  // An MMIO that announces a batch of `qp` (its first WQE, with_generation) has left the CPU and reaches the NIC at
  // `when`.
  void announce(SimQp& qp, std::uint64_t batch, Picos when);

  // A packet that completes its work request has left the port at `when`.
  void left_port(const Packet& packet, Picos when);

  // An acknowledgement of either kind or a response has arrived; gives the packet back when it is done with it.
  void receive(Packet& packet);

  // The times of each unit so far.
  std::vector<UnitTime> unit_times() const;

  // Completes everything from `done` on as flushed.
  void flush(SimQp& qp);
  // Forgets the QP before it is destroyed or reset.
  void forget(SimQp& qp);

 private:
  struct Fetch {
    SimQp* qp;
    std::uint16_t generation;
    std::uint64_t first;  // of the batch
  };
  // One cache line, and the queue of doorbells behind it.
  struct alignas(64) Unit {
    SimQp* first = nullptr;  // QPs with work, a line linked through RequesterState::next_in_line
    SimQp* last = nullptr;
    SimQp* serving = nullptr;
    Picos free_at{0};  // WQEs, acknowledgements and responses take their times one after the other
    Picos serving_since{0};
    UnitTime time;
    std::uint64_t fetched_ahead = 0;
    std::deque<Fetch> fetches;  // doorbells whose WQEs are not asked for yet
  };

  static void batch_arrived(void* qp, std::uint64_t batch);
  static void part_fetched(void* qp, std::uint64_t batch);
  static void context_read(void* qp, std::uint64_t);
  static void translations_read(void* qp, std::uint64_t);
  static void wqes_read_again(void* qp, std::uint64_t range);
  static void service_done(void* qp, std::uint64_t);
  static void payload_read(void* qp, std::uint64_t packet);
  static void completed_by_port(void* qp, std::uint64_t wqe);
  static void answer_handled(void* qp, std::uint64_t generation);
  static void read_for_ack(void* qp, std::uint64_t wqe);
  static void retry_timer(void* qp, std::uint64_t);
  static void rnr_timer(void* qp, std::uint64_t);

  Unit& unit_of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.requester.unit)]; }
  void fetch_more(Unit& unit);
  void fetch(SimQp& qp, std::uint64_t first);
  void batch_is_here(SimQp& qp, std::uint64_t first);
  void activate(SimQp& qp);
  void serve_next(Unit& unit);
  bool read_again_if_missing(SimQp& qp);
  Picos occupy(Unit& unit, Picos time);
  void translate(SimQp& qp);
  void begin_service(SimQp& qp);
  Packet& make_packet(SimQp& qp, SendWqe& wqe);
  void send_payload(SimQp& qp, SendWqe& wqe, Packet& packet);
  void send_ready_packets(SimQp& qp);
  void wqe_sent(SimQp& qp, SendWqe& wqe);
  void release(SendWqe& wqe);
  void complete_wqe(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);
  void handle_answers(SimQp& qp);
  void handle_ack(SimQp& qp, const Packet& packet);
  void handle_nak(SimQp& qp, const Packet& packet);
  void handle_response(SimQp& qp, SendWqe& wqe, const Packet& packet);
  ibv_wc_status scatter(SimQp& qp, const SendWqe& wqe, const Packet& packet);
  std::uint32_t confirmed_by(SimQp& qp, std::uint32_t sequence);
  void ask_again(SimQp& qp);
  void acknowledge_up_to(SimQp& qp, std::uint32_t sequence);
  bool read_again_for_ack(SimQp& qp, SendWqe& wqe);
  void go_back(SimQp& qp, std::uint32_t sequence);
  void complete_confirmed(SimQp& qp, bool failing);
  void fail_refused(SimQp& qp, ibv_wc_status status);
  void fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status);
  void start_timer(SimQp& qp);
  void give_up_share(SimQp& qp);

  struct Piece {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  Nic& nic_;
  std::vector<Unit> units_;
  std::vector<Piece> pending_reads_;  // of the packet that is being built
  int next_unit_ = 0;
};

}  // namespace verbscope::sim
