#include "nic_sim/nic/responder.hpp"

#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "nic_sim/link/addresses.hpp"
#include "nic_sim/link/sequence.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

namespace {

Verdict judge_order(const SimQp& qp, const Packet& packet) {
  const ResponderState& state = qp.responder;
  const TransportFacts& transport = facts(qp.transport);
  if (transport.reliable) {
    if (sequence_before(packet.sequence, state.expected)) {
      return packet.verb == Verb::read ? Verdict::repeat : Verdict::duplicate;
    }
    if (packet.sequence != state.expected) return Verdict::gap;
  } else if (!transport.one_packet && !packet.first && (state.dropping || packet.sequence != state.expected)) {
    return Verdict::drop;
  }
  return Verdict::take;
}

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.4.1 (responder's checks): a message of no bytes
// names no region.
Verdict judge_access(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  int access = IBV_ACCESS_REMOTE_WRITE;
  const VerbFacts& verb = facts(packet.verb);
  if (verb.wants_response) {
    const std::uint32_t most = std::max<std::uint32_t>(qp.settings.max_dest_rd_atomic, 1);
    access = verb.atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
    if (qp.responder.reads >= most) return Verdict::invalid;
  }
  if ((qp.settings.qp_access_flags & static_cast<unsigned>(access)) == 0) return Verdict::invalid;
  if (verb.atomic && packet.remote_address % kAtomicBytes != 0) return Verdict::invalid;
  if (packet.length == 0) return Verdict::take;
  const bool granted = memory.grants(*qp.pd, packet.rkey, packet.remote_address, packet.length, access);
  return granted ? Verdict::take : Verdict::no_access;
}

}  // namespace

bool takes_recv(const SimQp& qp, const Packet& packet) {
  return !qp.responder.has_recv && (packet.verb == Verb::send ? packet.first : packet.has_immediate);
}

Verdict judge(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  if (!receiving(qp)) return Verdict::drop;
  if (const Verdict order = judge_order(qp, packet); order != Verdict::take) return order;
  if (facts(packet.verb).one_sided && packet.first) {
    const Verdict access = judge_access(qp, packet, memory);
    if (access != Verdict::take) return facts(qp.transport).reliable ? access : Verdict::drop;
  }
  if (packet.verb == Verb::write && !packet.first &&
      memory.find(packet.rkey, packet.remote_address + packet.offset, packet.payload) == nullptr) {
    return facts(qp.transport).reliable ? Verdict::no_access : Verdict::drop;  // it went away meanwhile
  }
  const RecvQueue& queue = qp.recv_queue();
  if (!takes_recv(qp, packet) || queue.used < queue.fetched) return Verdict::take;
  return queue.used < queue.posted ? Verdict::wait_for_recv : Verdict::no_recv;
}

namespace {

// Whether the packet is of this QP's connection, or a datagram that it takes.
bool is_for(const SimQp& qp, const Packet& packet) {
  if (!receiving(qp) || qp.transport != packet.transport || qp.port != packet.port) return false;
  if (!facts(packet.transport).connected) return qp.qkey == packet.qkey;
  return qp.peer_qp == packet.source_qp && qp.peer_node == packet.source_node;
}

}  // namespace

ReceivingUnits::ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, NicCounts& counts, const QpTable& qps,
                               Congestion& congestion, int units, QpContexts& contexts, const WholeNic& whole)
    : engine_(engine),
      bus_(bus),
      fabric_(fabric),
      counts_(counts),
      qps_(qps),
      congestion_(congestion),
      contexts_(contexts),
      whole_(whole),
      units_(static_cast<std::size_t>(units)),
      idle_(units) {}

// Packets of a QP come in the order of their arrival, however far its state is for each.
void ReceivingUnits::receive(Packet& packet) {
  SimQp* qp = qps_.find(packet.target_qp);
  if (qp == nullptr) return take_in(qp, packet);
  Arrivals& arrivals = qp->arrivals;
  arrivals.latest = std::max(engine_.now() + contexts_.distance(*qp), arrivals.latest);
  if (arrivals.latest == engine_.now()) return take_in(qp, packet);
  engine_.schedule(arrivals.latest, &take_in_later, this, as_argument(packet));
}

// The QP may be gone by then.
void ReceivingUnits::take_in_later(void* object, std::uint64_t argument) {
  auto& self = *static_cast<ReceivingUnits*>(object);
  Packet& packet = as_packet(argument);
  self.take_in(self.qps_.find(packet.target_qp), packet);
}

