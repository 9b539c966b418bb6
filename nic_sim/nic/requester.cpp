#include "nic_sim/nic/requester.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/time/prefetch.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

namespace {

// Whether the WQE that comes next must wait until a READ or an atomic before it has ended.
bool waits_for_reads(SimQp& qp) {
  if (qp.requester.packet_of_next > 0) return false;
  const SendWqe& wqe = qp.send.at(qp.send.next);
  const std::uint64_t under_way = qp.reads.count();
  const std::uint32_t limit = std::clamp<std::uint32_t>(qp.settings.max_rd_atomic, 1, kMostReads);
  return (wqe.fenced && under_way > 0) || (wqe.wants_response() && under_way >= limit);
}

}  // namespace

void UnitScheduler::bind(SimQp& qp) {
  qp.requester.unit = qp.requester.fetch_share = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<std::uint32_t>(units_.size());
}

void UnitScheduler::activate(SimQp& qp) {
  const RequesterState& state = qp.requester;
  if (state.queued || state.served || state.must_wait() || qp.state != IBV_QPS_RTS) return;
  if (!qp.send.has_work() || waits_for_reads(qp)) return;
  line_.push(qp);
  serve();
}

void UnitScheduler::serve() {
  while (!line_.empty() && !idle_.empty()) {
    SimQp& qp = line_.pop();
    if (qp.state != IBV_QPS_RTS || qp.requester.waits_for_rnr || !qp.send.has_work()) continue;
    if (!whole_.wqe_at_hand(qp)) continue;
    qp.requester.served = true;
    qp.requester.unit = idle_.take(qp.requester.unit);
    unit_of(qp).serving_since = engine_.now();
    whole_.take_up_wqe(qp);
  }
}

Picos UnitScheduler::begin_work(SimQp& qp, Picos time) {
  Unit& unit = unit_of(qp);
  const Picos waited = engine_.now() - unit.serving_since;
  for (UnitTime* each : {&unit.time, &qp.requester.time}) {
    each->waited += waited;
    each->busy += time;
  }
  unit.free_at = engine_.now() + time;
  return unit.free_at;
}

void UnitScheduler::work_done(SimQp& qp) {
  idle_.give_back(qp.requester.unit);
  qp.requester.served = false;
  activate(qp);
  serve();
}

void UnitScheduler::note_held_up(SimQp& qp, Picos since) {
  if (qp.requester.served || !line_.empty()) return;
  Unit& unit = unit_of(qp);
  const Picos now = engine_.now();
  const Picos time = now - std::min(now, std::max({since, unit.free_at, unit.held_up_until}));
  unit.time.held_up += time;
  qp.requester.time.held_up += time;
  unit.held_up_until = now;
}

std::vector<UnitTime> UnitScheduler::times() const {
  std::vector<UnitTime> times;
  for (const Unit& unit : units_) times.push_back(unit.time);
  return times;
}

namespace {

// A unit looks so many WQEs ahead for those that were evicted, and reads as many again behind them. Assumed.
constexpr std::uint64_t kReadAgainRun = 8;

// A run of work requests in the count of a QpWord: the low bits of the first, and how many.
constexpr unsigned kRunBits = 5;
static_assert(2 * kReadAgainRun < 1u << kRunBits);
constexpr unsigned kFirstBits = QpWord::kCountBits - kRunBits;  // a send queue is shorter
std::uint64_t pack_run(std::uint64_t first, std::uint64_t count) {
  return first << kRunBits | count;
}

}  // namespace

WqeFetcher::WqeFetcher(Engine& engine, PcieBus& bus, const NicProfile& profile, NicCounts& counts, const QpTable& qps,
                       QpContexts& contexts, UnitScheduler& scheduler, std::uint64_t seed)
    : engine_(engine),
      bus_(bus),
      profile_(profile),
      counts_(counts),
      qps_(qps),
      contexts_(contexts),
      scheduler_(scheduler),
      shares_(static_cast<std::size_t>(profile.requester_units)),
      waiting_(profile.wqe_cache, Replacement::random, seed),
      sent_(profile.sent_wqe_cache, profile.sent_wqe_replacement, seed ^ 4) {}

void WqeFetcher::batch_arrives(SimQp& qp, std::uint64_t batch, Picos when) {
  engine_.schedule(when + profile_.front_end + contexts_.distance(qp), &batch_arrived, this,
                   QpWord::make(qp.qp_num, static_cast<std::uint16_t>(batch), without_generation(batch)));
}

