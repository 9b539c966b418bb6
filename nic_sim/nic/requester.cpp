#include "nic_sim/nic/requester.hpp"

#include <algorithm>

#include "nic_sim/nic/nic.hpp"
#include "nic_sim/time/prefetch.hpp"

namespace verbscope::sim {
namespace {

// After a miss the WQEs behind it that are missing too are read with it, up to so many. Assumed.
constexpr std::uint64_t kReadAgainRun = 8;

// Whether the WQE that comes next must wait until a READ or an atomic before it has ended.
bool waits_for_reads(SimQp& qp) {
  if (qp.requester.packet_of_next > 0) return false;
  const SendWqe& wqe = qp.send.at(qp.send.next);
  const std::uint64_t under_way = qp.reads.count();
  const std::uint32_t limit = std::clamp<std::uint32_t>(qp.settings.max_rd_atomic, 1, kMostReads);
  return (wqe.fenced && under_way > 0) || (wqe.wants_response() && under_way >= limit);
}

// A run of work requests in one event argument.
std::uint64_t pack_run(std::uint64_t first, std::uint64_t count) {
  return first << 8 | count;
}

}  // namespace

Requester::Requester(Nic& nic) : nic_(nic), units_(static_cast<std::size_t>(nic.profile().nic.requester_units)) {}

std::vector<UnitTime> Requester::unit_times() const {
  std::vector<UnitTime> times;
  for (const Unit& unit : units_) times.push_back(unit.time);
  return times;
}

void Requester::bind(SimQp& qp) {
  qp.requester.unit = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<int>(units_.size());
}

void Requester::announce(SimQp& qp, std::uint64_t batch, Picos when) {
  nic_.engine().schedule(when + nic_.profile().nic.front_end, &batch_arrived, &qp, batch);
}

void Requester::batch_arrived(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;  // flushed on the way
  const std::uint64_t first = without_generation(argument);
  Requester& self = qp.nic->requester();
  if (SendWqe& wqe = qp.send.at(first); wqe.by_blueflame) {
    self.nic_.wqe_cache().insert(wqe);
    self.batch_is_here(qp, first);
  } else {
    Unit& unit = self.unit_of(qp);
    unit.fetches.push_back({&qp, qp.generation, first});
    self.fetch_more(unit);
  }
}

// Asks for the WQEs of doorbells as long as the unit's share of fetching ahead allows; for one batch at least.
void Requester::fetch_more(Unit& unit) {
  const std::uint64_t limit = nic_.profile().nic.wqe_fetch_ahead.value;
  while (!unit.fetches.empty()) {
    const auto [qp, generation, first] = unit.fetches.front();
    const std::uint64_t bytes = qp->send.batch(first).bytes;
    const bool wanted = qp->state == IBV_QPS_RTS && qp->generation == generation;
    if (wanted && unit.fetched_ahead > 0 && unit.fetched_ahead + bytes > limit) return;
    unit.fetches.pop_front();
    if (wanted) fetch(*qp, first);
  }
}

// One DMA read of all WQEs of the batch, or two where they cross the end of the ring.
void Requester::fetch(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  Batch& batch = queue.batch(first);
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    SendWqe& wqe = queue.at(first + i);
    wqe.ahead = true;
    unit_of(qp).fetched_ahead += wqe.bytes;
  }
  const SendWqe& last = queue.at(first + batch.count - 1);
  const std::uint64_t begin = queue.at(first).ring_offset;
  std::uint64_t end = last.ring_offset + last.bytes;
  if (end <= begin) end += queue.ring_bytes;
  batch.reads_left = end > queue.ring_bytes ? 2 : 1;
  const std::uint64_t in_one = std::min(end, queue.ring_bytes) - begin;
  const std::uint64_t argument = with_generation(qp.generation, first);
  nic_.bus().dma_read(begin, in_one, &part_fetched, &qp, argument);
  if (batch.reads_left == 2) nic_.bus().dma_read(0, end - queue.ring_bytes, &part_fetched, &qp, argument);
}

void Requester::part_fetched(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;
  const std::uint64_t first = without_generation(argument);
  Requester& self = qp.nic->requester();
  Batch& batch = qp.send.batch(first);
  if (--batch.reads_left > 0) return;
  for (std::uint64_t i = 0; i < batch.count; ++i) self.nic_.wqe_cache().insert(qp.send.at(first + i));
  self.batch_is_here(qp, first);
}

// WQEs are taken up in the order of posting, whichever fetch is back first.
void Requester::batch_is_here(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  queue.batch(first).at_nic = true;
  while (queue.arrived < queue.posted && queue.batch(queue.arrived).at_nic) {
    queue.arrived += queue.batch(queue.arrived).count;
  }
  activate(qp);
}

// Puts the QP in its unit's line when it has work and is not there.
void Requester::activate(SimQp& qp) {
  RequesterState& state = qp.requester;
  Unit& unit = unit_of(qp);
  if (state.queued || state.must_wait() || unit.serving == &qp || qp.state != IBV_QPS_RTS) return;
  if (qp.send.next >= qp.send.arrived || waits_for_reads(qp)) return;
  state.queued = true;
  state.next_in_line = nullptr;
  (unit.first == nullptr ? unit.first : unit.last->requester.next_in_line) = &qp;
  unit.last = &qp;
  if (unit.serving == nullptr) serve_next(unit);
}