void ReceivingUnits::take_in(SimQp* qp, Packet& packet) {
  if (packet.kind == Packet::Kind::congestion_notification) {
    if (qp != nullptr && receiving(*qp)) congestion_.notified(*qp);
    return fabric_.done_with(packet);
  }
  const bool answer = is_answer(packet);
  if (qp == nullptr || !(answer || is_for(*qp, packet))) {
    if (!answer) ++counts_.dropped_refused;
    return fabric_.done_with(packet);
  }
  if (packet.marked) congestion_.marked(*qp, packet);
  if (!answer) ++qp->arrivals.requests;
  qp->arrivals.line.push(packet);
  get_in_line(*qp);
  serve();
}

void ReceivingUnits::get_in_line(SimQp& qp) {
  const Arrivals& arrivals = qp.arrivals;
  if (!arrivals.queued && !arrivals.served && !arrivals.line.empty()) line_.push(qp);
}

void ReceivingUnits::serve() {
  while (!line_.empty() && !idle_.empty()) {
    SimQp& qp = line_.pop();
    while (refuse_front(qp)) {
    }
    if (qp.arrivals.line.empty()) continue;
    qp.arrivals.served = true;
    qp.arrivals.unit = idle_.take(qp.arrivals.unit);
    ReceivingUnit& unit = of(qp);
    unit.qp = &qp;
    unit.waiting_since = engine_.now();
    unit.translated = false;
    unit.responses = 0;
    whole_.take_up_packet(qp, unit.front());
  }
}

// Drops the packet in front if the QP takes no requests any more.
bool ReceivingUnits::refuse_front(SimQp& qp) {
  PacketQueue& line = qp.arrivals.line;
  if (line.empty() || is_answer(line.front()) || receiving(qp)) return false;
  --qp.arrivals.requests;
  ++counts_.dropped_refused;
  fabric_.done_with(line.pop());
  return true;
}

void ReceivingUnits::note_waited(ReceivingUnit& unit) {
  unit.time.waited += engine_.now() - unit.waiting_since;
  unit.qp->arrivals.time.waited += engine_.now() - unit.waiting_since;
  unit.waiting_since = engine_.now();
}

// Others may take the QP, whose line may have packets.
void ReceivingUnits::let_go(ReceivingUnit& unit) {
  unit.qp->arrivals.served = false;
  get_in_line(*unit.qp);
  unit.qp = nullptr;
}

Packet& ReceivingUnits::answer_is_taken(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop();
  let_go(unit);
  free_later(unit, engine_.now());
  return packet;
}

void ReceivingUnits::front_is_done(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop();
  --unit.qp->arrivals.requests;
  ++counts_.packets_received;
  if (packet.kept) {
    fabric_.taken_in(packet);
  } else {
    fabric_.done_with(packet);
  }
  let_go(unit);
  free_later(unit, bus_.posted_credit_at());
}

void ReceivingUnits::free_later(ReceivingUnit& unit, Picos when) {
  if (when > engine_.now()) {
    engine_.schedule(when, &unit_free, this, number_of(unit));
  } else {
    unit_free(this, number_of(unit));
  }
}

void ReceivingUnits::unit_free(void* object, std::uint64_t number) {
  ReceivingUnits& self = *static_cast<ReceivingUnits*>(object);
  self.idle_.give_back(static_cast<std::uint32_t>(number));
  self.serve();
}

// The RECV or the atomic that the packet in front waited for is there.
void ReceivingUnits::resume(ReceivingUnit& unit) {
  if (unit.waits_for_recv) note_waited(unit);
  if (unit.waits_for_atomic) note_held_up(unit, engine_.now() - unit.waiting_since);
  unit.waits_for_recv = unit.waits_for_atomic = false;
  whole_.go_on(*unit.qp, unit.front());
}

void ReceivingUnits::recvs_came(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if (unit.waits_for_recv && unit.qp == &qp) resume(unit);
}

void ReceivingUnits::recvs_came(const SimSrq& srq) {
  for (ReceivingUnit& unit : units_) {
    if (!unit.waits_for_recv) continue;
    if (unit.qp->srq == &srq) resume(unit);
  }
}

void ReceivingUnits::atomics_ended(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if (unit.waits_for_atomic && unit.qp == &qp) resume(unit);
}

void ReceivingUnits::forget(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if ((!unit.waits_for_recv && !unit.waits_for_atomic) || unit.qp != &qp) return;
  unit.waits_for_recv = unit.waits_for_atomic = false;
  let_go(unit);
  engine_.schedule(engine_.now(), &unit_free, this, number_of(unit));
}

