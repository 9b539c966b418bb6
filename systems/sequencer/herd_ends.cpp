
#include "common/error.hpp"
#include "systems/sequencer/bases.hpp"
#include "systems/sequencer/herd_client.hpp"
#include "systems/sequencer/herd_worker.hpp"

namespace verbscope {

namespace {

HerdPlaces places_of(const ThreadSetup& setup, const SequencerOptions& options) {
  return {setup.topology.threads, setup.topology.all_client_threads(), options.outstanding};
}

ibv_send_wr word_write(ibv_sge& segment, std::uint64_t& word, std::uint32_t rkey) {
  segment = {reinterpret_cast<std::uint64_t>(&word), sizeof word, 0};
  ibv_send_wr wr{};
  wr.wr_id = send_id(0);
  wr.sg_list = &segment;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_INLINE;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

class HerdClientEnd final : public AskingEnd<HerdAsker> {
 public:
  HerdClientEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AskingEnd(setup, options, setup.operation.tx_depth, setup.operation.signal_every),
        recvs_(setup, 1, answer_recvs(options.outstanding)),
        asked_(std::size_t{setup.topology.threads} * options.outstanding) {
    const HerdPlaces places = places_of(setup, options);
    const RemoteRegion& region = setup.lanes[0].peers.front().region;
    if (places.bytes() > region.bytes) {
      fail("the server has {} bytes for requests, not {}", region.bytes, places.bytes());
    }
    writes_.ask = word_write(segments_[0], writes_.word, region.rkey);
    writes_.retry = word_write(segments_[1], writes_.retry_word, region.rkey);
    writes_.ring = word_write(segments_[2], writes_.bell_word, region.rkey);
    const std::uint32_t client = number_of_client(setup);
    for (std::uint32_t w = 0; w < setup.topology.threads; ++w) {
      lanes_.push_back({.asked = std::span(asked_).subspan(std::size_t{w} * options.outstanding, options.outstanding),
                        .first_slot = region.address + places.slot(w, client, 0),
                        .retry_slot = region.address + places.retry(w, client),
                        .bell = region.address + places.bell(w)});
    }
    asker_.lanes = lanes_;
    asker_.writes = &writes_;
    asker_.inbox = recvs_.inbox(setup.lanes[1].qp);
    asker_.client = client;
    asker_.outstanding = options.outstanding;
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  AnswerRecvs recvs_;
  HerdWrites writes_;
  std::array<ibv_sge, 3> segments_{};
  std::vector<Asked> asked_;
  std::vector<HerdLane> lanes_;
};

class HerdWorkerEnd final : public AnsweringEnd<HerdWorker> {
 public:
  HerdWorkerEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AnsweringEnd(setup, options), collected_(setup.topology.all_client_threads()) {
    for (const ClientAddress& address : client_addresses(setup)) {
      HerdClient client{.port = address.port, .node = address.node};
      client.to.wr.ud = {address.qp.ah, address.qp.qpn, address.qp.qkey};
      clients_.push_back(client);
    }
    state_.ports = ports_.ports();
    state_.clients = clients_;
    state_.collected = collected_;
    state_.region = setup.region.bytes.data();
    state_.places = places_of(setup, options);
    state_.worker = setup.thread;
  }

 private:
  std::vector<HerdClient> clients_;
  std::vector<ibv_send_wr*> collected_;
};

}  // namespace

std::unique_ptr<Workload> make_herd_client(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<HerdClientEnd>(setup, options);
}

std::unique_ptr<Workload> make_herd_worker(const ThreadSetup& setup, const SequencerOptions& options) {
  return std::make_unique<HerdWorkerEnd>(setup, options);
}

}  // namespace verbscope
