// The ibv_wr_* interface produces the same WQEs, PCIe events, times and results as ibv_post_send.
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

constexpr std::uint64_t kTarget = 128 * 1024;

// Builds the request `wr` with the calls of the builder.
void add(ibv_qp_ex* qp, const ibv_send_wr& wr) {
  qp->wr_id = wr.wr_id;
  qp->wr_flags = wr.send_flags & ~kInline;
  const ibv_send_wr& r = wr;
  switch (wr.opcode) {
    case IBV_WR_SEND:
      ibv_wr_send(qp);
      break;
    case IBV_WR_SEND_WITH_IMM:
      ibv_wr_send_imm(qp, r.imm_data);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(qp, r.wr.rdma.rkey, r.wr.rdma.remote_addr);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(qp, r.wr.rdma.rkey, r.wr.rdma.remote_addr, r.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(qp, r.wr.rdma.rkey, r.wr.rdma.remote_addr);
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      ibv_wr_atomic_cmp_swp(qp, r.wr.atomic.rkey, r.wr.atomic.remote_addr, r.wr.atomic.compare_add, r.wr.atomic.swap);
      break;
    default:
      ibv_wr_atomic_fetch_add(qp, r.wr.atomic.rkey, r.wr.atomic.remote_addr, r.wr.atomic.compare_add);
  }
  if (wr.wr.ud.ah != nullptr && qp->wr_set_ud_addr != nullptr) {
    ibv_wr_set_ud_addr(qp, r.wr.ud.ah, r.wr.ud.remote_qpn, r.wr.ud.remote_qkey);
  }
  std::vector<ibv_data_buf> pieces;
  for (int i = 0; i < wr.num_sge; ++i) {
    pieces.push_back({reinterpret_cast<void*>(wr.sg_list[i].addr), wr.sg_list[i].length});
  }
  if ((wr.send_flags & kInline) != 0 && pieces.size() == 1) {
    ibv_wr_set_inline_data(qp, pieces[0].addr, pieces[0].length);
  } else if ((wr.send_flags & kInline) != 0) {
    ibv_wr_set_inline_data_list(qp, pieces.size(), pieces.data());
  } else if (wr.num_sge == 1) {
    ibv_wr_set_sge(qp, wr.sg_list[0].lkey, wr.sg_list[0].addr, wr.sg_list[0].length);
  } else {
    ibv_wr_set_sge_list(qp, static_cast<std::size_t>(wr.num_sge), wr.sg_list);
  }
}

int post(Pair& pair, std::vector<ibv_send_wr> list, bool by_builder) {
  if (by_builder) {
    ibv_qp_ex* const qp = pair.builder();
    ibv_wr_start(qp);
    for (const ibv_send_wr& wr : list) add(qp, wr);
    return ibv_wr_complete(qp);
  }
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair.qa, list.data(), &bad);
}

struct What {
  ibv_wr_opcode opcode;
  std::uint32_t length;  // gathered from two pieces if even and not an atomic's
  unsigned flags = kSignaled;
};

struct Trace {
  int error = 0;
  Picos posted{0};
  std::vector<std::tuple<std::uint64_t, ibv_wc_opcode, ibv_wc_status, Picos>> completions;
  std::vector<std::uint64_t> counts;
  std::vector<std::uint8_t> memory_a, memory_b;

  bool operator==(const Trace&) const = default;
};