std::vector<UnitTime> ReceivingUnits::times() const {
  std::vector<UnitTime> times;
  for (const ReceivingUnit& unit : units_) times.push_back(unit.time);
  return times;
}

namespace {

constexpr unsigned kAddressBits = 48;  // addresses of a program are shorter

}  // namespace

void RecvFetcher::fetch(SimQp& qp) {
  if (qp.srq != nullptr) return fetch(*qp.shared_queue());
  fetch(qp.recv, &recvs_fetched, QpWord::make(qp), QpWord::kGenerationBits);
}

void RecvFetcher::fetch(SimSrq& srq) {
  fetch(srq.queue, &shared_recvs_fetched, reinterpret_cast<std::uint64_t>(&srq), kAddressBits);
}

// The event says whose RECVs have come, and above bit `shift` how many. Aligned groups, so that a group is one DMA
// read; two groups ahead of use; less than a group only when there is nothing else at hand.
void RecvFetcher::fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift) {
  const std::uint64_t group = std::min<std::uint64_t>(group_, queue.ring.size());
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = queue.ring.place(queue.fetching) * queue.slot_bytes;
    queue.fetching += count;
    bus_.dma_read(begin, count * queue.slot_bytes, fetched, this, owner | count << shift);
  }
}

void RecvFetcher::recvs_fetched(void* object, std::uint64_t word) {
  RecvFetcher& self = *static_cast<RecvFetcher*>(object);
  SimQp* const qp = self.qps_.current(word);
  if (qp == nullptr || qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET) return;
  qp->recv.fetched += QpWord::count(word);
  self.units_.recvs_came(*qp);
}

void RecvFetcher::shared_recvs_fetched(void* object, std::uint64_t argument) {
  SimSrq& srq = *reinterpret_cast<SimSrq*>(argument & ((std::uint64_t{1} << kAddressBits) - 1));
  srq.queue.fetched += argument >> kAddressBits;
  static_cast<RecvFetcher*>(object)->units_.recvs_came(srq);
}

namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 8.3: version, payload length, next header (0x1B: BTH
// follows), hop limit, and the two addresses.
std::array<std::byte, 40> grh_of(const Packet& packet) {
  ibv_grh grh{};
  grh.version_tclass_flow = htobe32(6u << 28);
  grh.paylen = htobe16(static_cast<std::uint16_t>(packet.wire_bytes - (kLrh + kGrh + kVcrc).value));
  grh.next_hdr = 0x1b;
  grh.hop_limit = 64;
  const auto port = static_cast<std::uint8_t>(packet.port + 1);
  grh.sgid = gid_of(LinkType::infiniband, packet.source_node, port);
  grh.dgid = gid_of(LinkType::infiniband, packet.target_node, port);
  return std::bit_cast<std::array<std::byte, 40>>(grh);
}

// On RoCE v2 an IPv4 header takes the end of that room (annex A17.9.2); its fields are those of RFC 791.
std::array<std::byte, 40> ipv4_of(const Packet& packet) {
  std::array<std::uint8_t, 40> room{};
  const auto put = [&room](std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) room[20 + at + i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
  };
  const auto address = [&packet](std::uint32_t node) {
    return big_endian(gid_of(LinkType::roce_v2, node, static_cast<std::uint8_t>(packet.port + 1)).global.interface_id);
  };
  put(0, 0x45, 1);
  put(1, std::uint64_t{packet.priority} << 5 | (packet.marked ? 3 : 2), 1);  // the priority as DSCP; ECN
  put(2, kIpv4Header.value + kUdpHeader.value + kBth.value + kDeth.value + packet.payload + kIcrc.value, 2);
  put(8, 64, 1);
  put(9, 17, 1);  // UDP follows
  put(12, address(packet.source_node), 4);
  put(16, address(packet.target_node), 4);
  return std::bit_cast<std::array<std::byte, 40>>(room);
}

}  // namespace

// A RECV of a shared queue is copied: its place is free again.
void RecvConsumer::take(SimQp& qp, const Packet& packet) {
  RecvQueue& queue = qp.recv_queue();
  ResponderState& state = qp.responder;
  state.has_recv = true;
  state.recv = queue.at(queue.used);
  state.recv_index = queue.used;
  state.recv_sges = queue.sges_of(queue.used);
  if (qp.srq != nullptr) {
    qp.srq_sges.assign(state.recv_sges, state.recv_sges + state.recv.sges);
    state.recv_sges = qp.srq_sges.data();
  }
  ++queue.used;
  if (!packet.last) fetcher_.fetch(qp);  // another message may need the next before this one is complete
}

