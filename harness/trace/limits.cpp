#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "drivers_patch/counter_report.hpp"
#include "harness/trace/findings.hpp"
#include "pcie_model/costs.hpp"
#include "wire/verb.hpp"

namespace verbscope {
namespace {

using driver::CountedRequests;
using driver::PcieCost;
using driver::QpSummary;
using driver::QueueUse;
using driver::Request;
using driver::SendTotals;
using driver::Summary;

double ns(Picos time) {
  return static_cast<double>(time.count()) * 1e-3;
}

double number(std::uint64_t count) {
  return static_cast<double>(count);
}

// Equal requests with their derived properties.
struct Kind {
  const Request& request;
  Verb verb;
  Transport transport;
  double count = 0;
  double packets = 1;
  double blocks = 1;
  bool blueflame = false;
  bool fetches_payload = false;
};

// The threads that post to one doorbell register, and their posts.
struct Register {
  std::set<std::uint32_t> threads;
  double posts = 0;
  double mmio_ns = 0;
};

class BottleneckEstimate {
 public:
  BottleneckEstimate(const Summary& program, const Profile& profile)
      : program_(program), profile_(profile), wire_(driver::facts_of(profile.wire)) {
    for (const QueueUse& use : program.uses) add(use);
    for (const driver::PollUse& use : program.poll_uses) add(use);
    for (const driver::SharedRecvUse& use : program.shared_recv_uses) {
      cpu_[use.thread] += recv_ns(use.recvs, use.recv_posts);
    }
  }

  std::vector<ResourceTime> resource_times() {
    add_time(Resource::cpu, longest(cpu_) + registrations_ns() / std::max(1.0, number(cpu_.size())));
    const double rate = profile_.wire.pcie.bandwidth().value * 1e-9;  // bytes per nanosecond
    const auto bytes_to_nic = number(pcie_.exact.bytes_to_nic + pcie_.least.bytes_to_nic);
    const auto bytes_to_host = number(pcie_.exact.bytes_to_host + pcie_.least.bytes_to_host);
    const auto mmio = number(pcie_.exact.mmio_doorbells + pcie_.exact.mmio_wc_lines);
    add_time(Resource::pcie_to_nic,
             bytes_to_nic / (rate * profile_.link.tlp_share) + mmio * ns(profile_.link.mmio_gap));
    add_time(Resource::pcie_to_host, bytes_to_host / (rate * profile_.link.host_share));
    add_time(Resource::dma_reads, dma_reads_ * read_ns(kCacheLine) / number(profile_.link.read_tags));
    add_time(Resource::requester_unit, std::max(longest(requester_), sum(requester_) / profile_.nic.requester_units));
    add_time(Resource::responder_unit, std::max(longest(receiving_), sum(receiving_) / profile_.nic.responder_units));
    add_time(Resource::responder_unit, longest(peer_), true);
    add_time(Resource::qp_context_cache, context_reads_ns());
    const double port = profile_.wire.port_rate.value * 1e-9 * profile_.fabric.port_share;
    add_time(Resource::wire_out, bytes_out_ / port);
    add_time(Resource::wire_in, bytes_in_ / port);
    add_time(Resource::atomic_slot, atomic_slot_ns(), true);
    add_time(Resource::driver_lock, register_ns());
    add_time(Resource::reads_outstanding, reads_at_once_ns_);
    std::ranges::stable_sort(times_, std::greater{}, &ResourceTime::seconds);
    return std::move(times_);
  }

 private:
  using ByNumber = std::map<std::uint32_t, double>;

  static double longest(const ByNumber& times) {
    double most = 0;
    for (const auto& [_, time] : times) most = std::max(most, time);
    return most;
  }
  static double sum(const ByNumber& times) {
    double all = 0;
    for (const auto& [_, time] : times) all += time;
    return all;
  }

  void add_time(Resource resource, double time_ns, bool of_peer = false) {
    if (time_ns > 0) times_.push_back({resource, of_peer, time_ns * 1e-9});
  }

  double read_ns(Bytes bytes) const {
    return 2 * ns(profile_.link.propagation) + ns(profile_.host.memory_read) +
           ns(profile_.host.memory_read_jitter) / 2 +
           number((wire_.pcie.request_header + wire_.pcie.completion_header + bytes).value) /
               (wire_.pcie.bandwidth().value * 1e-9 * profile_.link.tlp_share);
  }

  double recv_ns(std::uint64_t recvs, std::uint64_t posts) const {
    return number(recvs) * ns(profile_.host.post_recv_wqe) + number(posts) * ns(profile_.host.post_recv_call);
  }

  double registrations_ns() const {
    double time = 0;
    for (const driver::ContextSummary& context : program_.contexts) {
      time += number(context.late_registrations) * ns(profile_.host.register_call) +
              number(context.late_pages) * ns(profile_.host.register_page);
    }
    return time;
  }

