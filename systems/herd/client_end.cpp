#include "systems/store/client_end.hpp"

#include "common/error.hpp"
#include "systems/herd/client.hpp"
#include "systems/herd/ends.hpp"
#include "systems/rpc/peers.hpp"

namespace verbscope::herd {

namespace {

class ClientEnd final : public StoreClientEnd<Asker, StoreClientState> {
 public:
  ClientEnd(const ThreadSetup& setup, const HerdOptions& options)
      : StoreClientEnd(setup, options.store),
        by_send_(options.store.requests_by_send),
        places_(request_region(options, setup.topology.threads, setup.topology.all_client_threads(),
                               setup.operation.payload)),
        recvs_(setup, 1, datagram_recvs(response_recvs(options.store.window), setup.operation.payload), recv_lane()),
        buffer_(Bytes((places_.servers * std::uint64_t{places_.window} + 1) * places_.retry_bytes()), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()),
        open_(std::size_t{places_.servers} * places_.window) {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      open_[i].end = buffer_.data() + (i + 1) * places_.retry_bytes() - kWord;
    }
    prebuild_posts(options);
    for (std::uint32_t t = 0; t < places_.servers; ++t) {
      lanes_.emplace_back().slots = std::span(open_).subspan(std::size_t{t} * places_.window, places_.window);
    }
    by_send_ ? address_servers(setup) : place_requests(setup);
    asker_.lanes = lanes_;
    asker_.posts = &posts_;
    asker_.recvs = {.ring = recvs_.ring(setup.lanes[recv_lane()].qp, recv_lane()), .queue = recv_lane()};
    asker_.places = places_;
    asker_.by_send = by_send_;
    if (options.store.accesses) asker_.echo = echo_rule(options, setup.operation.seed);
  }

 private:
  // Responses come on the UD QP.
  std::uint32_t recv_lane() const { return by_send_ ? 0 : 1; }

  void prebuild_posts(const HerdOptions& options) {
    std::byte* const last = buffer_.data() + buffer_.size() - kWord;
    posts_.bell_word = reinterpret_cast<std::uint64_t*>(last);
    posts_.inline_bytes = options.request_inline;
    posts_.segment.lkey = mr_.lkey();
    posts_.ring_segment = {reinterpret_cast<std::uint64_t>(last), static_cast<std::uint32_t>(kWord), mr_.lkey()};
    posts_.request.sg_list = &posts_.segment;
    posts_.ring.sg_list = &posts_.ring_segment;
    for (ibv_send_wr* wr : {&posts_.request, &posts_.ring}) {
      wr->wr_id = send_id(0);
      wr->num_sge = 1;
      wr->opcode = by_send_ ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE;
      wr->send_flags = posts_.inline_bytes >= kWord ? unsigned{IBV_SEND_INLINE} : 0u;
    }
  }

  void place_requests(const ThreadSetup& setup) {
    const RemoteRegion& region = setup.lanes[0].peers.front().region;
    if (places_.bytes() > region.bytes) {
      fail("the server has {} bytes for requests, not {}", region.bytes, places_.bytes());
    }
    posts_.request.wr.rdma.rkey = posts_.ring.wr.rdma.rkey = region.rkey;
    const std::uint32_t client = number_of_client(setup);
    for (std::uint32_t t = 0; t < places_.servers; ++t) {
      lanes_[t].first_slot = region.address + places_.slot_end(t, client, 0);
      lanes_[t].first_retry = region.address + places_.retry_word(t, client, 0) + kWord;
      lanes_[t].bell = region.address + places_.bell(t);
    }
  }

  void address_servers(const ThreadSetup& setup) {
    for (std::uint32_t t = 0; t < places_.servers; ++t) {
      const PeerQp& qp = asked_qp(setup, setup.lanes[0].peers, t);
      lanes_[t].to = {qp.ah, qp.qpn, qp.qkey};
    }
  }

  bool by_send_;
  RequestRegion places_;
  RecvRings recvs_;
  Buffer buffer_;
  Mr mr_;
  Posts posts_;
  std::vector<Open> open_;
  std::vector<ServerLane> lanes_;
};

}  // namespace

RequestRegion request_region(const HerdOptions& options, std::uint32_t servers, std::uint32_t clients,
                             std::uint32_t value) {
  return {.servers = servers, .clients = clients, .window = options.store.window, .value = value};
}

EchoRule echo_rule(const HerdOptions& options, std::uint64_t seed) {
  return {.seed = seed,
          .places = options.echo_bytes / sizeof(lookups::Chain::Result),
          .accesses = options.store.accesses.value()};
}

std::unique_ptr<Workload> make_client(const ThreadSetup& setup, const HerdOptions& options) {
  return std::make_unique<ClientEnd>(setup, options);
}

}  // namespace verbscope::herd