ibv_wc_status RecvConsumer::deliver(SimQp& qp, const Packet& packet) {
  const std::uint64_t begin = qp.responder.offset + grh_room(qp);
  if (begin + packet.payload > qp.responder.recv.length) return IBV_WC_LOC_LEN_ERR;
  const InlineReceive place = inline_receive(qp, packet);
  if (place != InlineReceive::nowhere && packet.payload > 0) {
    ++counts_.inline_receives;
    if (place == InlineReceive::in_recv) bus_.dma_write(0, packet.payload, Ordered::yes);
  }
  if (grh_room(qp) > 0 && packet.has_grh) {
    const auto grh = ethernet_ ? ipv4_of(packet) : grh_of(packet);
    if (const ibv_wc_status status = scatter(qp, 0, grh, InlineReceive::nowhere); status != IBV_WC_SUCCESS)
      return status;
  }
  return scatter(qp, begin, {packet.data, packet.payload}, place);
}

// Writes `data` to the buffer of the RECV in use, from its byte `begin` on, or does as the driver will with what is
// left at `place`.
ibv_wc_status RecvConsumer::scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data,
                                    InlineReceive place) {
  const bool granted =
      walk_sges({qp.responder.recv_sges, qp.responder.recv.sges}, begin, data.size(),
                [this, &qp, &data, place](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  if (!memory_.grants(*qp.pd, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE)) return false;
                  if (place != InlineReceive::nowhere) {
                    memory_.write(address, data.data(), bytes);
                  } else {
                    write(address, data.first(bytes), lkey);
                  }
                  data = data.subspan(bytes);
                  return true;
                });
  return granted ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

void RecvConsumer::write(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey) {
  if (payload_.under_way() == 0) {
    memory_.write(address, data.data(), data.size());
    bus_.dma_write(address, data.size(), Ordered::yes);
  } else {  // not before the WRITEs that came before it
    Packet& write = packets_.take(static_cast<std::uint32_t>(data.size()));
    std::memcpy(write.data, data.data(), data.size());
    write.rkey = lkey;
    payload_.write(address, write);
  }
}

void RecvConsumer::complete(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  ResponderState& state = qp.responder;
  unsigned flags = packet.has_immediate ? IBV_WC_WITH_IMM : 0;
  if (grh_room(qp) > 0 && packet.has_grh) flags |= IBV_WC_GRH;
  const bool by_write = packet.verb == Verb::write;
  state.has_recv = false;
  cqes_.complete(qp.recv_completions(),
                 Completion{.visible = {},
                            .wr_id = state.recv.wr_id,
                            .qp = &qp,
                            .index = state.recv_index,
                            .status = status,
                            .opcode = by_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                            .bytes = state.offset + grh_room(qp),
                            .immediate = packet.immediate,
                            .source_qp = packet.source_qp,
                            .source_lid = ethernet_ ? std::uint16_t{0} : lid_of(packet.source_node),
                            .flags = flags,
                            .of_send = false,
                            .solicited = packet.solicited});
  fetcher_.fetch(qp);
}

void RecvConsumer::complete_flushed(SimQp& qp, std::uint64_t wr_id, std::uint64_t index) {
  cqes_.complete(qp.recv_completions(), Completion{.visible = {},
                                                   .wr_id = wr_id,
                                                   .qp = &qp,
                                                   .index = index,
                                                   .status = IBV_WC_WR_FLUSH_ERR,
                                                   .opcode = IBV_WC_RECV,
                                                   .bytes = 0,
                                                   .immediate = 0,
                                                   .source_qp = 0,
                                                   .source_lid = 0,
                                                   .flags = 0,
                                                   .of_send = false});
}

void RecvConsumer::flush(SimQp& qp) {
  RecvQueue& queue = qp.recv;
  ResponderState& state = qp.responder;
  if (state.has_recv) complete_flushed(qp, state.recv.wr_id, state.recv_index);
  state.has_recv = false;
  for (; queue.used < queue.posted; ++queue.used) complete_flushed(qp, queue.at(queue.used).wr_id, queue.used);
  queue.fetched = queue.fetching = queue.posted;
}

Packet& AnswerSender::make(const SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload,
                           Bytes extensions) {
  Packet& packet = packets_.take(payload);
  packet.kind = kind;
  packet.transport = qp.transport;
  packet.completes = false;
  packet.counted = false;
  packet.port = qp.port;
  packet.source_node = node_;
  packet.target_node = qp.peer_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = qp.peer_qp;
  packet.sequence = sequence;
  packet.immediate = qp.settings.min_rnr_timer;
  packet.reads_left = 0;
  packet.cookie = with_generation(qp.generation, 0);
  packet.wire_bytes = framing_.bytes(payload, extensions, qp.has_grh);
  packet.priority = qp.priority;
  return packet;
}

void AnswerSender::send(SimQp& qp, Packet& answer) {
  qp.responder.answers.push(answer);
  send_ready(qp);
}

void AnswerSender::send_ready(SimQp& qp) {
  PacketQueue& answers = qp.responder.answers;
  while (!answers.empty() && answers.front().reads_left == 0 && !qp.responder.waits_for_rate) {
    Packet& packet = answers.front();
    const bool wanted = qp.state != IBV_QPS_RESET && of_this_generation(qp, packet.cookie);
    if (wanted && packet.payload > 0 && !congestion_.may_send(qp, packet, &rate_allows, this)) {
      qp.responder.waits_for_rate = true;
      return;
    }
    answers.pop();
    if (!wanted) {
      packets_.give_back(packet);
      continue;
    }
    if (packet.counted) --qp.responder.reads;
    fabric_.send(packet);
  }
}

void AnswerSender::rate_allows(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(argument);
  qp.responder.waits_for_rate = false;
  static_cast<AnswerSender*>(object)->send_ready(qp);
}

void AnswerSender::acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence) {
  Packet& packet = make(qp, kind, sequence, 0, kAeth);
  if (kind == Packet::Kind::ack) {
    qp.responder.unacknowledged = 0;
    ++counts_.acks_sent;
  } else if (kind == Packet::Kind::nak_receiver_not_ready) {
    ++counts_.rnr_naks_sent;
  } else {
    ++counts_.naks_sent;
  }
  send(qp, packet);
}