void WqeFetcher::batch_arrived(void* object, std::uint64_t word) {
  WqeFetcher& self = *static_cast<WqeFetcher*>(object);
  SimQp* const qp = self.sending(word);
  if (qp == nullptr) return;  // flushed on the way
  if (self.contexts_.at_hand(qp->requester_context, &context_is_here, object, word)) context_is_here(object, word);
}

// The QP's state was there for the batch. Batches go on in the order of posting, whichever has found it first.
void WqeFetcher::context_is_here(void* object, std::uint64_t word) {
  WqeFetcher& self = *static_cast<WqeFetcher*>(object);
  SimQp* const qp = self.sending(word);
  if (qp == nullptr) return;
  SendQueue& queue = qp->send;
  queue.batch(queue.whole(QpWord::count(word), QpWord::kCountBits)).has_context = true;
  while (queue.rung < queue.posted && queue.batch(queue.rung).has_context) {
    const std::uint64_t first = queue.rung;
    queue.rung += queue.batch(first).count;
    self.begin_batch(*qp, first);
  }
}

// What was rung for is fetched, what came with the write itself can be taken up.
void WqeFetcher::begin_batch(SimQp& qp, std::uint64_t first) {
  if (SendWqe& wqe = qp.send.at(first); wqe.by_blueflame) {
    waiting_.insert(wqe);
    batch_is_here(qp, first);
  } else {
    Share& share = share_of(qp);
    share.fetches.push_back({&qp, qp.generation, first});
    fetch_more(share);
  }
}

// Asks for the WQEs of doorbells as long as the unit's share of fetching ahead allows; for one batch at least.
void WqeFetcher::fetch_more(Share& share) {
  const std::uint64_t limit = profile_.wqe_fetch_ahead.value;
  while (!share.fetches.empty()) {
    const auto [qp, generation, first] = share.fetches.front();
    const std::uint64_t bytes = qp->send.batch(first).bytes;
    const bool wanted = qp->state == IBV_QPS_RTS && qp->generation == generation;
    if (wanted && share.bytes > 0 && share.bytes + bytes > limit) return;
    share.fetches.pop_front();
    if (wanted) fetch(*qp, first);
  }
}

// One DMA read of WQEs that lie one after another, as those of packed blocks do and those that fill mlx4's slots; two
// where one crosses the end of the ring. What lies between WQEs in wider slots is not read.
void WqeFetcher::fetch(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  Batch& batch = queue.batch(first);
  share_of(qp).asked_at = engine_.now();
  const std::uint64_t word = QpWord::make(qp, first);
  std::uint64_t begin = queue.at(first).ring_offset, bytes = 0;
  const auto read = [this, &batch, word](std::uint64_t from, std::uint64_t length) {
    ++batch.reads_left;
    bus_.dma_read(from, length, &part_fetched, this, word);
  };
  batch.reads_left = 0;
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    SendWqe& wqe = queue.at(first + i);
    wqe.ahead = true;
    share_of(qp).bytes += wqe.bytes;
    if (wqe.ring_offset != begin + bytes) {
      read(begin, bytes);
      begin = wqe.ring_offset;
      bytes = 0;
    }
    bytes += wqe.bytes;
    if (begin + bytes > queue.ring_bytes) {
      read(begin, queue.ring_bytes - begin);
      bytes -= queue.ring_bytes - begin;
      begin = 0;
    }
  }
  if (bytes > 0) read(begin, bytes);
}

void WqeFetcher::part_fetched(void* object, std::uint64_t word) {
  WqeFetcher& self = *static_cast<WqeFetcher*>(object);
  SimQp* const sending = self.sending(word);
  if (sending == nullptr) return;
  SimQp& qp = *sending;
  const std::uint64_t first = qp.send.whole(QpWord::count(word), QpWord::kCountBits);
  Batch& batch = qp.send.batch(first);
  if (--batch.reads_left > 0) return;
  if (const Share& share = self.share_of(qp); !share.fetches.empty()) self.scheduler_.note_held_up(qp, share.asked_at);
  for (std::uint64_t i = 0; i < batch.count; ++i) self.waiting_.insert(qp.send.at(first + i));
  self.batch_is_here(qp, first);
}

// WQEs are taken up in the order of posting, whichever fetch is back first.
void WqeFetcher::batch_is_here(SimQp& qp, std::uint64_t first) {
  SendQueue& queue = qp.send;
  queue.batch(first).at_nic = true;
  while (queue.arrived < queue.posted && queue.batch(queue.arrived).at_nic) {
    queue.arrived += queue.batch(queue.arrived).count;
  }
  scheduler_.activate(qp);
}