  std::optional<Kind> kind_of(const QpSummary& qp, const CountedRequests& counted) const {
    const auto verb = driver::verb_of_opcode(counted.request.opcode);
    const auto transport = driver::transport_of_type(qp.facts.type);
    if (!verb || !transport || !facts(*transport).verbs.has(*verb)) return std::nullopt;
    SendTotals one;
    driver::add_request(wire_, qp.facts, counted.request, 1, one);
    const bool carries = facts(*verb).carries_payload && counted.request.length > 0;
    return Kind{.request = counted.request,
                .verb = *verb,
                .transport = *transport,
                .count = number(counted.count),
                .packets = carries ? number(divide_up(counted.request.length, qp.facts.mtu)) : 1,
                .blocks = number(one.wqe_blocks),
                .blueflame = one.blueflames > 0,
                .fetches_payload = carries && one.inlined == 0};
  }

  void add(const QueueUse& use) {
    const QpSummary& qp = program_.qps[use.qp];
    SendTotals sends;
    double posts = number(use.lists), mmio_ns = number(use.lists) * ns(profile_.host.doorbell), requests = 0;
    for (const CountedRequests& counted : use.requests) {
      driver::add_request(wire_, qp.facts, counted.request, counted.count, sends);
      const std::optional<Kind> kind = kind_of(qp, counted);
      if (!kind) continue;
      requests += kind->count;
      add(use, qp, *kind);
      if (!counted.request.alone) continue;
      posts += kind->count;
      mmio_ns +=
          kind->count * (kind->blueflame ? kind->blocks * ns(profile_.host.wc_line) : ns(profile_.host.doorbell));
    }
    cpu_[use.thread] += posts * ns(profile_.host.post_call) + requests * ns(profile_.host.post_wqe) + mmio_ns +
                        recv_ns(use.recvs, use.recv_posts);
    // A QP's context stays cached until the thread uses other QPs.
    if (posts > 0) visits_[use.qp] += std::min(posts, number(std::max<std::uint64_t>(use.turns, 1)));
    add_register(use, qp, posts, mmio_ns);
    add_pcie(use, qp, sends);
    add_received(use, qp);
  }

  void add(const QueueUse& use, const QpSummary& qp, const Kind& kind) {
    const NicProfile& nic = profile_.nic;
    const double unit = (kind.blueflame ? ns(nic.blueflame_wqe) : ns(nic.doorbell_wqe)) +
                        kind.blocks * ns(nic.wqe_block) + (kind.packets - 1) * ns(nic.next_packet) +
                        (kind.fetches_payload ? kind.packets * ns(nic.gather) : 0);
    requester_[use.qp] += kind.count * unit;
    if (kind.fetches_payload) dma_reads_ += kind.count * kind.packets;
    const Bytes length(kind.request.length), mtu(qp.facts.mtu);
    bytes_out_ += kind.count *
                  number(request_bytes(kind.verb, kind.transport, length, false, mtu, profile_.wire.link_type).value);
    bytes_in_ += kind.count * number(response_bytes(kind.verb, length, mtu, profile_.wire.link_type).value);
    const bool answered = facts(kind.verb).wants_response;
    if (facts(kind.transport).reliable) {
      const double answers = answered ? number(std::max<std::uint64_t>(1, divide_up(length.value, mtu.value))) : 1;
      receiving_[use.qp] +=
          kind.count * answers * (answered ? ns(nic.handle_response) : ns(nic.handle_ack) / nic.ack_coalescing);
    }
    if (facts(kind.transport).connected) peer_[use.qp] += kind.count * peer_ns(kind);
    if (facts(kind.verb).atomic) atomics_ += kind.count;
    const std::uint32_t at_once = qp.facts.reads_at_once == 0 ? kMaxReads : qp.facts.reads_at_once;
    if (!answered || use.reads_outstanding <= at_once) return;
    reads_at_once_ns_ = std::max(reads_at_once_ns_, kind.count * round_trip_ns(kind, unit) / at_once);
  }

  // Time of the peer's unit that serves the connection, per request.
  double peer_ns(const Kind& kind) const {
    const NicProfile& nic = profile_.nic;
    const double packet = ns(nic.receive_packet), dma = ns(nic.receive_dma);
    if (facts(kind.verb).atomic) return packet + 2 * dma + ns(nic.atomic_packet);
    if (kind.verb == Verb::read) {
      return packet + (kind.request.length > 0 ? dma + ns(nic.read_request) : 0);
    }
    const double completion = kind.verb == Verb::send ? dma : 0;
    return kind.packets * (packet + (kind.request.length > 0 ? dma : 0)) + completion;
  }

  // From the time at which a unit starts a READ or an atomic until its response is handled.
  double round_trip_ns(const Kind& kind, double unit_ns) const {
    const NicProfile& nic = profile_.nic;
    const double way = ns(nic.transmit) + 2 * ns(profile_.fabric.cable) + ns(profile_.fabric.switch_latency);
    const double there = facts(kind.verb).atomic ? ns(nic.atomic_operation) : ns(nic.read_response);
    return unit_ns + 2 * way + peer_ns(kind) + read_ns(Bytes(std::min<std::uint64_t>(kind.request.length, 4096))) +
           there + ns(nic.handle_response);
  }

