#include "nic_sim/nic/responder.hpp"

namespace verbscope::sim {

ReceiveEvents Responder::events_of(void* responder) {
  return {.responder = responder,
          .state_is_near = &state_is_near,
          .unit_is_free = &unit_is_free,
          .read_done = &read_done,
          .answer_taken = &answer_taken,
          .unit_has_worked = &unit_has_worked,
          .recvs_fetched = &recvs_fetched,
          .shared_recvs_fetched = &shared_recvs_fetched,
          .atomic_done = &atomic_done};
}

void Responder::receive(Packet& packet) {
  if (units_.receive(packet)) serve();
}

void Responder::state_is_near(void* object, std::uint64_t packet) {
  Responder& self = *static_cast<Responder*>(object);
  if (self.units_.state_is_near(as_packet(packet))) self.serve();
}

// Gives idle units the QPs in line; each unit starts with the QP's first packet.
void Responder::serve_line() {
  while (SimQp* qp = units_.serve_next()) processor_.take_up(*qp, units_.of(*qp).front());
}

void Responder::read_done(void* object, std::uint64_t qp) {
  static_cast<Responder*>(object)->processor_.read_done(as_qp(qp));
}

void Responder::unit_has_worked(void* object, std::uint64_t qp) {
  Responder& self = *static_cast<Responder*>(object);
  if (self.processor_.has_worked(as_qp(qp))) self.serve();
}

void Responder::unit_is_free(void* object, std::uint64_t unit) {
  Responder& self = *static_cast<Responder*>(object);
  self.units_.give_back(unit);
  self.serve();
}

// The unit is free for other packets; the requester handles the answer.
void Responder::answer_taken(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  SimQp& qp = as_qp(argument);
  Packet& answer = self.units_.answer_is_taken(self.units_.of(qp));
  self.serve();
  self.requester_.take_answer(qp, answer);
}

void Responder::recvs_fetched(void* object, std::uint64_t word) {
  Responder& self = *static_cast<Responder*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET) return;
  qp->recv.fetched += QpWord::count(word);
  self.units_.recvs_came(*qp, self.go_on());
}

void Responder::shared_recvs_fetched(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  self.units_.recvs_came(self.fetcher_.shared_recvs_are_here(argument), self.go_on());
}

void Responder::atomic_done(void* object, std::uint64_t argument) {
  Responder& self = *static_cast<Responder*>(object);
  Packet& answer = as_packet(argument);
  if (self.atomics_.done(self.qps_.once_there(answer.source_qp), answer, self.go_on())) self.serve();
}

}  // namespace verbscope::sim