bool AnswerSender::respond(SimQp& qp, const Packet& read, std::uint32_t number, bool repeats) {
  const std::uint32_t offset = number * qp.path_mtu;
  const std::uint32_t payload = std::min(read.length - offset, qp.path_mtu);
  const bool first = offset == 0, last = offset + payload == read.length;
  Packet& answer =
      make(qp, Packet::Kind::read_response, read.sequence + number, payload, first || last ? kAeth : Bytes(0));
  answer.first = first;
  answer.last = last;
  answer.remote_address = read.remote_address + offset;
  answer.rkey = read.rkey;
  answer.counted = answer.last && !repeats;
  answer.reads_left = payload > 0 ? 1 : 0;
  if (payload > 0)
    bus_.dma_read(answer.remote_address, payload, &response_read, this, as_argument(answer), Ordered::yes);
  send(qp, answer);
  if (last) ++counts_.reads_served;
  return last;
}

// The bytes are those of the moment at which their read is back: what comes later changes them no more.
void AnswerSender::response_read(void* object, std::uint64_t argument) {
  AnswerSender& self = *static_cast<AnswerSender*>(object);
  Packet& answer = as_packet(argument);
  const SimQp& qp = self.qps_.once_there(answer.source_qp);
  if (self.still_there(qp, answer, answer.payload)) {
    self.memory_.read(answer.remote_address, answer.data, answer.payload);
  } else {
    answer.kind = Packet::Kind::nak_access;
  }
  if (self.profile_.read_response == Picos(0)) return response_ready(object, argument);
  self.engine_.schedule(self.engine_.now() + self.random_.exponential(self.profile_.read_response), &response_ready,
                        object, argument);
}

void AnswerSender::response_ready(void* object, std::uint64_t argument) {
  AnswerSender& self = *static_cast<AnswerSender*>(object);
  Packet& answer = as_packet(argument);
  self.data_read(self.qps_.once_there(answer.source_qp), answer, answer.kind != Packet::Kind::nak_access);
}

Packet& AnswerSender::make_atomic_response(const SimQp& qp, const Packet& atomic) {
  // AtomicAckETH is the 8 bytes of the result.
  return make(qp, Packet::Kind::atomic_response, atomic.sequence, kAtomicBytes, kAeth);
}

void AnswerSender::data_read(SimQp& qp, Packet& answer, bool there) {
  const bool fails = !there && of_this_generation(qp, answer.cookie) && receiving(qp);
  if (!there) answer.kind = Packet::Kind::nak_access;
  answer.reads_left = 0;
  send_ready(qp);
  if (fails) whole_.fail_qp(qp);
}

bool AtomicUnit::begin(SimQp& qp, const Packet& packet) {
  if (!slots_.take(slots_.slot_of(packet.remote_address), static_cast<int>(qp.arrivals.unit), engine_.now())) {
    ++counts_.atomic_slot_waits;
    units_.of(qp).slot_wanted_at = engine_.now();
    return false;
  }
  start(qp, packet);
  return true;
}