bool WqeFetcher::at_hand(SimQp& qp) {
  const SendWqe& wanted = qp.send.at(qp.send.next);
  if (qp.requester.packet_of_next > 0) return true;
  const bool here = wanted.staged || wanted.place.cached();
  if (!here || waiting_.was_full()) read_again_ahead(qp);
  if (wanted.place.cached()) ++counts_.wqe_cache_hits;
  qp.requester.waiting = !here;
  return here;
}

// When one of the next few WQEs is missing, that and all that are missing behind it are asked for together, with a DMA
// read for those that lie one after another.
void WqeFetcher::read_again_ahead(SimQp& qp) {
  SendQueue& queue = qp.send;
  std::uint64_t first = queue.next;
  const std::uint64_t near = std::min(queue.next + kReadAgainRun, queue.arrived);
  while (first < near && !queue.at(first).missing()) ++first;
  if (first == near) return;
  queue.at(first).led_reread = true;
  for (const std::uint64_t end = std::min(queue.next + 2 * kReadAgainRun, queue.arrived); first < end; ++first) {
    if (queue.at(first).missing()) first = read_again(qp, first, end);
  }
}

// Reads WQEs again from `first` on, before `end`, as far as they are missing and lie one after another; yields the
// last.
std::uint64_t WqeFetcher::read_again(SimQp& qp, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t begin = qp.send.at(first).ring_offset;
  std::uint64_t bytes = 0, next = first;
  for (; next < end; ++next) {
    SendWqe& wqe = qp.send.at(next);
    if (!wqe.missing() || wqe.ring_offset != begin + bytes) break;
    wqe.coming = true;
    bytes += wqe.bytes;
  }
  counts_.wqe_cache_misses += next - first;
  counts_.wqe_cache_reread_lines += bytes / kCacheLine.value;
  bus_.dma_read(begin, bytes, &wqes_read_again, this, QpWord::make(qp, pack_run(first, next - first)));
  return next - 1;
}

void WqeFetcher::wqes_read_again(void* object, std::uint64_t word) {
  WqeFetcher& self = *static_cast<WqeFetcher*>(object);
  SimQp* const qp = self.sending(word);
  if (qp == nullptr) return;
  const std::uint32_t run = QpWord::count(word);
  const std::uint64_t first = qp->send.whole(run >> kRunBits, kFirstBits);
  for (std::uint64_t i = first; i < first + (run & ((1u << kRunBits) - 1)); ++i) {
    SendWqe& wqe = qp->send.at(i);
    if (wqe.index != i) continue;  // it was confirmed meanwhile, and another has its place
    wqe.coming = false;
    wqe.staged = true;
  }
  qp->requester.waiting = false;
  self.scheduler_.activate(*qp);
}

bool WqeFetcher::at_hand_for_response(SimQp& qp, const SendWqe& wqe, Engine::Action read, void* object) {
  if (wqe.staged) return true;
  if (wqe.place.cached()) {
    ++counts_.wqe_cache_hits;
    return true;
  }
  ++counts_.wqe_cache_misses;
  counts_.wqe_cache_reread_lines += wqe.bytes / kCacheLine.value;
  bus_.dma_read(wqe.ring_offset, wqe.bytes, read, object, QpWord::make(qp, wqe.index));
  return false;
}

void WqeFetcher::taken_up(const SimQp& qp, SendWqe& wqe) {
  if (!wqe.ahead) return;
  wqe.ahead = false;
  Share& share = share_of(qp);
  share.bytes -= wqe.bytes;
  fetch_more(share);
}

void WqeFetcher::give_up_share(SimQp& qp) {
  Share& share = share_of(qp);
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) {
    SendWqe& wqe = qp.send.at(i);
    if (wqe.ahead) share.bytes -= wqe.bytes;
    wqe.ahead = false;
  }
  fetch_more(share);
}

void WqeFetcher::is_sent(SendWqe& wqe) {
  release(wqe);
  wqe.sent = true;
  if (wqe.wants_response()) sent_.insert(wqe);
}

void WqeFetcher::release(SendWqe& wqe) {
  (wqe.sent ? sent_ : waiting_).drop(wqe);
  wqe.staged = false;
}

void WqeFetcher::forget(SimQp& qp) {
  for (std::uint64_t i = qp.send.done; i < qp.send.posted; ++i) release(qp.send.at(i));
  give_up_share(qp);
}

void SendCompleter::left_port(SimQp& qp, const Packet& packet, Picos when) {
  const auto generation = static_cast<std::uint16_t>(packet.cookie);  // it may have waited at the port for longer
  engine_.schedule(when, &sent, this, QpWord::make(qp.qp_num, generation, without_generation(packet.cookie)));
}