// Executes `posts` in order in a thread that then polls for all completions.
Trace trace_of(const std::string& cluster, ibv_qp_type type, const std::vector<std::vector<What>>& posts,
               bool by_builder) {
  QpOptions options{.mtu = IBV_MTU_2048};
  options.builder = by_builder;
  Pair pair(type, options, steady_profile(cluster));
  fill(pair.a.memory(), kIn, 1);
  fill(pair.b.memory(kTarget), kIn, 2);
  pair.b.post_recvs(pair.qb, kIn, 512, 64);
  pair.pass(kLong);
  Trace trace;
  std::size_t signaled = 0;
  std::uint64_t id = 1;
  std::vector<std::vector<ibv_send_wr>> lists;
  std::vector<std::array<ibv_sge, 2>> sges(64);
  for (const std::vector<What>& requests : posts) {
    lists.emplace_back();
    for (const What& what : requests) {
      const auto address = reinterpret_cast<std::uint64_t>(pair.b.memory(kTarget));
      ibv_send_wr wr{};
      wr.wr_id = id;
      wr.opcode = what.opcode;
      wr.send_flags = what.flags;
      wr.imm_data = static_cast<__be32>(id * 77);
      const bool atomic = what.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || what.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
      std::array<ibv_sge, 2>& pieces = sges[id];
      const bool halves = !atomic && what.length > 0 && what.length % 2 == 0;
      pieces[0] = pair.a.sge(id * 512, halves ? what.length / 2 : what.length);
      pieces[1] = pair.a.sge(id * 512 + 256, what.length / 2);
      wr.sg_list = pieces.data();
      wr.num_sge = halves ? 2 : what.length > 0 ? 1 : 0;
      if (type == IBV_QPT_UD) {
        wr.wr.ud = {.ah = pair.ah, .remote_qpn = pair.qb->qp_num, .remote_qkey = 0x1111};
      } else if (atomic) {
        wr.wr.atomic = {.remote_addr = address, .compare_add = 5, .swap = 9, .rkey = pair.b.mr()->rkey};
      } else {
        wr.wr.rdma = {.remote_addr = address + id * 512, .rkey = pair.b.mr()->rkey};
      }
      lists.back().push_back(wr);
      ++id;
      if ((what.flags & kSignaled) != 0) ++signaled;
    }
  }
  const Picos begin = pair.cluster.now();
  pair.cluster.add_thread(0, 90'000, [&](SimNode& node) {
    for (const auto& list : lists) trace.error |= post(pair, list, by_builder);
    trace.posted = node.now() - begin;
    while (trace.completions.size() < signaled && node.now() < begin + kLong) {
      ibv_wc wc{};
      if (ibv_poll_cq(pair.a.send_cq(), 1, &wc) == 1) {
        trace.completions.emplace_back(wc.wr_id, wc.opcode, wc.status, node.now() - begin);
      } else {
        node.idle();
      }
    }
  });
  pair.cluster.run();
  pair.pass(kLong);
  for (const int node : {0, 1}) {
    for (const std::uint64_t count : values(pair.cluster.pcie_counts(node))) trace.counts.push_back(count);
    for (const std::uint64_t count : values(pair.cluster.nic_counts(node))) trace.counts.push_back(count);
  }
  trace.memory_a.assign(pair.a.memory(), pair.a.memory() + TestNode::kMemory);
  trace.memory_b.assign(pair.b.memory(), pair.b.memory() + TestNode::kMemory);
  EXPECT_EQ(trace.completions.size(), signaled);
  return trace;
}

struct Case {
  std::string cluster;
  ibv_qp_type type;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.cluster << '_' << name_of(c.type);
  }
};

class SameAsPostSend : public testing::TestWithParam<Case> {};

TEST_P(SameAsPostSend, EveryOperationAloneAndInAList) {
  const auto [cluster, type] = GetParam();
  std::vector<What> list = {{IBV_WR_SEND, 60, kInline},
                            {IBV_WR_SEND, 0},
                            {IBV_WR_SEND, 61, kInline | kSignaled},
                            {IBV_WR_SEND_WITH_IMM, 100},
                            {IBV_WR_SEND_WITH_IMM, 16, kInline | kSignaled}};
  if (type != IBV_QPT_UD) {
    list.insert(
        list.end(),
        {{IBV_WR_RDMA_WRITE, 28, kInline | kSignaled}, {IBV_WR_RDMA_WRITE, 300}, {IBV_WR_RDMA_WRITE_WITH_IMM, 32}});
  }
  if (type == IBV_QPT_RC) {
    list.insert(list.end(), {{IBV_WR_RDMA_READ, 64}, {IBV_WR_ATOMIC_CMP_AND_SWP, 8}, {IBV_WR_ATOMIC_FETCH_AND_ADD, 8}});
  }
  std::vector<std::vector<What>> posts;
  for (const What& what : list) posts.push_back({what});  // by BlueFlame if the driver does so
  posts.push_back(list);
  const Trace posted = trace_of(cluster, type, posts, false);
  const Trace built = trace_of(cluster, type, posts, true);
  EXPECT_EQ(built.error, 0);
  EXPECT_EQ(built.posted, posted.posted);
  EXPECT_EQ(built.completions, posted.completions);
  EXPECT_EQ(built.counts, posted.counts);
  EXPECT_TRUE(built.memory_a == posted.memory_a);
  EXPECT_TRUE(built.memory_b == posted.memory_b);
  for (const auto& completion : built.completions) EXPECT_EQ(std::get<2>(completion), IBV_WC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, SameAsPostSend,
                         testing::Values(Case{"cib", IBV_QPT_RC}, Case{"cib", IBV_QPT_UC}, Case{"cib", IBV_QPT_UD},
                                         Case{"cx3", IBV_QPT_RC}, Case{"cx3", IBV_QPT_UD}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace verbscope::test
