#include "nic_sim/nic.hpp"

#include <algorithm>

namespace verbscope::sim {
namespace {

constexpr std::uint32_t kFirstQpNumber = 0x100;

// Memory keys: an index, and 8 bits that change with each registration so that a stale key is noticed.
constexpr std::uint32_t kKeyTagBits = 8;

}  // namespace

Nic::Nic(Engine& engine, Fabric& fabric, ThreadSlot& threads, const Profile& profile, std::uint32_t node,
         std::uint64_t seed)
    : engine_(engine),
      fabric_(fabric),
      threads_(threads),
      profile_(profile),
      node_(node),
      bus_(engine, profile, seed),
      wqe_cache_(profile.nic.wqe_cache),
      qp_contexts_(profile.nic.qp_context_cache, profile.nic.qp_context),
      requester_(*this),
      responder_(*this) {
  fabric_.attach(*this);
}

std::uint32_t Nic::add_qp(SimQp& qp) {
  qps_.push_back(&qp);
  requester_.bind(qp);
  responder_.bind(qp);
  return kFirstQpNumber + static_cast<std::uint32_t>(qps_.size() - 1);
}

void Nic::remove_qp(SimQp& qp) {
  requester_.forget(qp);
  responder_.forget(qp);
  qp_contexts_.drop(qp);
  qps_[qp.qp_num - kFirstQpNumber] = nullptr;
}

SimQp* Nic::find_qp(std::uint32_t number) const {
  const std::uint32_t index = number - kFirstQpNumber;
  return index < qps_.size() ? qps_[index] : nullptr;
}

std::uint32_t Nic::add_mr(SimMr& mr) {
  const auto place = std::find(mrs_.begin(), mrs_.end(), nullptr);
  const auto index = static_cast<std::uint32_t>(place - mrs_.begin());
  if (place == mrs_.end()) {
    mrs_.push_back(&mr);
  } else {
    *place = &mr;
  }
  const std::uint32_t tag = ++mr_registrations_ & ((1u << kKeyTagBits) - 1);
  return (index + 1) << kKeyTagBits | tag;
}

void Nic::remove_mr(SimMr& mr) {
  mrs_[(mr.lkey >> kKeyTagBits) - 1] = nullptr;
}

SimMr* Nic::find_mr(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, int access) const {
  const std::uint32_t index = (key >> kKeyTagBits) - 1;
  SimMr* mr = index < mrs_.size() ? mrs_[index] : nullptr;
  if (mr == nullptr || mr->lkey != key || (mr->access & access) != access || !mr->holds(address, bytes)) return nullptr;
  return mr;
}

void Nic::receive(Packet& packet) {
  if (packet.kind == Packet::Kind::request) {
    responder_.receive(packet);
  } else {
    requester_.handle_ack(packet);
    fabric_.done_with(packet);
  }
}

void Nic::complete(SimCq& cq, Completion completion) {
  const auto places = static_cast<std::uint64_t>(cq.cqe);
  if (cq.waiting() == places) {
    cq.overrun = true;  // the program sees it at its next poll; what came before stays readable
    return;
  }
  const std::uint64_t bytes = profile_.wire.cqe_bytes.value;
  completion.visible = bus_.dma_write(cq.written % places * bytes, bytes);
  cq.push(completion);
  for (SimThread* waiter : cq.waiters) waiter->wake_at(completion.visible);
}

void Nic::fail_qp(SimQp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  requester_.flush(qp);
  responder_.flush(qp);
}

}  // namespace verbscope::sim
