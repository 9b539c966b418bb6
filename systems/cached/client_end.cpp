#include "systems/store/client_end.hpp"

#include "systems/answers/ports.hpp"
#include "systems/cached/ends.hpp"
#include "wire/pcie.hpp"

namespace verbscope::cached {

namespace {

class ClientEnd final : public StoreClientEnd<ClientEnd>, public CachedAccount {
 public:
  ClientEnd(const ThreadSetup& setup, const CachedOptions& options)
      : StoreClientEnd(setup, options.store),
        kept_(parts_.book.values(), options.store.keys, options.store.cached_share),
        recvs_(setup, 0, answer_recvs(options.store.window), item_bytes(setup.operation.payload)),
        open_(std::size_t{setup.topology.threads} * options.store.window),
        stride_(round_up(put_bytes(setup.operation.payload), kCacheLine.value)),
        buffer_(Bytes(open_.size() * stride_), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        queues_{client_queue(setup.lanes[0], setup.operation.tx_depth, setup.operation.signal_every)} {
    state_.cq = setup.cq;
    state_.queues = queues_;
    state_.retry_after = options.store.retry_after;
    state_.goal = setup.goal;
    state_.book = &parts_.book;
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i].end = buffer_.data() + (i + 1) * stride_;
    add_lanes(setup, options.store.window);
    segment_.lkey = mr_.lkey();
    request_.wr_id = send_id(0);
    request_.sg_list = &segment_;
    request_.num_sge = options.store.small_keys ? 0 : 1;
    request_.opcode = IBV_WR_SEND_WITH_IMM;
    asker_.state = &state_;
    asker_.lanes = lanes_;
    asker_.kept = &kept_;
    asker_.request = &request_;
    asker_.inbox = recvs_.inbox(setup.lanes[0].qp);
    asker_.value = setup.operation.payload;
    asker_.inline_bytes = options.request_inline;
    asker_.small_keys = options.store.small_keys;
    asker_.window = options.store.window;
  }

  template <Node N>
  void step(N& node, const RunControl& control, ThreadTally& tally) {
    ask(node, asker_, state_, control, tally);
  }

  const ClientState& state() const override { return state_; }

 private:
  void add_lanes(const ThreadSetup& setup, std::uint32_t window) {
    for (std::uint32_t t = 0; t < setup.topology.threads; ++t) {
      const PeerQp& qp = asked_qp(setup, setup.lanes[0].peers, t);
      lanes_.push_back(
          {.window = std::span(open_).subspan(std::size_t{t} * window, window), .to = {qp.ah, qp.qpn, qp.qkey}});
    }
  }

  KeptValues kept_;
  AnswerRecvs recvs_;
  std::vector<Open> open_;
  std::uint64_t stride_;
  Buffer buffer_;
  Mr mr_;
  ibv_sge segment_{};
  ibv_send_wr request_{};
  std::vector<ServerLane> lanes_;
  std::array<LaneQueue, 1> queues_;
  ClientState state_;
  Asker asker_;
};

}  // namespace

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const CachedOptions& options) {
  return std::make_unique<ClientEnd>(setup, options);
}

}  // namespace verbscope::cached