void Requester::serve_next(Unit& unit) {
  while (unit.serving == nullptr && unit.first != nullptr) {
    SimQp& qp = *unit.first;
    unit.first = qp.requester.next_in_line;
    qp.requester.queued = false;
    if (qp.state != IBV_QPS_RTS || qp.requester.waits_for_rnr || qp.send.next >= qp.send.arrived) continue;
    if (read_again_if_missing(qp)) continue;
    unit.serving = &qp;
    unit.serving_since = nic_.engine().now();
    if (nic_.has_context(qp.requester_context)) {
      translate(qp);
    } else {
      nic_.bus().dma_read(0, qp.requester_context.bytes, &context_read, &qp, 0);
    }
  }
}

// If the WQE at `next` was evicted: reads it and the missing ones behind it, the QP waits, the unit goes on.
bool Requester::read_again_if_missing(SimQp& qp) {
  SendQueue& queue = qp.send;
  const SendWqe& wanted = queue.at(queue.next);
  if (qp.requester.packet_of_next > 0 || wanted.staged) return false;
  if (wanted.place.cached()) {
    ++nic_.counts().wqe_cache_hits;
    return false;
  }
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = queue.next; i < queue.arrived && count < kReadAgainRun; ++i) {
    const SendWqe& wqe = queue.at(i);
    if (wqe.place.cached() || wqe.staged || wqe.ring_offset < wanted.ring_offset) break;
    bytes = wqe.ring_offset + wqe.bytes - wanted.ring_offset;
    ++count;
  }
  nic_.counts().wqe_cache_misses += count;
  nic_.counts().wqe_cache_reread_lines += bytes / kCacheLine.value;  // with what lies between slots
  qp.requester.waiting = true;
  nic_.bus().dma_read(wanted.ring_offset, bytes, &wqes_read_again, &qp,
                      with_generation(qp.generation, pack_run(queue.next, count)));
  return true;
}

void Requester::wqes_read_again(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;
  const std::uint64_t run = without_generation(argument);
  qp.requester.waiting = false;
  for (std::uint64_t i = 0; i < (run & 0xff); ++i) qp.send.at((run >> 8) + i).staged = true;
  qp.nic->requester().activate(qp);
}

void Requester::context_read(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  qp.nic->requester().translate(qp);
}

// The addresses of the packet that comes next, or of all that a READ will bring.
void Requester::translate(SimQp& qp) {
  const SendWqe& wqe = qp.send.at(qp.send.next);
  std::uint64_t missing = 0;
  if (!wqe.inlined && wqe.length > 0 && qp.state == IBV_QPS_RTS && qp.send.next < qp.send.arrived) {
    const std::uint64_t mtu = wqe.wants_response() ? wqe.length : qp.path_mtu;
    std::uint64_t begin = qp.requester.packet_of_next * std::uint64_t{qp.path_mtu};
    std::uint64_t left = std::min(wqe.length - begin, mtu);
    const ibv_sge* sge = qp.send.sges_of(wqe.index);
    for (; left > 0; ++sge) {
      if (begin < sge->length) {
        const std::uint64_t bytes = std::min<std::uint64_t>(left, sge->length - begin);
        missing += nic_.missing_translations(sge->lkey, sge->addr + begin, bytes);
        left -= bytes;
        begin = 0;
      } else {
        begin -= sge->length;
      }
    }
  }
  if (wqe.inlined && wqe.length > 0) prefetch(qp.send.inline_data_of(wqe.index), wqe.length);
  if (missing == 0) return begin_service(qp);
  nic_.bus().dma_read(0, missing * kCacheLine.value, &translations_read, &qp, 0);
}

void Requester::translations_read(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  qp.nic->requester().begin_service(qp);
}

// The unit works for `time` as soon as it is free; yields when that ends.
Picos Requester::occupy(Unit& unit, Picos time) {
  unit.free_at = std::max(unit.free_at, nic_.engine().now()) + time;
  unit.time.busy += time;
  return unit.free_at;
}

void Requester::begin_service(SimQp& qp) {
  const NicProfile& profile = nic_.profile().nic;
  Unit& unit = unit_of(qp);
  unit.time.waited += nic_.engine().now() - unit.serving_since;
  SendWqe& wqe = qp.send.at(qp.send.next);
  Picos time = profile.next_packet;
  if (qp.requester.packet_of_next == 0) {
    const auto blocks = static_cast<std::int64_t>(wqe.bytes / kWqeBlock.value);
    time = (wqe.by_blueflame ? profile.blueflame_wqe : profile.doorbell_wqe) + profile.wqe_block * blocks;
  }
  if (wqe.ahead) {
    wqe.ahead = false;
    unit.fetched_ahead -= wqe.bytes;
    fetch_more(unit);
  }
  nic_.engine().schedule(occupy(unit, time), &service_done, &qp);
}

void Requester::service_done(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  Requester& self = qp.nic->requester();
  Unit& unit = self.unit_of(qp);
  if (qp.state == IBV_QPS_RTS && !qp.requester.must_wait() && qp.send.next < qp.send.arrived) {
    SendWqe& wqe = qp.send.at(qp.send.next);
    if (qp.transport == Transport::ud && wqe.packets > 1) {
      self.fail_at(qp, wqe, IBV_WC_LOC_LEN_ERR);  // a datagram is one packet
    } else {
      Packet& packet = self.make_packet(qp, wqe);
      const bool last = packet.last;
      self.send_payload(qp, wqe, packet);
      if (qp.state == IBV_QPS_RTS) {
        if (wqe.wants_response()) qp.reads.begin(wqe.index);
        ++qp.requester.packet_of_next;
        if (last) self.wqe_sent(qp, wqe);
      }
    }
  }
  unit.serving = nullptr;
  self.activate(qp);
  self.serve_next(unit);
}

}  // namespace verbscope::sim
