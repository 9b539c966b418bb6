#include "nic_sim/nic/nic.hpp"

#include <algorithm>

namespace verbscope::sim {
namespace {

// On Ethernet there are no LIDs, so QP numbers differ between nodes: each node has 16 of the 24 bits.
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
      groups_(node),
      contexts_(engine_, bus_, profile.nic, counts_, seed ^ 2),
      memory_(profile.nic, counts_, seed ^ 3),
      congestion_(engine_, fabric_, packets_, profile, ethernet_counts_, node),
      payload_writer_(engine_, bus_, packets_, memory_),
      async_events_(bus_),
      completion_events_(engine_, bus_, async_events_, &Requester::completion_lost, &requester_),
      cqe_writer_(bus_, completion_events_, profile.wire.cqe_bytes),
      receive_events_(Responder::events_of(&responder_)),
      receiving_units_(engine_, bus_, fabric_, packets_, counts_, qps_, groups_, congestion_,
                       profile.nic.responder_units, contexts_, receive_events_),
      recv_fetcher_(bus_, static_cast<std::uint64_t>(profile.wire.recv_prefetch), receive_events_),
      recvs_(bus_, packets_, profile, counts_, memory_, payload_writer_, cqe_writer_, async_events_, recv_fetcher_),
      requester_(engine_, bus_, fabric_, packets_, profile, counts_, ethernet_counts_, qps_, contexts_, memory_,
                 congestion_, payload_writer_, cqe_writer_, async_events_, recvs_, receiving_units_, node, seed ^ 1),
      responder_(engine_, bus_, fabric_, packets_, profile, counts_, qps_, srqs_, receive_events_, contexts_, memory_,
                 congestion_, payload_writer_, receiving_units_, recv_fetcher_, recvs_, requester_, node, seed ^ 5) {
  fabric_.attach({.node = this,
                  .receive = &receive,
                  .left_port = &left_port,
                  .has_joined = &has_joined,
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
                   .responder_units = receiving_units_.times(),
                   .requester_qps = times_of_qps(&SimQp::requester),
                   .responder_qps = times_of_qps(&SimQp::arrivals),
                   .ports_out = {},
                   .ports_in = {},
                   .atomic_slots = responder_.atomic_slots_held(),
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
  for (QpContext* context : {&qp.requester_context, &qp.responder_context}) context->shadow.bytes = context->bytes;
  requester_.bind(qp);
  return qps_.add(qp);
}

void Nic::remove_qp(SimQp& qp) {
  forget_work(qp);
  for (QpContext* context : {&qp.requester_context, &qp.responder_context}) {
    contexts_.drop(*context);
    context->gone = true;
  }
  contexts_.drop(qp.near_context);
  qps_.remove(qp);
}

void Nic::receive(void* object, Packet& packet) {
  Nic& nic = *static_cast<Nic*>(object);
  if (nic.fabric_.is_lost(packet)) [[unlikely]] {
    ++nic.counts_.dropped_by_switch;
    return nic.fabric_.release(packet);
  }
  nic.responder_.receive(packet);
}

void Nic::left_port(void* object, const Packet& packet, Picos when) {
  Nic& nic = *static_cast<Nic*>(object);
  if (SimQp* qp = nic.qps_.find(packet.source_qp)) nic.requester_.left_port(*qp, packet, when);
}

bool Nic::has_joined(void* object, const Packet& packet) {
  return std::ranges::any_of(static_cast<Nic*>(object)->groups_.members(packet),
                             [&packet](const SimQp* qp) { return qp->port == packet.port; });
}

}  // namespace verbscope::sim