void SendCompleter::sent(void* object, std::uint64_t word) {
  SendCompleter& self = *static_cast<SendCompleter*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  const std::uint64_t index = qp->send.whole(QpWord::count(word), QpWord::kCountBits);
  qp->send.done = index + 1;
  self.complete(*qp, qp->send.at(index), IBV_WC_SUCCESS);
}

void SendCompleter::complete_all_confirmed(SimQp& qp) {
  SendQueue& queue = qp.send;
  while (queue.done < queue.next) {
    SendWqe& wqe = queue.at(queue.done);
    if (!wqe.answered() || sequence_before(qp.requester.acknowledged, wqe.sequence + wqe.sequences - 1)) return;
    fetcher_.release(wqe);
    ++queue.done;
    if (wqe.signaled) complete(qp, wqe, IBV_WC_SUCCESS);
  }
}

void SendCompleter::fail_refused(SimQp& qp, ibv_wc_status status) {
  complete_all_confirmed(qp);
  fail_at(qp, qp.send.at(qp.send.done), status);
}

void SendCompleter::fail_at(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  SendQueue& queue = qp.send;
  if (facts(qp.transport).reliable) complete_all_confirmed(qp);
  for (; queue.done <= wqe.index; ++queue.done) {
    SendWqe& ended = queue.at(queue.done);
    fetcher_.release(ended);
    if (&ended == &wqe) {
      complete(qp, ended, status);
    } else if (ended.signaled) {
      complete(qp, ended, IBV_WC_WR_FLUSH_ERR);
    }
  }
  whole_.fail_qp(qp);
}

void SendCompleter::flush(SimQp& qp) {
  SendQueue& queue = qp.send;
  for (; queue.done < queue.posted; ++queue.done) {
    // Unreliable and unsignaled: it was done when it was sent.
    const bool sent = !facts(qp.transport).reliable && queue.done < queue.next;
    if (!sent || queue.at(queue.done).signaled) complete(qp, queue.at(queue.done), IBV_WC_WR_FLUSH_ERR);
  }
  queue.next = queue.arrived = queue.rung = queue.posted;
}

void SendCompleter::complete(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  cqes_.complete(qp.send_completions(), Completion{.visible = {},
                                                   .wr_id = wqe.wr_id,
                                                   .qp = &qp,
                                                   .index = wqe.index,
                                                   .status = status,
                                                   .opcode = completion_opcode(wqe.verb),
                                                   .bytes = wqe.length,
                                                   .immediate = 0,
                                                   .source_qp = 0,
                                                   .source_lid = 0,
                                                   .flags = 0,
                                                   .of_send = true});
}

namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.5.2.8, "Encoding for RNR NAK Timer Field":
// hundredths of a millisecond.
constexpr std::array<int, 32> kRnrTimer{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

constexpr int kForEver = 7;  // RNR retry count: no limit

}  // namespace

void Retransmitter::refused(SimQp& qp, const Packet& nak) {
  switch (nak.kind) {
    case Packet::Kind::nak_sequence:
      go_back(qp, nak.sequence);
      return scheduler_.activate(qp);
    case Packet::Kind::nak_receiver_not_ready:
      return wait_for_receiver(qp, nak);
    case Packet::Kind::nak_invalid:
      return completer_.fail_refused(qp, IBV_WC_REM_INV_REQ_ERR);
    case Packet::Kind::nak_access:
      return completer_.fail_refused(qp, IBV_WC_REM_ACCESS_ERR);
    case Packet::Kind::nak_operation:
      return completer_.fail_refused(qp, IBV_WC_REM_OP_ERR);
    case Packet::Kind::request:
    case Packet::Kind::ack:
    case Packet::Kind::read_response:
    case Packet::Kind::atomic_response:
    case Packet::Kind::congestion_notification:
      return;  // these refuse nothing
  }
}