void AtomicUnit::start(SimQp& qp, const Packet& packet) {
  Packet& answer = answers_.make_atomic_response(qp, packet);
  answer.verb = packet.verb;
  answer.remote_address = packet.remote_address;
  answer.rkey = packet.rkey;
  answer.operand = packet.operand;
  answer.compare = packet.compare;
  answer.counted = true;
  answer.reads_left = 1;
  ++qp.responder.atomics;
  answers_.send(qp, answer);
  bus_.dma_read(packet.remote_address, kAtomicBytes, &operand_read, this, as_argument(answer), Ordered::yes);
}

void AtomicUnit::operand_read(void* object, std::uint64_t argument) {
  AtomicUnit& self = *static_cast<AtomicUnit*>(object);
  self.engine_.schedule(self.engine_.now() + self.profile_.atomic_operation, &operation_done, object, argument);
}

void AtomicUnit::operation_done(void* object, std::uint64_t argument) {
  AtomicUnit& self = *static_cast<AtomicUnit*>(object);
  Packet& answer = as_packet(argument);
  SimQp& qp = self.qps_.once_there(answer.source_qp);
  const bool there = self.answers_.still_there(qp, answer, kAtomicBytes);
  const std::uint64_t before = there ? self.operate(qp, answer) : 0;
  std::memcpy(answer.data, &before, sizeof before);
  self.give_up_slot(answer.remote_address);
  if (of_this_generation(qp, answer.cookie) && --qp.responder.atomics == 0) self.units_.atomics_ended(qp);
  self.answers_.data_read(qp, answer, there);
}

// Does the operation that `answer` is the answer to. Yields what was there before.
std::uint64_t AtomicUnit::operate(SimQp& qp, const Packet& answer) {
  std::uint64_t before = 0;
  memory_.read(answer.remote_address, reinterpret_cast<std::byte*>(&before), sizeof before);
  std::uint64_t after = before + answer.operand;
  if (answer.verb == Verb::compare_swap) after = before == answer.compare ? answer.operand : before;
  Packet& write = packets_.take(sizeof after);
  write.rkey = answer.rkey;
  std::memcpy(write.data, &after, sizeof after);
  payload_.write(answer.remote_address, write);
  ++counts_.atomics_served;
  if (of_this_generation(qp, answer.cookie)) qp.results.keep(answer.sequence, before);
  return before;
}

// The unit that has waited longest for the slot has it now; the packet in front of its line begins.
void AtomicUnit::give_up_slot(std::uint64_t address) {
  const std::uint64_t slot = slots_.slot_of(address);
  const Picos now = engine_.now();
  for (int number = slots_.give_up(slot, now); number != AtomicSlots::kNobody; number = slots_.give_up(slot, now)) {
    ReceivingUnit& unit = units_[number];
    Packet& packet = unit.front();
    SimQp* qp = qps_.find(packet.target_qp);
    const Picos waited = now - unit.slot_wanted_at;
    counts_.atomic_slot_wait_ps += static_cast<std::uint64_t>(waited.count());
    units_.note_held_up(unit, waited);
    const bool wanted = qp != nullptr && receiving(*qp) && unit.generation == qp->generation;
    if (wanted) start(*qp, packet);
    units_.front_is_done(unit);
    if (wanted) return;
  }
}

void AtomicUnit::repeat(SimQp& qp, const Packet& packet) {
  const AtomicResults::Result* result = qp.results.find(packet.sequence);
  if (result == nullptr) return;
  Packet& answer = answers_.make_atomic_response(qp, packet);
  std::memcpy(answer.data, &result->value, sizeof result->value);
  answers_.send(qp, answer);
}

bool RequestExecutor::take(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  const std::uint64_t spans =
      packet.verb == Verb::read && packet.length > 0 ? divide_up(packet.length, qp.path_mtu) : 1;
  state.expected = packet.sequence + static_cast<std::uint32_t>(spans);
  state.nak_sent = false;
  state.dropping = false;
  if (facts(packet.verb).wants_response) {
    ++state.reads;
    state.unacknowledged = 0;  // the response acknowledges what came before
    return packet.verb == Verb::read || atomics_.begin(qp, packet);
  }
  take_payload(qp, packet);
  return true;
}

