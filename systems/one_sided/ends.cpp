#include "systems/one_sided/ends.hpp"

namespace verbscope {

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
