// The ibv_wr_* interface as a list of work requests: collects the requests of one post, for devices that take the whole
// list at once. Part of a preloaded library, too: needs nothing but the C library and verbs.h.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace verbscope {

// A post in progress. Inline data are copied at once, so that the program may change its memory before wr_complete, as
// in rdma-core.
struct RequestBuilder : ibv_qp_ex {
  // Posts the whole list or, on an error, nothing. Returns the errno.
  using PostAll = int (*)(ibv_qp* qp, ibv_send_wr* list);

  RequestBuilder() : ibv_qp_ex{} {}
  ibv_qp* target = nullptr;  // where posts go
  PostAll post_all = nullptr;
  int error = 0;  // first error of the post
  std::size_t requests = 0;
  std::size_t depth = 0;
  std::size_t max_sge = 0;
  std::size_t max_inline = 0;
  std::unique_ptr<ibv_send_wr[]> list;       // `depth` entries
  std::unique_ptr<ibv_sge[]> sges;           // max_sge entries per request
  std::unique_ptr<std::byte[]> inline_data;  // max_inline bytes per request
};

// Sets the functions of `operations`, a mask of IBV_QP_EX_WITH_* that the type of `target` has. wr_complete passes the
// requests to `post_all`, at most as many as `cap` has room for.
void offer(RequestBuilder& builder, std::uint64_t operations, ibv_qp& target, const ibv_qp_cap& cap,
           RequestBuilder::PostAll post_all);

// Removes operations that were not requested, as rdma-core does, and the address calls of other QP types.
void remove_other_operations(ibv_qp_ex& qp, std::uint64_t operations, ibv_qp_type type);

}  // namespace verbscope