void Retransmitter::wait_for_receiver(SimQp& qp, const Packet& nak) {
  if (qp.settings.rnr_retry != kForEver && qp.requester.rnr_retries_left-- == 0) {
    return completer_.fail_refused(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  go_back(qp, nak.sequence);
  fetcher_.give_up_share(qp);
  qp.requester.waits_for_rnr = true;
  qp.requester.progress_at = engine_.now() + Picos(kRnrTimer[nak.immediate % 32] * 10'000'000LL);
  engine_.schedule(qp.requester.progress_at, &rnr_timer, this, QpWord::make(qp, ++qp.requester.rnr_waits));
}

void Retransmitter::rnr_timer(void* object, std::uint64_t word) {
  Retransmitter& self = *static_cast<Retransmitter*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || QpWord::count(word) != qp->requester.rnr_waits) return;
  qp->requester.waits_for_rnr = false;
  self.scheduler_.activate(*qp);
}

// Sends again from the packet `sequence` on; a READ or an atomic is asked for as a whole.
void Retransmitter::go_back(SimQp& qp, std::uint32_t sequence) {
  SendQueue& queue = qp.send;
  for (std::uint64_t i = queue.done; i < queue.arrived; ++i) {
    const SendWqe& wqe = queue.at(i);
    if (!sequence_before(sequence, wqe.sequence + wqe.sequences)) continue;
    queue.next = i;
    qp.requester.packet_of_next = wqe.packets == wqe.sequences ? sequence - wqe.sequence : 0;
    qp.reads.forget_from(i);
    return;
  }
}

void Retransmitter::ask_again(SimQp& qp) {
  if (qp.requester.asked_again) return;
  qp.requester.asked_again = true;
  const SendWqe& wqe = qp.send.at(qp.reads.oldest());
  go_back(qp, wqe.sequence);
  scheduler_.activate(qp);
}

void Retransmitter::start_timer(SimQp& qp) {
  if (qp.requester.timer_runs || qp.settings.timeout == 0) return;  // 0 waits for ever
  qp.requester.timer_runs = true;
  engine_.schedule(engine_.now() + profile_.ack_wait(qp.settings.timeout), &retry_timer, this, QpWord::make(qp));
}

// One timer per QP: it looks whether there was progress within the timeout, and if so runs on from there.
void Retransmitter::retry_timer(void* object, std::uint64_t word) {
  Retransmitter& self = *static_cast<Retransmitter*>(object);
  SimQp* const current = self.qps_.current(word);
  if (current == nullptr) return;
  SimQp& qp = *current;
  qp.requester.timer_runs = false;
  if (qp.state != IBV_QPS_RTS || qp.send.done >= qp.send.next) return;
  const Picos now = self.engine_.now();
  const Picos due = qp.requester.progress_at + self.profile_.ack_wait(qp.settings.timeout);
  if (due <= now) {
    if (qp.requester.retries_left-- == 0) {
      return self.completer_.fail_at(qp, qp.send.at(qp.send.done), IBV_WC_RETRY_EXC_ERR);
    }
    self.lost_time_ += static_cast<std::uint64_t>((now - qp.requester.progress_at).count());
    qp.requester.progress_at = now;
    qp.requester.asked_again = false;
    self.go_back(qp, qp.send.at(qp.send.done).sequence);
    self.scheduler_.activate(qp);
    return self.start_timer(qp);
  }
  qp.requester.timer_runs = true;
  self.engine_.schedule(due, &retry_timer, object, word);
}

namespace {

// Whether the request brings the bytes of its message; else the response does.
bool carries_payload(const SendWqe& wqe) {
  return facts(wqe.verb).carries_payload;
}

// The headers of a request behind its BTH.
Bytes extensions(const Packet& packet) {
  Bytes bytes = facts(packet.transport).packet_header;
  if (packet.has_immediate) bytes += kImmDt;
  if (packet.first) bytes += facts(packet.verb).request_header;
  return bytes;
}

}  // namespace

void PacketBuilder::send_next(SimQp& qp, const SendWqe& wqe) {
  Packet& packet = make(qp, wqe);
  count(qp, wqe, packet);
  if (wqe.inlined) {
    if (packet.payload > 0) {
      std::memcpy(packet.data, qp.send.inline_data_of(wqe.index) + packet.offset, packet.payload);
    }
  } else if (packet.payload > 0 && !read_payload(qp, wqe, packet)) {
    packets_.give_back(packet);
    return completer_.fail_at(qp, wqe, IBV_WC_LOC_PROT_ERR);
  }
  qp.requester.unsent.push(packet);
  send_ready(qp);
}

Packet& PacketBuilder::make(const SimQp& qp, const SendWqe& wqe) {
  const std::uint32_t number = qp.requester.packet_of_next;
  const std::uint32_t offset = number * qp.path_mtu;
  Packet& packet = packets_.take(carries_payload(wqe) ? std::min(wqe.length - offset, qp.path_mtu) : 0);
  packet.kind = Packet::Kind::request;
  packet.verb = wqe.verb;
  packet.transport = qp.transport;
  packet.first = number == 0;
  packet.last = number + 1 == wqe.packets;
  packet.has_immediate = wqe.has_immediate && packet.last;
  packet.has_grh = wqe.has_grh;
  packet.solicited = wqe.solicited && packet.last;
  packet.completes = packet.last && wqe.signaled && !facts(qp.transport).reliable;
  packet.port = qp.port;
  packet.source_node = node_;
  packet.target_node = wqe.target_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = wqe.target_qp;
  packet.sequence = wqe.sequence + number;
  packet.immediate = wqe.immediate;
  packet.qkey = wqe.qkey;
  packet.reads_left = 0;
  packet.offset = offset;
  packet.cookie = with_generation(qp.generation, wqe.index);
  packet.remote_address = wqe.remote_address;
  packet.rkey = wqe.rkey;
  packet.length = wqe.length;
  packet.operand = wqe.operand;
  packet.compare = wqe.compare;
  packet.wire_bytes = framing_.bytes(packet.payload, extensions(packet), packet.has_grh);
  packet.priority = wqe.priority;
  return packet;
}

void PacketBuilder::count(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  ++counts_.packets_sent;
  packet.counted = false;
  if (sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    ++counts_.packets_resent;
  } else {
    qp.requester.sequence_unsent = packet.sequence + (carries_payload(wqe) ? 1 : wqe.sequences);
    packet.counted = packet.last;
  }
}

// Payload that is not inline is read by DMA while the unit goes on. False: the program may not send it.
bool PacketBuilder::read_payload(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool granted = walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, packet.offset, packet.payload,
                                 [this, &qp](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                                   pieces_.push_back({address, bytes});
                                   return memory_.grants(*qp.pd, lkey, address, bytes, 0);
                                 });
  packet.reads_left = static_cast<std::uint32_t>(pieces_.size());
  if (granted) {
    for (const Piece& piece : pieces_) {
      bus_.dma_read(piece.address, piece.bytes, &payload_read, this, as_argument(packet));
    }
  }
  pieces_.clear();
  return granted;
}

