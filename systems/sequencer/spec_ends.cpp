#include <algorithm>

#include "common/error.hpp"
#include "systems/rpc/server.hpp"
#include "systems/sequencer/bases.hpp"
#include "systems/sequencer/spec_loop.hpp"

namespace verbscope {

namespace {

std::vector<PeerQp> qps_of(const std::vector<LanePeer>& peers) {
  std::vector<PeerQp> out;
  for (const LanePeer& peer : peers) out.push_back(peer.qp);
  return out;
}

// Requests of a client to one QP.
std::size_t remembered(const SequencerOptions& options) {
  return std::size_t{options.outstanding} + kSpecRemembered;
}

class SpecClientEnd final : public AskingEnd<SpecAsker> {
 public:
  SpecClientEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.outstanding), sizeof(std::uint64_t))),
        book_(qps_of(setup.lanes[0].peers)),
        asked_(setup.lanes[0].peers.size() * remembered(options)) {
    for (std::size_t i = 0; i < setup.lanes[0].peers.size(); ++i) {
      const PeerQp& qp = setup.lanes[0].peers[i].qp;
      SpecLane& lane = lanes_.emplace_back();
      lane.slots = std::span(asked_).subspan(i * remembered(options), remembered(options));
      lane.to = {qp.ah, qp.qpn, qp.qkey};
    }
    request_.wr_id = send_id(0);
    request_.opcode = IBV_WR_SEND_WITH_IMM;
    asker_.lanes = lanes_;
    asker_.book = &book_;
    asker_.request = &request_;
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[0].qp, 0)};
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  RecvRings recvs_;
  QpBook book_;
  ibv_send_wr request_{};
  std::vector<Asked> asked_;
  std::vector<SpecLane> lanes_;
};

// The RECVs for header-only requests: only their completions are looked at, so that all share one place for a GRH.
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
        book_(client_qps(setup)),
        clients_(responses_.targets(setup)) {
    server_.recvs = recvs_;
    server_.reserved = reserved_;
    server_.clients = clients_;
    server_.book = &book_;
    server_.waiting.resize(recvs_.size() * recvs_.front().length);
  }

  std::uint64_t wrong() const override { return server_.strangers; }
  std::uint64_t corrections() const override { return server_.corrections; }

 private:
  RecvRings requests_;
  std::vector<RecvLane> recvs_;
  std::vector<std::uint32_t> reserved_;
  QpBook book_;
  std::vector<ResponseTarget> clients_;
};

}  // namespace

std::unique_ptr<Workload> make_spec_client(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<SpecClientEnd>(setup, options);
}

std::unique_ptr<Workload> make_spec_worker(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<SpecWorkerEnd>(setup, options);
}

}  // namespace verbscope
