
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
      : AskingEnd(setup, options),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.outstanding), sizeof(std::uint64_t)), 1),
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
      HerdLane& lane = lanes_.emplace_back();
      lane.slots = std::span(asked_).subspan(std::size_t{w} * options.outstanding, options.outstanding);
      lane.first_slot = region.address + places.slot(w, client, 0);
      lane.retry_slot = region.address + places.retry(w, client);
      lane.bell = region.address + places.bell(w);
    }
    asker_.lanes = lanes_;
    asker_.writes = &writes_;
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[1].qp, 1), .queue = 1};
    asker_.client = client;
    asker_.choice = choice_of(setup, lanes_.size());
  }

 private:
  RecvRings recvs_;
  HerdWrites writes_;
  std::array<ibv_sge, 3> segments_{};
  std::vector<Asked> asked_;
  std::vector<HerdLane> lanes_;
};

class HerdWorkerEnd final : public AnsweringEnd<HerdWorker> {
 public:
  HerdWorkerEnd(const ThreadSetup& setup, const SequencerOptions& options)
      : AnsweringEnd(setup, options), collected_(setup.topology.all_client_threads()) {
    for (const ResponseTarget& target : responses_.targets(setup)) clients_.push_back({target});
    server_.clients = clients_;
    server_.collected = collected_;
    server_.region = setup.region.bytes.data();
    server_.places = places_of(setup, options);
    server_.worker = setup.thread;
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