void PacketBuilder::payload_read(void* object, std::uint64_t argument) {
  PacketBuilder& self = *static_cast<PacketBuilder*>(object);
  Packet& packet = as_packet(argument);
  if (--packet.reads_left > 0) return;
  SimQp& qp = self.qps_.once_there(packet.source_qp);
  // A repeated packet whose first copy was acknowledged meanwhile: the work request is done and its place may have
  // another one. The receiver drops the copy whatever is in it.
  const std::uint64_t wqe = without_generation(packet.cookie);
  const bool stale = qp.state != IBV_QPS_RTS || !of_this_generation(qp, packet.cookie) || wqe < qp.send.done;
  if (!stale && !self.gather(qp, packet)) {
    self.completer_.fail_at(qp, qp.send.at(wqe), IBV_WC_LOC_PROT_ERR);
  }
  self.send_ready(qp);
}

// Copies the payload into the packet. False: a region of it was deregistered while it was read.
bool PacketBuilder::gather(SimQp& qp, Packet& packet) const {
  std::byte* out = packet.data;
  return walk_sges({qp.send.sges_of(without_generation(packet.cookie)), qp.send.max_sge}, packet.offset, packet.payload,
                   [this, &out](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                     if (memory_.find(lkey, address, bytes) == nullptr) return false;
                     memory_.read(address, out, bytes);
                     out += bytes;
                     return true;
                   });
}

// Packets leave in order, each when its payload is there and the rate of the QP allows it.
void PacketBuilder::send_ready(SimQp& qp) {
  PacketQueue& unsent = qp.requester.unsent;
  while (!unsent.empty() && unsent.front().reads_left == 0 && !qp.requester.waits_for_rate) {
    Packet& packet = unsent.front();
    const bool wanted = qp.state == IBV_QPS_RTS && of_this_generation(qp, packet.cookie);
    if (wanted && !congestion_.may_send(qp, packet, &rate_allows, this)) {
      qp.requester.waits_for_rate = true;
      return;
    }
    unsent.pop();
    if (wanted) {
      fabric_.send(packet);
    } else {
      packets_.give_back(packet);
    }
  }
}

void PacketBuilder::rate_allows(void* object, std::uint64_t argument) {
  PacketBuilder& self = *static_cast<PacketBuilder*>(object);
  SimQp& qp = as_qp(argument);
  qp.requester.waits_for_rate = false;
  self.send_ready(qp);
  self.scheduler_.activate(qp);
}

// First looks up the addresses of the packet that comes next, or all that the response to a READ will bring.
void WqeProcessor::take_up(SimQp& qp) {
  const SendWqe& wqe = qp.send.at(qp.send.next);
  std::uint64_t missing = 0;
  if (!wqe.inlined && wqe.length > 0 && qp.state == IBV_QPS_RTS && qp.send.has_work()) {
    const std::uint64_t begin = qp.requester.packet_of_next * std::uint64_t{qp.path_mtu};
    const std::uint64_t most = wqe.wants_response() ? wqe.length : qp.path_mtu;
    walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, begin, std::min(wqe.length - begin, most),
              [this, &missing](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                missing += memory_.missing_translations(lkey, address, bytes);
                return true;
              });
  }
  if (wqe.inlined && wqe.length > 0) prefetch(qp.send.inline_data_of(wqe.index), wqe.length);
  if (missing == 0) return begin(qp);
  bus_.dma_read(0, missing * kCacheLine.value, &translations_read, this, as_argument(qp));
}

