// A null device whose QP, completion queue and context are counted, as a benchmark attaches them.
#pragma once

#include <gtest/gtest.h>

#include "drivers_patch/objects.hpp"
#include "drivers_patch/summary.hpp"
#include "tests/verbs/null_rig.hpp"

namespace verbscope::driver {

// Counting starts once per process.
inline void begin_counting() {
  static const int result = start_counting("", std::uint64_t{256} << 20, usual_facts(NicFamily::mlx5, false));
  ASSERT_EQ(result, 0);
}

inline ibv_context& counted_context(ibv_context& context) {
  begin_counting();
  attach_context(context, {.family = NicFamily::mlx5});
  return context;
}

// The counts of the context with this number.
inline QpSummary only_qp(const Summary& summary, std::uint32_t context) {
  QpSummary found;
  int qps = 0;
  for (const QpSummary& qp : summary.qps) {
    if (qp.context != context || qp.unknown) continue;
    found = qp;
    ++qps;
  }
  EXPECT_EQ(qps, 1);
  return found;
}

struct TracedRig : NullRig {
  explicit TracedRig(const QpOptions& asked = {}, int cq_entries = 1024) : NullRig(asked, cq_entries) {
    counted_context(*device.get());
    number = summarize_process().contexts.back().number;
    attach_cq(*cq.get());
    attach_qp(
        *qp.get(), qp.builder(),
        {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 4, .max_recv_sge = 1, .max_inline_data = 64},
        false, 1024);
  }
  ~TracedRig() {
    detach_qp(*qp.get());
    detach_cq(*cq.get());
    detach_context(*device.get());
  }
  TracedRig(const TracedRig&) = delete;
  TracedRig& operator=(const TracedRig&) = delete;

  Sums counted() const { return only_qp(summarize_process(), number).sums; }

  std::uint32_t number = 0;
};

// A request with one element; tests change and chain it.
struct Send {
  explicit Send(ibv_wr_opcode opcode = IBV_WR_SEND, std::uint32_t length = 64, unsigned flags = 0) {
    sge.length = length;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.num_sge = 1;
    wr.sg_list = &sge;
  }
  Send(const Send&) = delete;
  Send& operator=(const Send&) = delete;

  ibv_sge sge{};
  ibv_send_wr wr{};
};

}  // namespace verbscope::driver
