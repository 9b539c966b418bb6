#include "systems/one_sided/ends.hpp"

#include "common/error.hpp"

namespace verbscope {

void build_put_recvs(std::span<ibv_recv_wr> recvs, std::span<ibv_sge> segments, std::uint32_t queue, std::byte* bodies,
                     std::uint64_t stride, std::uint32_t bytes, std::uint32_t lkey) {
  for (std::uint32_t i = 0; i < recvs.size(); ++i) {
    segments[i] = {reinterpret_cast<std::uint64_t>(bodies) + i * stride, bytes, lkey};
    recvs[i] = {.wr_id = recv_id(queue, i), .next = nullptr, .sg_list = &segments[i], .num_sge = 1};
  }
}

void post_put_recvs(ibv_qp* qp, std::span<ibv_recv_wr> recvs) {
  for (ibv_recv_wr& recv : recvs) check_errno("post a RECV", post_recv_list(qp, &recv));
}

ibv_send_wr put_request(ibv_sge& segment, std::uint32_t queue, bool by_memory, bool inlined, std::uint64_t address,
                        std::uint32_t rkey) {
  ibv_send_wr wr{};
  wr.wr_id = send_id(queue);
  wr.sg_list = &segment;
  wr.num_sge = 1;
  wr.opcode = by_memory ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
  if (inlined) wr.send_flags = IBV_SEND_INLINE;
  if (by_memory) wr.wr.rdma = {address, rkey};
  return wr;
}

}  // namespace verbscope
