// The ibv_wr_* interface of the simulated device: collects the work requests of one post and passes them to the data
// path as one list.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace verbscope::sim {

struct SimQp;

// A post in progress. `qp_base` is a read-only copy; posts go to `qp`. Inline data are copied at once, so that the
// program may change its memory before wr_complete, as in rdma-core.
struct Builder : ibv_qp_ex {
  Builder() : ibv_qp_ex{} {}
  SimQp* qp = nullptr;
  int error = 0;  // first error of the post
  std::size_t requests = 0;
  std::vector<ibv_send_wr> list;       // one entry per slot of the send queue
  std::vector<ibv_sge> sges;           // max_sge entries per request
  std::vector<std::byte> inline_data;  // max_inline bytes per request
};

// `operations`: a mask of IBV_QP_EX_WITH_*, all supported by the QP's transport.
std::unique_ptr<Builder> make_builder(SimQp& qp, std::uint64_t operations);

}  // namespace verbscope::sim
