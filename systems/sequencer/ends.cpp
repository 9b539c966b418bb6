#include "systems/sequencer/ends.hpp"

#include <span>
#include <vector>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "microbench/bench/workload.hpp"
#include "systems/sequencer/herd_loop.hpp"
#include "systems/sequencer/spec_loop.hpp"

namespace verbscope {

namespace {

// The counter is on the first line of the region.
SlotLayout slot_layout(const SequencerOptions& options, std::uint32_t workers, std::uint32_t clients) {
  return {.servers = workers,
          .clients = clients,
          .window = options.outstanding,
          .request_bytes = kHerdRequestBytes,
          .begin = kCacheLine.value};
}

class HerdClientEnd final : public AskingEnd<HerdAsker> {
 public:
  HerdClientEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.outstanding), sizeof(std::uint64_t)), 1),
        requests_(setup, slot_layout(options, setup.topology.threads, setup.topology.all_client_threads()),
                  setup.operation.inline_limit),
        asked_(std::size_t{setup.topology.threads} * options.outstanding),
        lanes_(lanes_over<SlotLane<HerdAsked>>(asked_, options.outstanding)) {
    requests_.place_bytes(std::span(asked_));
    requests_.place_lanes(std::span(lanes_), setup.lanes[0].peers.front().region);
    asker_.lanes = lanes_;
    asker_.writer = &requests_.writer();
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[1].qp, 1), .queue = 1};
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  RecvRings recvs_;
  WrittenRequests requests_;
  std::vector<HerdAsked> asked_;
  std::vector<SlotLane<HerdAsked>> lanes_;
};

class HerdWorkerEnd final : public AnsweringEnd<HerdWorker> {
 public:
  HerdWorkerEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AnsweringEnd(setup, options),
        collected_(std::size_t{setup.topology.all_client_threads()} * options.outstanding) {
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
    server_.clients = clients_;
    server_.collected = collected_;
    server_.thread = setup.thread;
    server_.place_slots(setup.region.bytes.data(),
                        slot_layout(options, setup.topology.threads, setup.topology.all_client_threads()));
  }

 private:
  std::vector<SlotClient> clients_;
  std::vector<ibv_send_wr*> collected_;
};

std::vector<PeerQp> qps_of(const std::vector<LanePeer>& peers) {
  std::vector<PeerQp> out;
  for (const LanePeer& peer : peers) out.push_back(peer.qp);
  return out;
}

// Remembered requests of a client to one QP.
std::size_t remembered(const SequencerOptions& options) {
  return std::size_t{options.outstanding} + kSpecRemembered;
}

class SpecClientEnd final : public AskingEnd<SpecAsker> {
 public:
  SpecClientEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.outstanding), sizeof(std::uint64_t))),
        qps_(qps_of(setup.lanes[0].peers)),
        asked_(setup.lanes[0].peers.size() * remembered(options)),
        lanes_(lanes_over<SpecLane>(asked_, remembered(options))) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].to = setup.lanes[0].peers[i].qp.address();
    request_.wr_id = send_id(0);
    request_.opcode = IBV_WR_SEND_WITH_IMM;
    asker_.lanes = lanes_;
    asker_.qps = &qps_;
    asker_.request = &request_;
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[0].qp, 0)};
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  RecvRings recvs_;
  QpIndex qps_;
  std::vector<Asked> asked_;
  std::vector<SpecLane> lanes_;
  ibv_send_wr request_{};
};

// The RECVs for header-only requests: only their completions matter, so all share one place for a GRH.
RecvShape headers_only(const ThreadSetup& setup) {
  RecvShape shape = request_recvs(setup, 0);
  shape.places = 1;
  return shape;
}

class SpecWorkerEnd final : public AnsweringEnd<SpecWorker> {
 public:
  SpecWorkerEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AnsweringEnd(setup, options),
        requests_(setup, setup.lanes.size(), headers_only(setup)),
        recvs_(post_recvs(requests_, responses_.queues())),
        reserved_(recvs_.size()),
        qps_(client_qps(setup)),
        clients_(responses_.targets(setup)) {
    server_.recvs = recvs_;
    server_.reserved = reserved_;
    server_.clients = clients_;
    server_.qps = &qps_;
    server_.waiting.resize(recvs_.size() * recvs_.front().length);
  }