void WqeProcessor::translations_read(void* object, std::uint64_t qp) {
  static_cast<WqeProcessor*>(object)->begin(as_qp(qp));
}

void WqeProcessor::begin(SimQp& qp) {
  SendWqe& wqe = qp.send.at(qp.send.next);
  Picos time = profile_.next_packet;
  if (qp.requester.packet_of_next == 0) {
    const auto blocks = static_cast<std::int64_t>(wqe.bytes / kWqeBlock.value);
    time = (wqe.by_blueflame ? profile_.blueflame_wqe : profile_.doorbell_wqe) + profile_.wqe_block * blocks;
    if (std::exchange(wqe.led_reread, false)) {
      time += profile_.reread_wqe;
      scheduler_.note_reread(qp, profile_.reread_wqe);
    }
  }
  if (!wqe.inlined && wqe.length > 0 && facts(wqe.verb).carries_payload) time += profile_.gather;
  fetcher_.taken_up(qp, wqe);
  engine_.schedule(scheduler_.begin_work(qp, time), &time_is_over, this, as_argument(qp));
}

void WqeProcessor::time_is_over(void* object, std::uint64_t argument) {
  WqeProcessor& self = *static_cast<WqeProcessor*>(object);
  SimQp& qp = as_qp(argument);
  if (qp.state == IBV_QPS_RTS && !qp.requester.must_wait() && qp.send.has_work()) self.send_packet(qp);
  self.scheduler_.work_done(qp);
}

void WqeProcessor::send_packet(SimQp& qp) {
  SendWqe& wqe = qp.send.at(qp.send.next);
  if (facts(qp.transport).one_packet && wqe.packets > 1) {
    return completer_.fail_at(qp, wqe, IBV_WC_LOC_LEN_ERR);  // a datagram is one packet
  }
  packets_.send_next(qp, wqe);
  if (qp.state != IBV_QPS_RTS) return;
  if (wqe.wants_response()) qp.reads.begin(wqe.index);
  if (++qp.requester.packet_of_next == wqe.packets) wqe_sent(qp, wqe);
}

void WqeProcessor::wqe_sent(SimQp& qp, SendWqe& wqe) {
  SendQueue& queue = qp.send;
  ++queue.next;
  qp.requester.packet_of_next = 0;
  fetcher_.is_sent(wqe);
  if (facts(qp.transport).reliable) {
    if (queue.done + 1 == queue.next) qp.requester.progress_at = engine_.now();
    retransmitter_.start_timer(qp);
  }
}

void AnswerHandler::take(SimQp& qp, Packet& packet) {
  // Not open: those of a connection before a reset.
  if (qp.state != IBV_QPS_RTS || !facts(qp.transport).reliable ||
      !sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    return fabric_.done_with(packet);
  }
  qp.requester.answers.push(packet);
  if (!qp.requester.reading_for_answer) handle_all(qp);
}

void AnswerHandler::handle_all(SimQp& qp) {
  RequesterState& state = qp.requester;
  while (!state.answers.empty() && qp.state == IBV_QPS_RTS) {
    Packet& packet = state.answers.front();
    if (is_response(packet)) {
      if (qp.reads.count() > 0) {
        SendWqe& wqe = qp.send.at(qp.reads.oldest());
        state.reading_for_answer = !fetcher_.at_hand_for_response(qp, wqe, &wqe_read, this);
        if (state.reading_for_answer) return;
        wqe.staged = true;  // held for the rest of the response and the completion
        handle_response(qp, wqe, packet);
      }
    } else {
      handle_ack(qp, packet);
    }
    if (qp.state != IBV_QPS_RTS) return;  // failed: forget() has taken the answers
    state.answers.pop();
    if (packet.kept) {
      fabric_.taken_in(packet);
    } else {
      fabric_.done_with(packet);
    }
  }
}