  void add_register(const QueueUse& use, const QpSummary& qp, double posts, double mmio_ns) {
    if (posts == 0 || !qp.facts.shared_register || !facts(profile_.wire.family).several_doorbell_registers) return;
    Register& shared = registers_[{qp.context, qp.facts.doorbell_register}];
    shared.threads.insert(use.thread);
    shared.posts += posts;
    shared.mmio_ns += mmio_ns;
  }

  void add_pcie(const QueueUse& use, const QpSummary& qp, const SendTotals& sends) {
    driver::add_scaled(pcie_, sends.pcie, 1);
    const std::uint64_t doorbells = sends.alone - sends.blueflames + use.lists;
    driver::add_doorbells(wire_, doorbells, sends.doorbell_blocks, pcie_);
    dma_reads_ += number(doorbells);
    driver::add_cqes(wire_, use.send_completions + use.received, pcie_);
    driver::add_recvs(wire_, driver::recv_stride_of(qp.facts), use.recvs, use.received, pcie_);
  }

  void add_received(const QueueUse& use, const QpSummary& qp) {
    if (use.received == 0) return;
    const std::uint64_t length = use.received_bytes / use.received;
    driver::ReceiveTotals received;
    driver::add_received(wire_, qp.facts, length, true, use.received, received);
    driver::add_scaled(pcie_, received.pcie, 1);
    const NicProfile& nic = profile_.nic;
    receiving_[use.qp] += number(use.received) * (ns(nic.receive_packet) + (length > 0 ? 2 : 1) * ns(nic.receive_dma));
    const auto transport = driver::transport_of_type(qp.facts.type);
    if (!transport) return;
    const Bytes payload(length - std::min<std::uint64_t>(length, facts(*transport).grh_room));
    bytes_in_ +=
        number(use.received) *
        number(
            request_bytes(Verb::send, *transport, payload, false, Bytes(qp.facts.mtu), profile_.wire.link_type).value);
  }

  void add(const driver::PollUse& use) {
    cpu_[use.thread] += number(use.polls + use.in_passing) * ns(profile_.host.poll_call) +
                        number(use.polled) * ns(profile_.host.poll_cqe);
  }

  // Contexts miss if there are more QPs than the cache holds. Eviction is random: with n QPs used in turn, room for c,
  // and miss rate m, a context survives the m n misses of a turn with probability exp(-m n / c).
  double context_reads_ns() const {
    const double room = number(profile_.nic.qp_context_cache.value / profile_.nic.qp_context.value);
    const double qps = number(visits_.size());
    if (qps <= room) return 0;
    double missed = 1;
    for (int i = 0; i < 100; ++i) missed = 1 - std::exp(-missed * qps / room);
    const double read = ns(profile_.nic.qp_context_miss) + read_ns(profile_.nic.qp_context);
    return sum(visits_) * missed * read / number(profile_.nic.qp_context_reads);
  }

  // Estimated from the sampled addresses: atomics on one slot of one peer.
  double atomic_slot_ns() const {
    if (atomics_ == 0) return 0;
    const NicProfile& nic = profile_.nic;
    double noted = 0;
    ByNumber slots;
    for (const QueueUse& use : program_.uses) {
      noted += number(use.atomics.noted);
      for (const auto& each : use.atomics.frequent) {
        if (each.count == 0) continue;
        slots[static_cast<std::uint32_t>((each.low >> nic.atomic_slot_lowest_bit) & (nic.atomic_slots - 1))] +=
            number(each.count);
      }
    }
    const double share = std::max(1 / number(nic.atomic_slots), noted == 0 ? 0 : longest(slots) / noted);
    return atomics_ * share * (read_ns(Bytes(8)) + ns(nic.atomic_operation));
  }

  // The lock moves from thread to thread, and each waiting thread adds one transfer of the lock's cache line.
  double register_ns() const {
    double most = 0;
    for (const auto& [_, shared] : registers_) {
      if (shared.threads.size() < 2) continue;
      const double waiting = number(shared.threads.size() - 1);
      const double at_once = std::min(waiting, number(profile_.host.spinners_at_once));
      const double transfers = 1 + at_once + (waiting - at_once) * profile_.host.spinner_share;
      most = std::max(most, shared.posts * transfers * ns(profile_.host.line_transfer) + shared.mmio_ns);
    }
    return most;
  }

  const Summary& program_;
  const Profile& profile_;
  driver::WireFacts wire_;
  ByNumber cpu_;                        // by thread
  ByNumber requester_;                  // by QP
  ByNumber receiving_, peer_, visits_;  // by QP
  std::map<std::pair<std::uint32_t, std::uint32_t>, Register> registers_;
  PcieCost pcie_;
  double dma_reads_ = 0, bytes_out_ = 0, bytes_in_ = 0, atomics_ = 0, reads_at_once_ns_ = 0;
  std::vector<ResourceTime> times_;
};

}  // namespace

std::string words_for(const ResourceTime& time) {
  return std::string(words_for(time.resource)) + (time.of_peer ? " of the peer" : "");
}

std::vector<ResourceTime> limits_of(const Summary& program, const Profile& profile) {
  return BottleneckEstimate(program, profile).resource_times();
}

}  // namespace verbscope