  std::uint64_t corrections() const override { return server_.corrections; }

 private:
  RecvRings requests_;
  std::vector<RecvLane> recvs_;
  std::vector<std::uint32_t> reserved_;
  QpIndex qps_;
  std::vector<ResponseTarget> clients_;
};

// Keeps atomics outstanding on one QP; they complete in order.
class FetchAsker : public RequestAsker {
 public:
  ClientState* state = nullptr;
  // For each request of the queue's ring.
  std::span<const std::uint64_t> results;
  std::span<Asked> asked;

  std::uint64_t open() const { return state->queues[0].depth - state->queues[0].room; }

  bool ask(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    while (queue.room > 0) {
      state->receipts.ask(asked[queue.posted() % asked.size()], now);
      if (!post_next(queue, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc&, Picos now, bool measured, RunEnd&) {
    const std::size_t place = (state->queues[0].completed() - 1) % asked.size();
    state->receipts.take(results[place], asked[place], now, measured);
    return true;
  }

  bool ask_again(Picos, RunEnd&) { return true; }
};

class FetchClient final : public AskingEnd<FetchAsker> {
 public:
  FetchClient(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options),
        buffer_(Bytes(options.outstanding * sizeof(std::uint64_t)), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        segments_(options.outstanding),
        requests_(options.outstanding),
        asked_(options.outstanding) {
    auto* const results = reinterpret_cast<std::uint64_t*>(buffer_.data());
    const RemoteRegion& region = setup.lanes[0].peers.front().region;
    for (std::size_t j = 0; j < requests_.size(); ++j) {
      segments_[j] = {reinterpret_cast<std::uint64_t>(results + j), sizeof(std::uint64_t), mr_.lkey()};
      requests_[j].wr_id = send_id(0);
      requests_[j].sg_list = &segments_[j];
      requests_[j].num_sge = 1;
      requests_[j].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      requests_[j].wr.atomic = {.remote_addr = region.address, .compare_add = 1, .swap = 0, .rkey = region.rkey};
    }
    queues_[0] = {
        .qp = setup.lanes[0].qp, .builder = setup.lanes[0].builder, .depth = options.outstanding, .ring = requests_};
    asker_.results = {results, requests_.size()};
    asker_.asked = asked_;
  }

  // The server's adapter answers, without messages.
  std::uint64_t sent_to(std::uint32_t) const override { return 0; }
  std::uint64_t received() const override { return 0; }

 private:
  Buffer buffer_;
  Mr mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<Asked> asked_;
};

// A thread of the machine that holds the counter: it only waits for the end.
class CounterHome final : public WorkloadOn<CounterHome>, public SequencerAccount {
 public:
  explicit CounterHome(const ThreadSetup& setup)
      : counter_(setup.thread == 0 ? reinterpret_cast<const std::uint64_t*>(setup.region.bytes.data()) : nullptr) {}

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally&) {
    wait_for_quit(node, control);
  }

  bool active() const override { return false; }
  bool counts() const override { return false; }
  const std::uint64_t* counter() const override { return counter_; }

 private:
  const std::uint64_t* counter_;
};

}  // namespace

std::uint64_t sequencer_region_bytes(const SequencerOptions& options, std::uint32_t client_threads) {
  if (options.design != SequencerDesign::herd) return kCacheLine.value;
  return slot_layout(options, options.workers, client_threads).bytes();
}

std::unique_ptr<Workload> make_sequencer_end(const ThreadSetup& setup, const SequencerOptions& options) {
  const bool client = setup.side == Side::client;
  switch (options.design) {
    case SequencerDesign::herd:
      if (client) return std::make_unique<HerdClientEnd>(setup, options);
      return std::make_unique<HerdWorkerEnd>(setup, options);
    case SequencerDesign::spec:
      if (client) return std::make_unique<SpecClientEnd>(setup, options);
      return std::make_unique<SpecWorkerEnd>(setup, options);
    case SequencerDesign::atomic:
      break;
  }
  if (client) return std::make_unique<FetchClient>(setup, options);
  return std::make_unique<CounterHome>(setup);
}

}  // namespace verbscope
