// The RECVs of a client: one for each answer that it waits for, posted before it asks.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/loop/completions.hpp"
#include "microbench/loop/post.hpp"

namespace verbscope {

struct AnswerInbox {
  ibv_qp* qp = nullptr;
  std::uint32_t queue = 0;            // the thread's queue, which a failure names
  std::span<ibv_recv_wr> recvs;       // one request each, used in turn; wr_id's low half is its place
  const std::byte* bodies = nullptr;  // RECV j's value lies at bodies + j * stride
  std::uint64_t stride = 0;
  std::uint32_t posted = 0;
  std::uint32_t next = 0;

  // Posts until `answers` are expected, or there are no more RECVs. False: a post failed.
  bool cover(std::uint32_t answers, RunEnd& end) {
    while (posted < answers && posted < recvs.size()) {
      if (!post_succeeded(post_recv_list(qp, &recvs[next]), queue, end)) return false;
      next = next + 1 == recvs.size() ? 0 : next + 1;
      ++posted;
    }
    return true;
  }

  // Returns what lies in the RECV that `wc` completes, until RECVs are posted again.
  const std::byte* take_body(const ibv_wc& wc) {
    --posted;
    return bodies + recv_place(wc.wr_id) * stride;
  }
  // Returns the value of 8 bytes in the RECV that `wc` completes.
  std::uint64_t take(const ibv_wc& wc) {
    std::uint64_t value;
    std::memcpy(&value, take_body(wc), sizeof value);
    return value;
  }
};

}  // namespace verbscope
