#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {
namespace {

// Where no LID tells nodes apart, as on Ethernet, numbers of QPs do: those of adapters begin anywhere. Of 24 bits a
// node has 16.
std::uint32_t first_qp_number(LinkType link, std::uint32_t node) {
  constexpr std::uint32_t kFirst = 0x100, kEach = 0x10000, kNodes = 255;
  return facts(link).ethernet ? kFirst + node % kNodes * kEach : kFirst;
}

}  // namespace

Nic::Nic(Partition& home, Fabric& fabric, const Profile& profile, std::uint32_t node, std::uint64_t seed)
    : engine_(home.engine),
      fabric_(fabric),
      packets_(home.packets),
      home_(home),
      profile_(profile),
      node_(node),
      bus_(engine_, profile, seed),
      shared_lines_(profile.host),
      qps_(first_qp_number(profile.wire.link_type, node)),
      whole_(*this),
      contexts_(engine_, bus_, profile.nic, counts_, seed ^ 2),
      memory_(profile.nic, counts_, seed ^ 3),
      congestion_(engine_, fabric_, packets_, profile, ethernet_counts_, node),
      payload_writer_(engine_, bus_, packets_, memory_),
      completion_events_(engine_, bus_),
      cqe_writer_(bus_, completion_events_, profile.wire.cqe_bytes),
      responder_(engine_, bus_, fabric_, packets_, profile, counts_, qps_, whole_, contexts_, memory_, congestion_,
                 payload_writer_, cqe_writer_, node, seed ^ 5),
      requester_(engine_, bus_, fabric_, packets_, profile, counts_, ethernet_counts_, qps_, whole_, contexts_, memory_,
                 congestion_, payload_writer_, cqe_writer_, responder_.units, node, seed ^ 1) {
  fabric_.attach({.node = this,
                  .receive = &receive,
                  .left_port = &left_port,
                  .engine = &engine_,
                  .packets = &packets_,
                  .counts = &counts_});
}

UsageTimes Nic::usage() const {
  const auto times_of_qps = [this](auto side) {
    std::vector<UnitTime> all;
    qps_.each([&](const SimQp* qp) { all.push_back(qp == nullptr ? UnitTime{} : (qp->*side).time); });
    return all;
  };
  UsageTimes times{.pcie_to_nic = bus_.busy_to_nic(),
                   .pcie_to_host = bus_.busy_to_host(),
                   .mmio = bus_.busy_by_mmio(),
                   .read_tags_held = bus_.tags_held(),
                   .qp_context_reads_held = contexts_.reads_held(),
                   .read_tags_held_idle = bus_.tags_held_idle(),
                   .qp_context_reads_held_idle = contexts_.reads_held_idle(),
                   .requester_units = requester_.unit_times(),
                   .responder_units = responder_.units.times(),
                   .requester_qps = times_of_qps(&SimQp::requester),
                   .responder_qps = times_of_qps(&SimQp::arrivals),
                   .ports_out = {},
                   .ports_in = {},
                   .atomic_slots = responder_.atomics.times_held(),
                   .threads = {}};
  for (const auto& [out, in] : fabric_.port_times(node_)) {
    times.ports_out.push_back(out);
    times.ports_in.push_back(in);
  }
  return times;
}

std::uint32_t Nic::add_qp(SimQp& qp) {
  qp.requester_context.bytes = static_cast<std::uint32_t>(profile_.nic.qp_context.value);
  qp.responder_context.of_responder = true;
  qp.responder_context.bytes = static_cast<std::uint32_t>(profile_.nic.qp_responder_context.value);
  for (QpContext* context : {&qp.requester_context, &qp.responder_context}) context->listed.bytes = context->bytes;
  requester_.bind(qp);
  return qps_.add(qp);
}

void Nic::remove_qp(SimQp& qp) {
  requester_.forget(qp);
  responder_.units.forget(qp);
  for (QpContext* context : {&qp.requester_context, &qp.responder_context}) {
    contexts_.drop(*context);
    context->gone = true;
  }
  contexts_.drop(qp.near_context);
  qps_.remove(qp);
}

void Nic::receive(void* object, Packet& packet) {
  static_cast<Nic*>(object)->responder_.units.receive(packet);
}

void Nic::left_port(void* object, const Packet& packet, Picos when) {
  Nic& nic = *static_cast<Nic*>(object);
  if (SimQp* qp = nic.qps_.find(packet.source_qp)) nic.requester_.left_port(*qp, packet, when);
}

void Nic::fail_qp(SimQp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  requester_.flush(qp);
  responder_.flush(qp);
}

void WholeNic::fail_qp(SimQp& qp) const {
  nic_.fail_qp(qp);
}
void WholeNic::take_answer(SimQp& qp, Packet& answer) const {
  nic_.requester().take_answer(qp, answer);
}
void WholeNic::take_up_packet(SimQp& qp, Packet& packet) const {
  nic_.responder().processor.take_up(qp, packet);
}
void WholeNic::go_on(SimQp& qp, Packet& packet) const {
  nic_.responder().processor.begin(qp, packet);
}

}  // namespace verbscope::sim
