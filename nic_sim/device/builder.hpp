// The ibv_wr_* interface of the simulated device: collects the work requests of one post, and hands them to the data
// path as one list.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace verbscope::sim {

struct SimQp;

// A post under way. `qp_base` is a copy for reading; posts go to `qp`. Inline data are copied when they are given, so
// that the program may change its memory before wr_complete, as with rdma-core.
struct Builder : ibv_qp_ex {
  Builder() : ibv_qp_ex{} {}
  SimQp* qp = nullptr;
  int error = 0;  // the first of the post
  std::size_t requests = 0;
  std::vector<ibv_send_wr> list;       // as many as the send queue is deep
  std::vector<ibv_sge> sges;           // max_sge for each
  std::vector<std::byte> inline_data;  // max_inline for each
};

// For `operations` (IBV_QP_EX_WITH_*), which the QP's transport must have.
std::unique_ptr<Builder> make_builder(SimQp& qp, std::uint64_t operations);

}  // namespace verbscope::sim
