#include "microbench/latency/end.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "microbench/loop/payload.hpp"
#include "verbs/ibv_codes.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kRecvOffset = 64;  // bytes before a received SEND: room for the GRH, up to a cache line
constexpr std::uint32_t kMaxRecvs = 64;    // largest number of posted RECVs per side
constexpr std::uint32_t kSignalResponses =
    64;  // one response in this many is signaled, to keep the cost of CQEs out of the latency

std::uint64_t box_bytes(std::uint32_t payload) {
  return round_up(kRecvOffset + std::max(payload, kAtomicBytes), kSlotAlignment);
}

}  // namespace

bool is_atomic(LatencyVerb verb) {
  return facts(posted_verb(verb)).atomic;
}

bool is_ping_pong(LatencyVerb verb) {
  return posted_verb(verb) == Verb::write || verb == LatencyVerb::send;
}

bool reports_half(LatencyVerb verb) {
  return is_ping_pong(verb) && verb != LatencyVerb::echo;
}

std::uint64_t latency_slice_bytes(std::uint32_t payload) {
  return 2 * box_bytes(payload);
}

std::uint32_t latency_recvs(const Operation& op) {
  return std::min(op.rx_depth, kMaxRecvs);
}

void fill_latency_region(const Operation& op, std::span<std::byte> region) {
  const std::uint64_t slice = latency_slice_bytes(op.payload);
  for (std::uint64_t end = slice; end <= region.size(); end += slice) {
    fill_payload(op.seed, 0, region.subspan(end - op.payload, op.payload));
  }
}

LatencyEnd::LatencyEnd(const ThreadSetup& setup, LatencyVerb verb)
    : verb_(verb), initiates_(setup.side == Side::server), pattern_(std::max(setup.operation.payload, 1u)) {
  const Operation& op = setup.operation;
  lay_out(setup);
  build_request(setup);
  const Lane& lane = setup.lanes.front();
  const std::uint32_t signal_responses = std::min(kSignalResponses, std::max(1u, op.tx_depth / 2));
  state_.queue = {.qp = lane.qp,
                  .builder = lane.builder,
                  .depth = op.tx_depth,
                  .signal_every = initiates_ ? op.signal_every : signal_responses};
  state_.cq = setup.cq;
  state_.channel = setup.channel;
  state_.goal = setup.goal;
  if (op.validate) state_.pattern_end = pattern_.data() + pattern_.size();
  state_.atomic = is_atomic(verb);
  state_.divisor = reports_half(verb) ? 2 : 1;
  if (verb == LatencyVerb::send) post_recvs(setup);
}

// A slice has two boxes, inbox and outbox, each with a message at its end.
void LatencyEnd::lay_out(const ThreadSetup& setup) {
  const Lane& lane = setup.lanes.front();
  const std::uint64_t box = box_bytes(setup.operation.payload);
  std::byte* const slice =
      setup.region.bytes.data() + slice_of(setup.region.bytes.size(), lane.count, lane.index).offset;
  state_.inbox_end = slice + box;
  state_.outbox_end = slice + 2 * box;
  state_.recv_payload = slice + kRecvOffset;
  fill_payload(setup.operation.seed, 0, pattern_);
}

void LatencyEnd::build_request(const ThreadSetup& setup) {
  const Operation& op = setup.operation;
  const Lane& lane = setup.lanes.front();
  const LanePeer& peer = lane.peers[lane.index % lane.peers.size()];
  const std::uint64_t box = box_bytes(op.payload);
  const std::uint64_t remote_box = peer.region.address + peer.slice().offset;  // the peer's inbox; its outbox follows
  const bool reads = verb_ == LatencyVerb::read || is_atomic(verb_);
  state_.bytes = op.payload;
  const std::byte* const local = (reads ? state_.inbox_end : state_.outbox_end) - op.payload;
  state_.segment = {reinterpret_cast<std::uint64_t>(local), op.payload, setup.region.lkey};
  ibv_send_wr& wr = state_.request;
  wr.wr_id = send_id(0);
  wr.opcode = request_opcode(posted_verb(verb_), op.header_only);
  wr.sg_list = &state_.segment;
  wr.num_sge = op.payload > 0 ? 1 : 0;
  if (op.header_only) wr.imm_data = immediate_of(0);
  if (posted_verb(verb_) != Verb::read && !is_atomic(verb_) && op.payload > 0 && op.payload <= op.inline_limit) {
    wr.send_flags = IBV_SEND_INLINE;
  }
  if (is_atomic(verb_)) {
    wr.wr.atomic = {remote_box + box - kAtomicBytes, verb_ == LatencyVerb::fetch_add ? 1u : 0u, 1, peer.region.rkey};
  } else if (verb_ == LatencyVerb::send) {
    if (!facts(op.transport).connected) wr.wr.ud = peer.qp.address();
  } else {
    wr.wr.rdma = {remote_box + (reads ? 2 : 1) * box - op.payload, peer.region.rkey};
  }
}

void LatencyEnd::post_recvs(const ThreadSetup& setup) {
  const Operation& op = setup.operation;
  state_.grh = facts(op.transport).grh_room;
  recv_segment_ = {reinterpret_cast<std::uint64_t>(state_.recv_payload) - state_.grh, state_.grh + op.payload,
                   setup.region.lkey};
  state_.recv.sg_list = &recv_segment_;
  state_.recv.num_sge = recv_segment_.length > 0 ? 1 : 0;
  for (std::uint32_t i = 0; i < latency_recvs(op); ++i) {
    check_errno("post a RECV", post_recv_list(state_.queue.qp, &state_.recv));
  }
}

Json latency_json(const std::vector<const LatencyEnd*>& ends, LatencyVerb verb) {
  Histogram merged;
  for (const LatencyEnd* end : ends) merged.merge(end->state().histogram);
  const Json flat = merged.to_json();
  Json json{{"trip", reports_half(verb) ? "half" : "full"}};
  Json& size = json["latency"].emplace_back(Json{{"size", ends.front()->state().bytes}});
  size.update(flat);
  Json& buckets = size["lat_histogram_ns"] = Json::array();
  merged.each_bucket([&](Picos time, std::uint64_t samples) {
    buckets.push_back(Json::array({static_cast<double>(time.count()) / 1e3, samples}));
  });
  json.update(flat);
  return json;
}

std::string latency_heading(const Json& result) {
  if (!result.contains("latency")) return "";
  return fmt::format(" {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}", "trips", "us: min", "mean", "50 %",
                     "90 %", "99 %", "99.9 %", "99.99 %", "max");
}

std::string latency_row(const Json& result) {
  if (!result.contains("latency")) return "";
  std::string text = fmt::format(" {:>7}", result.value("lat_samples", 0ull));
  for (const char* key : {"min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max"}) {
    const Json& value = result.at(fmt::format("lat_{}_ns", key));
    text += value.is_null() ? fmt::format(" {:>7}", "-") : fmt::format(" {:>7.3f}", value.get<double>() / 1e3);
  }
  return text;
}

}  // namespace verbscope
