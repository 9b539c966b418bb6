#include "nic_sim/nic/nic.hpp"

#include <algorithm>
#include <cstring>

#include "nic_sim/time/prefetch.hpp"

namespace verbscope::sim {
namespace {

constexpr std::uint32_t kFirstQpNumber = 0x100;

// Memory keys: an index, and 8 bits that change with each registration so that a stale key is noticed.
constexpr std::uint32_t kKeyTagBits = 8;

// A message's bytes that are asked for ahead; those of a long one the processor fetches by itself.
constexpr std::uint64_t kMostAhead = 256;

}  // namespace

Nic::Nic(Partition& home, Fabric& fabric, const Profile& profile, std::uint32_t node, std::uint64_t seed)
    : engine_(home.engine),
      fabric_(fabric),
      packets_(home.packets),
      threads_(home.threads),
      profile_(profile),
      node_(node),
      bus_(engine_, profile, seed),
      wqe_cache_(profile.nic.wqe_cache, seed ^ 1),
      qp_contexts_(profile.nic.qp_context_cache, seed ^ 2),
      translations_(profile.nic.translation_cache, seed ^ 3),
      atomic_slots_(profile.nic),
      shared_lines_(profile.host),
      requester_(*this),
      responder_(*this) {
  fabric_.attach(*this);
}

UsageTimes Nic::usage() const {
  UsageTimes times{.pcie_to_nic = bus_.busy_to_nic(),
                   .pcie_to_host = bus_.busy_to_host(),
                   .mmio = bus_.busy_by_mmio(),
                   .read_tags_held = bus_.tags_held(),
                   .requester_units = requester_.unit_times(),
                   .responder_units = responder_.unit_times(),
                   .ports_out = {},
                   .ports_in = {},
                   .atomic_slots = atomic_slots_.times_held(engine_.now()),
                   .threads = {}};
  fabric_.add_port_times(node_, times);
  return times;
}

std::uint32_t Nic::add_qp(SimQp& qp) {
  qps_.push_back(&qp);
  qp.requester_context.bytes = static_cast<std::uint32_t>(profile_.nic.qp_context.value);
  qp.responder_context.bytes = static_cast<std::uint32_t>(profile_.nic.qp_responder_context.value);
  requester_.bind(qp);
  responder_.bind(qp);
  return kFirstQpNumber + static_cast<std::uint32_t>(qps_.size() - 1);
}

void Nic::remove_qp(SimQp& qp) {
  requester_.forget(qp);
  responder_.forget(qp);
  qp_contexts_.drop(qp.requester_context);
  qp_contexts_.drop(qp.responder_context);
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
  for (Translation& page : mr.pages) translations_.drop(page);
}

SimMr* Nic::region(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const {
  const std::uint32_t index = (key >> kKeyTagBits) - 1;
  SimMr* mr = index < mrs_.size() ? mrs_[index] : nullptr;
  return mr != nullptr && mr->lkey == key && mr->holds(address, bytes) ? mr : nullptr;
}

SimMr* Nic::find_mr(const ibv_pd& pd, std::uint32_t key, std::uint64_t address, std::uint64_t bytes, int access) const {
  SimMr* mr = region(key, address, bytes);
  return mr != nullptr && mr->pd == &pd && (mr->access & access) == access ? mr : nullptr;
}

bool Nic::has_context(QpContext& context) {
  if (qp_contexts_.use(context)) {
    ++counts_.qp_context_hits;
    return true;
  }
  ++counts_.qp_context_misses;
  counts_.qp_context_read_lines += divide_up(context.bytes, kCacheLine.value);
  return false;
}

std::uint64_t Nic::missing_translations(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) {
  SimMr* mr = region(key, address, bytes);
  if (mr == nullptr || bytes == 0) return 0;
  prefetch(address, std::min(bytes, kMostAhead));  // the program's memory, which the NIC will read or write soon
  const std::uint64_t first_page = reinterpret_cast<std::uint64_t>(mr->addr) >> mr->page_bits;
  const std::uint64_t begin = (address >> mr->page_bits) - first_page;
  const std::uint64_t end = ((address + bytes - 1) >> mr->page_bits) - first_page + 1;
  std::uint64_t missing = 0;
  for (std::uint64_t page = begin; page < end; ++page) missing += translations_.use(mr->pages[page]) ? 0 : 1;
  counts_.translation_hits += end - begin - missing;
  counts_.translation_misses += missing;
  return missing;
}

void Nic::receive(Packet& packet) {
  if (packet.kind == Packet::Kind::request) {
    responder_.receive(packet);
  } else {
    requester_.receive(packet);
  }
}

void Nic::write_memory(std::uint64_t address, Packet& packet) {
  packet.remote_address = address;
  packet.kept = true;
  ++writes_under_way_;
  const Picos visible = bus_.dma_write(address, packet.payload);
  engine_.schedule(visible, &memory_written, this, as_argument(packet));
}

void Nic::memory_written(void* object, std::uint64_t argument) {
  Nic& nic = *static_cast<Nic*>(object);
  Packet& packet = as_packet(argument);
  --nic.writes_under_way_;
  if (nic.region(packet.rkey, packet.remote_address, packet.payload) != nullptr) {  // else it went away meanwhile
    std::memcpy(reinterpret_cast<std::byte*>(packet.remote_address), packet.data, packet.payload);
    nic.memory_watch_.written(packet.remote_address, packet.payload,
                              [](SimThread& thread) { thread.memory_written(); });
  }
  nic.packets().give_back(packet);
}

Picos Nic::write_cqe(const SimCq& cq) {
  const std::uint64_t bytes = profile_.wire.cqe_bytes.value;
  return bus_.dma_write(cq.written * bytes, bytes);  // the ring ends where a line does
}

void Nic::tell_of(SimCq& cq, const Completion& completion) {
  for (SimThread* waiter : cq.waiters) waiter->wake_at(completion.visible);
  if (cq.arming.asked != Notify::none) meet(*this, cq, completion);
}

void Nic::fail_qp(SimQp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  requester_.flush(qp);
  responder_.flush(qp);
}

}  // namespace verbscope::sim
