#include "microbench/incast/flows.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "microbench/echo/places.hpp"
#include "microbench/incast/flow_loop.hpp"
#include "microbench/loop/payload.hpp"
#include "microbench/run/report.hpp"
#include "verbs/ibv_codes.hpp"

namespace verbscope {
namespace {

constexpr const char* kPackedTrips = "lat_packed";

class FlowSender final : public WorkloadOn<FlowSender> {
 public:
  FlowSender(const ThreadSetup& setup, const FlowOptions& options)
      : buffer_(Bytes(setup.lanes.size() * flow_stride(setup.operation)), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(setup.lanes.size()),
        requests_(setup.lanes.size() * options.window),
        asked_(requests_.size()) {
    const Operation& op = setup.operation;
    state_.answered = needs_answers(op);
    if (state_.answered) {
      answers_.emplace(setup, setup.lanes.size(),
                       echo_recv_shape(op, 0, options.window, !facts(op.transport).connected));
    }
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_flow(setup, options, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.flows = flows_;
    state_.sender = setup.node;
    state_.together = options.together;
    state_.give_up = options.give_up;
    state_.goal = setup.goal;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    FlowSenderLoop<N>(node, state_, control, tally).run();
  }

  bool active() const override { return true; }
  // The packets of several flows come in turn, so that their messages end together; those of a window are bounded
  // whole.
  std::uint64_t round() const override { return state_.together ? 0 : flows_.size(); }
  std::string memory() const override { return buffer_.describe(); }
  const FlowSenderState& state() const { return state_; }

 private:
  void add_flow(const ThreadSetup& setup, const FlowOptions& options, std::uint32_t index) {
    const Operation& op = setup.operation;
    const Lane& lane = setup.lanes[index];
    const LanePeer& peer = lane.peers.front();
    std::byte* const begin = buffer_.data() + index * flow_stride(op);
    if (facts(op.verb).carries_payload) fill_payload(op.seed, index % kMaxPayloadSlots, {begin, op.payload});
    segments_[index] = {reinterpret_cast<std::uint64_t>(begin), op.payload, mr_.lkey()};
    Flow flow;
    flow.requests = std::span(requests_).subspan(std::size_t{index} * options.window, options.window);
    flow.asked = std::span(asked_).subspan(std::size_t{index} * options.window, options.window);
    for (ibv_send_wr& wr : flow.requests) {
      wr.wr_id = send_id(index);
      wr.opcode = request_opcode(op.verb, state_.answered);
      wr.sg_list = &segments_[index];
      wr.num_sge = op.payload > 0 ? 1 : 0;
      if (op.inlined) wr.send_flags = IBV_SEND_INLINE;
      if (!facts(op.transport).connected) {
        wr.wr.ud = {peer.qp.ah, peer.qp.qpn, peer.qp.qkey};
      } else if (facts(op.verb).one_sided) {
        wr.wr.rdma = {peer.region.address + peer.slice().offset, peer.region.rkey};
      }
    }
    if (answers_) flow.answers = answers_->post(lane.qp, index);
    flows_.push_back(flow);
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = static_cast<std::uint32_t>(queues_.size()),
                       .depth = op.tx_depth,
                       .signal_every = state_.answered ? op.signal_every : 1});
  }

  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<Picos> asked_;
  std::optional<RecvRings> answers_;
  std::vector<SendQueue> queues_;
  std::vector<Flow> flows_;
  FlowSenderState state_;
};

class FlowAnswerer final : public WorkloadOn<FlowAnswerer> {
 public:
  FlowAnswerer(const ThreadSetup& setup, const FlowOptions& options)
      : recvs_(setup, setup.lanes.size(),
               echo_recv_shape(setup.operation, setup.operation.payload, under_way(setup, options),
                               !facts(setup.operation.transport).connected)),
        addresses_(setup.lanes.size()) {
    for (std::uint32_t i = 0; i < setup.lanes.size(); ++i) add_lane(setup, i);
    state_.cq = setup.cq;
    state_.channel = setup.channel;
    state_.queues = queues_;
    state_.lanes = lanes_;
    state_.waiting.resize(setup.lanes.size() * echo_recvs(setup.operation, under_way(setup, options)));
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    flow_answerer_loop(node, state_, control, tally);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  std::uint64_t wrong() const override { return state_.wrong; }

 private:
  static std::uint64_t under_way(const ThreadSetup& setup, const FlowOptions& options) {
    return options.window * (setup.lanes.empty() ? 1 : setup.lanes.front().peers.size());
  }

  void add_lane(const ThreadSetup& setup, std::uint32_t index) {
    const Lane& lane = setup.lanes[index];
    AnswerLane mine{};
    mine.recvs = recvs_.post(lane.qp, index);
    mine.answer.wr_id = send_id(index);
    mine.answer.opcode = IBV_WR_SEND_WITH_IMM;
    if (!facts(setup.operation.transport).connected) {
      addresses_[index].resize(lane.peers.size());
      for (const LanePeer& sender : lane.peers) {
        addresses_[index].at(sender.node).wr.ud = {sender.qp.ah, sender.qp.qpn, sender.qp.qkey};
      }
      mine.addresses = addresses_[index];
    }
    lanes_.push_back(mine);
    queues_.push_back({.qp = lane.qp,
                       .builder = lane.builder,
                       .index = static_cast<std::uint32_t>(queues_.size()),
                       .depth = setup.operation.tx_depth,
                       .signal_every = setup.operation.signal_every});
  }

  RecvRings recvs_;
  std::vector<std::vector<ibv_send_wr>> addresses_;  // UD: by lane, then sender
  std::vector<SendQueue> queues_;
  std::vector<AnswerLane> lanes_;
  FlowAnswererState state_;
};

}  // namespace

bool needs_answers(const Operation& op) {
  return !facts(op.transport).reliable;
}

std::uint64_t flow_stride(const Operation& op) {
  return payload_stride(op.payload);
}

std::unique_ptr<Workload> make_flow_sender(const ThreadSetup& setup, const FlowOptions& options) {
  return std::make_unique<FlowSender>(setup, options);
}

std::unique_ptr<Workload> make_flow_answerer(const ThreadSetup& setup, const FlowOptions& options) {
  return std::make_unique<FlowAnswerer>(setup, options);
}

Json flow_results(const std::vector<const Workload*>& threads) {
  Json ops = Json::array();
  Histogram trips;
  std::uint64_t lost = 0;
  for (const Workload* thread : threads) {
    const auto* sender = dynamic_cast<const FlowSender*>(thread);
    if (sender == nullptr) continue;
    for (const Flow& flow : sender->state().flows) ops.push_back(flow.measured);
    trips.merge(sender->state().round_trips);
    lost += sender->state().lost;
  }
  if (ops.empty()) return Json::object();
  return {{"flow_ops", ops}, {"flows_lost", lost}, {kPackedTrips, trips.pack()}};
}

void join_flows(Json& result, std::uint32_t payload, bool own) {
  std::vector<double> ops;
  std::uint64_t lost = 0;
  const auto add = [&](Json& of) {
    for (const Json& flow : of.at("flow_ops")) ops.push_back(flow.get<double>());
    lost += of.at("flows_lost").get<std::uint64_t>();
    of.erase("flow_ops");
    of.erase("flows_lost");
  };
  Histogram trips;
  if (own) {
    add(result);
    trips = Histogram::unpack(result.at(kPackedTrips), kPackedTrips);
    result.erase(kPackedTrips);
  } else {
    for (Json& client : result.at("clients")) add(client.at("result"));
    trips = take_client_histograms(result, kPackedTrips);
  }
  // Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", DEC TR-301, 1984.
  const double sum = std::accumulate(ops.begin(), ops.end(), 0.0);
  const double squares = std::inner_product(ops.begin(), ops.end(), ops.begin(), 0.0);
  const double gbits = result.value("rate_mops", 0.0) * payload * 8 / 1e3;
  const auto share = [&](double of_flow) { return sum > 0 ? gbits * of_flow / sum : 0; };
  result["flows"] = ops.size();
  result["flow_gbit_per_s_mean"] = gbits / static_cast<double>(ops.size());
  result["flow_gbit_per_s_min"] = share(*std::ranges::min_element(ops));
  result["flow_gbit_per_s_max"] = share(*std::ranges::max_element(ops));
  result["fairness"] = squares > 0 ? sum * sum / (static_cast<double>(ops.size()) * squares) : 0;
  result["lost"] = lost;
  result.update(trips.to_json());
}

}  // namespace verbscope
