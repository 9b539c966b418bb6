// The cost of a request by this library and by the model's closed forms: they share facts, not formulas.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "drivers_patch/counter_report.hpp"
#include "pcie_model/costs.hpp"
#include "tests/pcie_model/clusters.hpp"
#include "wire/wqe.hpp"

namespace verbscope::driver {
namespace {

struct Kind {
  Verb verb;
  Transport transport;
  ibv_wr_opcode opcode;
  ibv_qp_type type;
};
constexpr Kind kKinds[] = {
    {Verb::send, Transport::rc, IBV_WR_SEND, IBV_QPT_RC},
    {Verb::send, Transport::uc, IBV_WR_SEND_WITH_IMM, IBV_QPT_UC},
    {Verb::send, Transport::ud, IBV_WR_SEND, IBV_QPT_UD},
    {Verb::write, Transport::rc, IBV_WR_RDMA_WRITE, IBV_QPT_RC},
    {Verb::write, Transport::uc, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QPT_UC},
    {Verb::read, Transport::rc, IBV_WR_RDMA_READ, IBV_QPT_RC},
    {Verb::compare_swap, Transport::rc, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QPT_RC},
    {Verb::fetch_add, Transport::rc, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QPT_RC},
};

// The model's cost of a request without WQE reads, doorbells and CQEs, which requests share,
// and without results that may be written to a CQE.
PciePerOp modelled(const ClusterWire& cluster, const VerbShape& shape, const Prediction& predicted) {
  PciePerOp cost;
  const auto add_packets = [&](PciePerOp (*transfer)(const PcieLink&, std::uint64_t, Bytes)) {
    for (std::uint64_t left = shape.payload.value; left > 0;) {
      const std::uint64_t part = std::min(left, cluster.mtu.value);
      add_weighted(cost, transfer(cluster.pcie, shape.payload_offset.value, Bytes(part)), 1.0);
      left -= part;
    }
  };
  if (predicted.method == PostMethod::blueflame) {
    add_weighted(cost, mmio_lines(cluster.pcie, predicted.wqe_lines), 1.0);
  }
  if (facts(shape.verb).carries_payload && !shape.inlined) add_packets(dma_read);
  const Bytes room = inline_receive_room(cluster.family, shape.transport, shape.verb, cluster.cqe_bytes).max_payload;
  const bool may_be_in_cqe = cluster.family == NicFamily::mlx5 && shape.payload <= room;
  if (facts(shape.verb).wants_response && !may_be_in_cqe) add_packets(dma_write);
  return cost;
}

void expect_as_modelled(const ClusterWire& cluster, const Kind& kind, std::uint64_t size, std::uint64_t offset,
                        bool inlined, int list) {
  SCOPED_TRACE(fmt::format("{} {} {} B at {}{}, list {}, {}", to_string(kind.transport), to_string(kind.verb), size,
                           offset, inlined ? " inline" : "", list, to_string(cluster.family)));
  const VerbShape shape{.verb = kind.verb,
                        .transport = kind.transport,
                        .payload = Bytes(size),
                        .payload_offset = Bytes(offset),
                        .inlined = inlined,
                        .max_inline_cap = Bytes(inlined ? size : 0),
                        .post_list = list};
  const Prediction predicted = predict_requester(cluster, shape);
  const Request request{.opcode = kind.opcode,
                        .flags = inlined ? unsigned{IBV_SEND_INLINE} : 0u,
                        .elements = size > 0 ? 1u : 0u,
                        .length = size,
                        .offset = offset,
                        .alone = list == 1};
  constexpr std::uint64_t kTimes = 3;
  SendTotals counted;
  add_request(facts_of(cluster), {.type = kind.type, .mtu = static_cast<std::uint32_t>(cluster.mtu.value)}, request,
              kTimes, counted);
  EXPECT_EQ(counted.blueflames, predicted.method == PostMethod::blueflame ? kTimes : 0);
  EXPECT_EQ(counted.wqe_blocks, kTimes * static_cast<std::uint64_t>(predicted.wqe_lines));
  EXPECT_EQ(counted.wqe_bytes, kTimes * round_up(predicted.wqe_bytes.value, 16));
  std::vector<double> expected;
  const PciePerOp cost = modelled(cluster, shape, predicted);
  PciePerOp::each(cost, [&](const char*, double value) { expected.push_back(value); });
  std::size_t next = 0;
  PcieCounts::each(counted.pcie.exact, [&](const char* name, std::uint64_t value) {
    EXPECT_EQ(static_cast<double>(value), static_cast<double>(kTimes) * expected[next++]) << name;
  });
}

TEST(DriverCost, RequestsMatchTheModel) {
  for (const ClusterWire& cluster : {wide_mlx5(), narrow_mlx4()}) {
    for (const Kind& kind : kKinds) {
      const bool atomic = facts(kind.verb).atomic;
      for (const std::uint64_t size :
           {0u, 1u, 8u, 28u, 29u, 32u, 33u, 60u, 61u, 188u, 220u, 221u, 256u, 4096u, 10000u}) {
        if (atomic ? size != 8 : facts(kind.transport).one_packet && size > cluster.mtu.value) continue;
        for (const std::uint64_t offset : {0u, 1u, 63u, 64u, 127u}) {
          for (const int list : {1, 4}) {
            expect_as_modelled(cluster, kind, size, offset, false, list);
            const bool may_inline = facts(kind.verb).may_inline && size > 0 && size <= cluster.max_inline.value;
            if (may_inline) expect_as_modelled(cluster, kind, size, offset, true, list);
          }
        }
      }
    }
  }
}

TEST(DriverCost, AListCostsOneDoorbellAndEachWqeOnce) {
  PcieCost cost;
  add_doorbells(facts_of(wide_mlx5()), 2, 32, cost);  // two lists of 16 blocks
  EXPECT_EQ(cost.exact.mmio_doorbells, 2u);
  EXPECT_EQ(cost.exact.payload_bytes_to_nic, 16u);
  EXPECT_EQ(cost.least.dma_read_lines, 32u);
  EXPECT_EQ(cost.least.tlps_to_host, 4u);  // MRRS 512
  EXPECT_EQ(cost.least.tlps_to_nic, 16u);  // RCB 128
  EXPECT_EQ(cost.exact.dma_read_lines, 0u);
}

TEST(DriverCost, BoundsReadsOfRecvs) {
  PcieCost cost;
  add_recvs(facts_of(wide_mlx5()), Bytes(16), 64, 32, cost);
  EXPECT_EQ(cost.least.dma_read_lines, 8u);  // 32 used, four per line
  EXPECT_EQ(cost.least.tlps_to_host, 2u);    // groups of 16
  EXPECT_EQ(cost.most.dma_read_lines, 64u);  // all posted ones, one by one
  EXPECT_EQ(cost.most.tlps_to_host, 64u);
}

TEST(DriverCost, AnUnknownAdapterHasNoCost) {
  WireFacts unknown = facts_of(wide_mlx5());
  unknown.known = false;
  SendTotals counted;
  add_request(unknown, {}, {.opcode = IBV_WR_RDMA_WRITE, .elements = 1, .length = 64, .alone = true}, 1, counted);
  EXPECT_EQ(counted.by_opcode[IBV_WR_RDMA_WRITE], 1u);
  EXPECT_EQ(counted.wqe_blocks, 0u);
  EXPECT_EQ(counted.pcie.exact.mmio_wc_lines, 0u);
}

}  // namespace
}  // namespace verbscope::driver