// The last packet that an acknowledgement of everything up to `sequence` confirms: nothing that is to be sent again,
// and no READ or atomic without its response. One that is ahead of a response says that the response was lost.
std::uint32_t AnswerHandler::confirmed_by(SimQp& qp, std::uint32_t sequence) {
  SendQueue& queue = qp.send;
  const RequesterState& state = qp.requester;
  if (queue.next < queue.posted) {
    const std::uint32_t to_send = queue.at(queue.next).sequence + state.packet_of_next;
    if (!sequence_before(sequence, to_send)) sequence = to_send - 1;
  }
  if (qp.reads.count() == 0) return sequence;
  const SendWqe& wqe = queue.at(qp.reads.oldest());
  const std::uint32_t missing = wqe.sequence + wqe.responses;
  if (sequence_before(sequence, missing)) return sequence;
  retransmitter_.ask_again(qp);
  return missing - 1;
}

void AnswerHandler::handle_ack(SimQp& qp, const Packet& packet) {
  if (packet.kind == Packet::Kind::ack) return acknowledge_up_to(qp, confirmed_by(qp, packet.sequence));
  if (!sequence_before(qp.requester.acknowledged, packet.sequence)) return;
  const std::uint32_t confirmed = confirmed_by(qp, packet.sequence - 1);
  acknowledge_up_to(qp, confirmed);
  if (qp.send.done == qp.send.posted || confirmed != packet.sequence - 1) return;
  retransmitter_.refused(qp, packet);
}

void AnswerHandler::handle_response(SimQp& qp, SendWqe& wqe, Packet& packet) {
  const std::uint32_t missing = wqe.sequence + wqe.responses;
  if (packet.sequence != missing) {
    if (sequence_before(missing, packet.sequence)) retransmitter_.ask_again(qp);
    return;  // else a repetition
  }
  if (const ibv_wc_status status = scatter(qp, wqe, packet); status != IBV_WC_SUCCESS) {
    return completer_.fail_at(qp, wqe, status);
  }
  ++wqe.responses;
  qp.requester.asked_again = false;
  if (wqe.responses == wqe.sequences) ++qp.reads.ended;
  acknowledge_up_to(qp, packet.sequence);
  scheduler_.activate(qp);
}

// Writes what the response brings to where the WQE wants it, or leaves it to the CQE. The bytes are there at once,
// which only a thread that polls could see: for it they come when they are written, in one piece.
ibv_wc_status AnswerHandler::scatter(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool by_cqe = wqe.signaled && qp.inline_place == InlineReceive::in_cqe && wqe.length <= qp.inline_recv;
  const std::byte* from = packet.data;
  const bool granted =
      walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, wqe.responses * std::uint64_t{qp.path_mtu}, packet.payload,
                [this, &qp, &packet, &from, by_cqe](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  if (!memory_.grants(*qp.pd, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE)) return false;
                  if (bytes == packet.payload && !by_cqe && payload_writer_.polled(address, bytes)) {
                    packet.rkey = lkey;
                    payload_writer_.write(address, packet);
                    return true;
                  }
                  memory_.write(address, from, bytes);
                  if (!by_cqe) bus_.dma_write(address, bytes);
                  from += bytes;
                  return true;
                });
  if (!granted) return IBV_WC_LOC_PROT_ERR;
  if (by_cqe && packet.payload > 0) ++counts_.inline_receives;
  return IBV_WC_SUCCESS;
}

// Completes the work requests whose last packet is `sequence` or before, in order.
void AnswerHandler::acknowledge_up_to(SimQp& qp, std::uint32_t sequence) {
  RequesterState& state = qp.requester;
  if (sequence_before(state.acknowledged, sequence)) {
    state.acknowledged = sequence;
    state.progress_at = engine_.now();
    state.retries_left = qp.settings.retry_cnt;
    state.rnr_retries_left = qp.settings.rnr_retry;
  }
  completer_.complete_all_confirmed(qp);
}

void AnswerHandler::wqe_read(void* object, std::uint64_t word) {
  AnswerHandler& self = *static_cast<AnswerHandler*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  self.units_.note_reread(*qp, self.profile_.reread_wqe);
  self.engine_.schedule(self.units_.occupy(*qp, self.profile_.reread_wqe), &wqe_handled, object, word);
}

void AnswerHandler::wqe_handled(void* object, std::uint64_t word) {
  AnswerHandler& self = *static_cast<AnswerHandler*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state != IBV_QPS_RTS) return;
  qp->requester.reading_for_answer = false;
  qp->send.at(qp->send.whole(QpWord::count(word), QpWord::kCountBits)).staged = true;
  self.handle_all(*qp);
}

void AnswerHandler::forget(SimQp& qp) {
  RequesterState& state = qp.requester;
  state.asked_again = state.reading_for_answer = false;
  while (!state.answers.empty()) fabric_.done_with(state.answers.pop());
}

}  // namespace verbscope::sim