void RequestExecutor::take_payload(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  if (packet.first) state.offset = 0;
  if (takes_recv(qp, packet)) recvs_.take(qp, packet);
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (packet.verb == Verb::send) {
    status = recvs_.deliver(qp, packet);
  } else if (packet.payload > 0) {
    payload_.write(packet.remote_address + packet.offset, packet);
  }
  state.offset += packet.payload;
  if (status != IBV_WC_SUCCESS) {
    fail_message(qp, packet, status);
  } else if (packet.last) {
    finish_message(qp, packet);
  }
}

void RequestExecutor::fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  recvs_.complete(qp, packet, status);
  const bool too_long = status == IBV_WC_LOC_LEN_ERR;
  if (facts(qp.transport).reliable) {
    answers_.acknowledge(qp, too_long ? Packet::Kind::nak_invalid : Packet::Kind::nak_operation, packet.sequence);
  }
  whole_.fail_qp(qp);
}

void RequestExecutor::finish_message(SimQp& qp, const Packet& packet) {
  if (packet.verb == Verb::write) ++counts_.writes_received;
  if (packet.verb == Verb::send || packet.has_immediate) {
    recvs_.complete(qp, packet, IBV_WC_SUCCESS);
    ++counts_.messages_received;
  }
  if (!facts(qp.transport).reliable) return;
  ++qp.responder.unacknowledged;
  if (qp.arrivals.requests == 1 ||  // this one
      qp.responder.unacknowledged >= static_cast<std::uint32_t>(profile_.ack_coalescing)) {
    answers_.acknowledge(qp, Packet::Kind::ack, packet.sequence);
  }
}

void RequestExecutor::refuse(SimQp& qp, const Packet& packet, Verdict verdict) {
  ResponderState& state = qp.responder;
  if (verdict == Verdict::duplicate) {
    if (facts(packet.verb).atomic) return atomics_.repeat(qp, packet);
    if (packet.last) answers_.acknowledge(qp, Packet::Kind::ack, state.expected - 1);
  } else if (verdict == Verdict::gap) {
    if (!state.nak_sent) answers_.acknowledge(qp, Packet::Kind::nak_sequence, state.expected);
    state.nak_sent = true;  // one NAK per gap
  } else if (verdict == Verdict::invalid || verdict == Verdict::no_access) {
    const bool invalid = verdict == Verdict::invalid;
    answers_.acknowledge(qp, invalid ? Packet::Kind::nak_invalid : Packet::Kind::nak_access, packet.sequence);
    whole_.fail_qp(qp);
  } else if (verdict == Verdict::no_recv && facts(qp.transport).reliable) {
    answers_.acknowledge(qp, Packet::Kind::nak_receiver_not_ready, state.expected);
    state.nak_sent = true;  // what follows this packet is out of sequence until the sender goes back
  } else {
    ++(verdict == Verdict::no_recv ? counts_.dropped_no_recv : counts_.dropped_refused);
    state.dropping = true;  // UC: up to the next first packet
  }
}

void RequestProcessor::take_up(SimQp& qp, Packet& packet) {
  if (is_answer(packet)) return take_answer(qp, packet);
  if (contexts_.at_hand(qp.responder_context, &read_done, this, as_argument(qp))) begin(qp, packet);
}

void RequestProcessor::take_answer(SimQp& qp, const Packet& answer) {
  const Picos time =
      is_response(answer) ? profile_.handle_response + further_lines(answer.payload) : profile_.handle_ack;
  engine_.schedule(units_.occupy(qp, time), &answer_taken, this, as_argument(qp));
}

void RequestProcessor::answer_taken(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  self.whole_.take_answer(qp, self.units_.answer_is_taken(self.units_.of(qp)));
}

// The state of the QP, or the translations that were missing, have been read.
void RequestProcessor::read_done(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  ReceivingUnit& unit = self.units_.of(qp);
  self.units_.note_waited(unit);
  self.begin(qp, unit.front());
}

void RequestProcessor::begin(SimQp& qp, Packet& packet) {
  ReceivingUnit& unit = units_.of(qp);
  unit.generation = qp.generation;
  const Verdict verdict = judge(qp, packet, memory_);
  if (verdict == Verdict::wait_for_recv) {
    unit.waits_for_recv = true;
    ++counts_.recv_waits;
    return;
  }
  if ((verdict == Verdict::take || verdict == Verdict::repeat) && !unit.translated) {
    unit.translated = true;
    if (const std::uint64_t missing = missing_translations(qp, packet); missing > 0) {
      return bus_.dma_read(0, missing * kCacheLine.value, &read_done, this, as_argument(qp));
    }
  }
  // Requests of a QP take effect in order; only its atomics overlap, which their slots keep apart.
  if (verdict == Verdict::take && qp.responder.atomics > 0 && !facts(packet.verb).atomic) {
    unit.waits_for_atomic = true;
    return;
  }
  work(qp, service_time(qp, packet, verdict));
}

