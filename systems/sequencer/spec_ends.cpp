#include <algorithm>

#include "common/error.hpp"
#include "systems/answers/message_recvs.hpp"
#include "systems/sequencer/bases.hpp"
#include "systems/sequencer/spec_loop.hpp"

namespace verbscope {

namespace {

std::vector<PeerQp> qps_of(const std::vector<LanePeer>& peers) {
  std::vector<PeerQp> out;
  for (const LanePeer& peer : peers) out.push_back(peer.qp);
  return out;
}

std::vector<PeerQp> qps_of(const std::vector<ClientAddress>& clients) {
  std::vector<PeerQp> out;
  for (const ClientAddress& client : clients) out.push_back(client.qp);
  return out;
}

// Requests of a client to one QP.
std::size_t remembered(const SequencerOptions& options) {
  return std::size_t{options.outstanding} + kSpecRemembered;
}

class SpecClientEnd final : public AskingEnd<SpecAsker> {
 public:
  SpecClientEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options, setup.operation.tx_depth, setup.operation.signal_every),
        recvs_(setup, 0, answer_recvs(options.outstanding)),
        book_(qps_of(setup.lanes[0].peers)),
        asked_(setup.lanes[0].peers.size() * remembered(options)) {
    for (std::size_t i = 0; i < setup.lanes[0].peers.size(); ++i) {
      const PeerQp& qp = setup.lanes[0].peers[i].qp;
      SpecLane lane{.asked = std::span(asked_).subspan(i * remembered(options), remembered(options))};
      lane.to.wr.ud = {qp.ah, qp.qpn, qp.qkey};
      lanes_.push_back(lane);
    }
    request_.wr_id = send_id(0);
    request_.opcode = IBV_WR_SEND_WITH_IMM;
    asker_.lanes = lanes_;
    asker_.book = &book_;
    asker_.request = &request_;
    asker_.inbox = recvs_.inbox(setup.lanes[0].qp);
    asker_.outstanding = options.outstanding;
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  AnswerRecvs recvs_;
  QpBook book_;
  ibv_send_wr request_{};
  std::vector<Asked> asked_;
  std::vector<SpecLane> lanes_;
};

// The RECVs for header-only requests: nothing of them is looked at but the completion, so all share one place for a
// GRH.
class RequestRecvs {
 public:
  explicit RequestRecvs(const ThreadSetup& setup)
      : length_(in_recv_lists(setup.operation.rx_depth)),
        place_(Bytes(kGrh.value), setup.huge_pages),
        mr_(setup.pd, place_.data(), place_.size()),
        segment_{reinterpret_cast<std::uint64_t>(place_.data()), static_cast<std::uint32_t>(kGrh.value), mr_.lkey()},
        requests_(setup.lanes.size() * length_) {}

  // Posts the RECVs of `qp`, the thread's queue `index`.
  RecvLane post(ibv_qp* qp, std::uint32_t index) {
    ibv_recv_wr* const ring = requests_.data() + std::size_t{index} * length_;
    for (std::uint32_t j = 0; j < length_; ++j) {
      ring[j] = {.wr_id = recv_id(index, j), .next = nullptr, .sg_list = &segment_, .num_sge = 1};
      if ((j + 1) % kMessageRecvList != 0) ring[j].next = &ring[j + 1];
    }
    RecvLane queue{.qp = qp, .ring = ring, .length = length_, .list = kMessageRecvList};
    for (std::uint32_t j = 0; j < length_; j += kMessageRecvList) check_errno("post RECVs", post_next_recvs(queue));
    return queue;
  }

  std::uint64_t size() const { return requests_.size(); }

 private:
  std::uint32_t length_;
  Buffer place_;
  Mr mr_;
  ibv_sge segment_;
  std::vector<ibv_recv_wr> requests_;
};

class SpecWorkerEnd final : public AnsweringEnd<SpecWorker> {
 public:
  SpecWorkerEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AnsweringEnd(setup, options), requests_(setup), addresses_(client_addresses(setup)), book_(qps_of(addresses_)) {
    for (const ClientAddress& address : addresses_) {
      SpecClient client{.node = address.node};
      client.to.wr.ud = {address.qp.ah, address.qp.qpn, address.qp.qkey};
      clients_.push_back(client);
    }
    for (const AnswerQueue& queue : ports_.queues()) {
      recvs_.push_back(requests_.post(queue.lane.qp, static_cast<std::uint32_t>(recvs_.size())));
    }
    state_.recvs = recvs_;
    state_.clients = clients_;
    state_.book = &book_;
    state_.waiting.resize(requests_.size());
  }

  std::uint64_t wrong() const override { return state_.strangers; }
  std::uint64_t corrections() const override { return state_.corrections; }

 private:
  RequestRecvs requests_;
  std::vector<RecvLane> recvs_;
  std::vector<ClientAddress> addresses_;
  QpBook book_;
  std::vector<SpecClient> clients_;
};

}  // namespace

std::unique_ptr<Workload> make_spec_client(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<SpecClientEnd>(setup, options);
}

std::unique_ptr<Workload> make_spec_worker(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<SpecWorkerEnd>(setup, options);
}

}  // namespace verbscope