// How many translations the packet's payload needs that are not there, or the whole response to a READ.
std::uint64_t RequestProcessor::missing_translations(SimQp& qp, const Packet& packet) {
  if (const VerbFacts& verb = facts(packet.verb); verb.one_sided) {
    return memory_.missing_translations(packet.rkey, packet.remote_address + packet.offset,
                                        verb.wants_response ? packet.length : packet.payload);
  }
  const ResponderState& state = qp.responder;
  RecvQueue& queue = qp.recv_queue();
  const RecvWqe& recv = state.has_recv ? state.recv : queue.at(queue.used);
  const ibv_sge* sges = state.has_recv ? state.recv_sges : queue.sges_of(queue.used);
  const std::uint64_t begin = (packet.first ? 0 : state.offset) + grh_room(qp);
  std::uint64_t missing = 0;
  if (begin + packet.payload > recv.length) return 0;  // too long: nothing will be written
  walk_sges({sges, recv.sges}, begin, packet.payload,
            [this, &missing](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
              missing += memory_.missing_translations(lkey, address, bytes);
              return true;
            });
  return missing;
}

// What a payload takes for its cache lines after the first.
Picos RequestProcessor::further_lines(std::uint64_t payload) const {
  return profile_.receive_line * static_cast<std::int64_t>(payload == 0 ? 0 : (payload - 1) / kCacheLine.value);
}

Picos RequestProcessor::service_time(const SimQp& qp, const Packet& packet, Verdict verdict) const {
  if (verdict != Verdict::take && verdict != Verdict::repeat) return profile_.receive_packet;
  if (facts(packet.verb).atomic) return profile_.receive_packet + profile_.receive_dma * 2 + profile_.atomic_packet;
  const bool reads = packet.verb == Verb::read && packet.length > 0;
  const InlineReceive place = packet.payload > 0 ? inline_receive(qp, packet) : InlineReceive::in_cqe;
  const bool writes = place == InlineReceive::nowhere;
  const bool completes = packet.last && (packet.verb == Verb::send || packet.has_immediate);
  Picos time = profile_.receive_packet + profile_.receive_dma * ((reads || writes ? 1 : 0) + (completes ? 1 : 0));
  if (place == InlineReceive::in_recv) time += profile_.receive_inline;
  if (writes) time += further_lines(packet.payload);
  // Each packet of the response is made in a time of its own.
  return reads ? time + profile_.read_request + further_lines(std::min(packet.length, qp.path_mtu)) : time;
}

// The unit works on the packet in front for `time`, from when it is free.
void RequestProcessor::work(SimQp& qp, Picos time) {
  engine_.schedule(units_.occupy(qp, time), &time_is_over, this, as_argument(qp));
}

void RequestProcessor::time_is_over(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  ReceivingUnit& unit = self.units_.of(qp);
  const bool wanted = receiving(qp) && unit.generation == qp.generation;
  if (!wanted || self.execute(unit, qp, unit.front())) self.units_.front_is_done(unit);
}

// False: the packet stays in front, for more responses, for a RECV or for a slot.
bool RequestProcessor::execute(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (unit.responses > 0) return respond(unit, qp, packet);
  const Verdict verdict = judge(qp, packet, memory_);
  unit.repeats = verdict == Verdict::repeat;
  switch (verdict) {
    case Verdict::wait_for_recv:  // another QP took the shared queue's last RECV meanwhile
      unit.waits_for_recv = true;
      unit.waiting_since = engine_.now();
      return false;
    case Verdict::take:
      if (!executor_.take(qp, packet)) return false;
      return packet.verb != Verb::read || respond(unit, qp, packet);
    case Verdict::repeat:
      return respond(unit, qp, packet);
    case Verdict::drop:
    case Verdict::duplicate:
    case Verdict::gap:
    case Verdict::invalid:
    case Verdict::no_access:
    case Verdict::no_recv:
      break;
  }
  executor_.refuse(qp, packet, verdict);
  return true;
}

// Makes the next packet of the response to the READ in front. False when more are to come: the unit works on.
bool RequestProcessor::respond(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (answers_.respond(qp, packet, unit.responses, unit.repeats)) {
    unit.responses = 0;
    return true;
  }
  ++unit.responses;
  work(qp, profile_.next_packet);
  return false;
}

}  // namespace verbscope::sim
