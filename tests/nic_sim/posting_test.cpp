// How WQEs reach the adapter, and how the processing units handle them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::SizeIs;

// Counts events on the sender's link for one post of `count` requests. A request from the same memory goes before, so
// neither QP context nor translation misses.
PcieCounts counts_of_post(const Profile& profile, ibv_qp_type type, const Send& send, int count,
                          QpOptions options = {}) {
  Pair pair(type, options, profile);
  pair.b.post_recvs(pair.qb, kIn, 1024, 64);
  pair.send({.offset = send.offset, .length = 1, .flags = 0});
  pair.pass(kLong);
  const PcieCounts before = pair.cluster.pcie_counts(0);
  EXPECT_EQ(pair.send_list(send, count), 0);
  pair.pass(kLong);
  PcieCounts counts = pair.cluster.pcie_counts(0);
  counts.mmio_wc_lines -= before.mmio_wc_lines;
  counts.mmio_doorbells -= before.mmio_doorbells;
  counts.dma_read_lines -= before.dma_read_lines;
  counts.dma_write_full_lines -= before.dma_write_full_lines;
  counts.dma_write_partial_lines -= before.dma_write_partial_lines;
  counts.payload_bytes_to_nic -= before.payload_bytes_to_nic;
  return counts;
}

struct PostCase {
  std::string cluster;
  ibv_qp_type type;
  std::uint32_t length;
  unsigned flags;
  int count;
  // Computed by hand, from the layouts of rdma-core 44 and its rules for BlueFlame.
  std::uint64_t wc_lines, doorbells, read_lines, full_lines, partial_lines;
  std::string name;
  friend std::ostream& operator<<(std::ostream& out, const PostCase& c) { return out << c.name; }
};

class Post : public testing::TestWithParam<PostCase> {};

TEST_P(Post, CausesExpectedPcieEvents) {
  const PostCase& c = GetParam();
  const ibv_mtu mtu = c.cluster == "cx" ? IBV_MTU_2048 : IBV_MTU_4096;
  // One SGE and at most 60 bytes inline: mlx4's slots then have 128 bytes on every transport.
  const QpOptions options{
      .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 60},
      .mtu = mtu};
  const PcieCounts counts =
      counts_of_post(steady_profile(c.cluster), c.type, {.length = c.length, .flags = c.flags}, c.count, options);
  EXPECT_EQ(counts.mmio_wc_lines, c.wc_lines);
  EXPECT_EQ(counts.mmio_doorbells, c.doorbells);
  EXPECT_EQ(counts.dma_read_lines, c.read_lines);
  EXPECT_EQ(counts.dma_write_full_lines, c.full_lines);
  EXPECT_EQ(counts.dma_write_partial_lines, c.partial_lines);
}

INSTANTIATE_TEST_SUITE_P(
    , Post,
    testing::Values(
        // mlx5: a single WQE goes by BlueFlame. UD inline 60: 68 + 60 = 128 bytes. CQEs have 64 bytes.
        PostCase{"cib", IBV_QPT_UD, 60, kInline, 1, 2, 0, 0, 0, 0, "mlx5_ud_inline"},
        PostCase{"cib", IBV_QPT_UD, 60, kInline | kSignaled, 1, 2, 0, 0, 1, 0, "mlx5_ud_inline_signaled"},
        PostCase{"cib", IBV_QPT_UD, 0, 0, 1, 1, 0, 0, 0, 0, "mlx5_ud_header_only"},
        // 80 bytes of WQE in two lines, and 64 bytes of payload at a line boundary.
        PostCase{"cib", IBV_QPT_UD, 64, 0, 1, 2, 0, 1, 0, 0, "mlx5_ud_by_dma"},
        PostCase{"cib", IBV_QPT_RC, 44, kInline, 1, 1, 0, 0, 0, 0, "mlx5_rc_inline"},
        PostCase{"cib", IBV_QPT_UC, 45, kInline, 1, 2, 0, 0, 0, 0, "mlx5_uc_inline_45"},
        // mlx5: a header-only RC SEND has 16 bytes, too small for BlueFlame: a doorbell and a read of its block.
        PostCase{"cib", IBV_QPT_RC, 0, 0, 1, 0, 1, 1, 0, 0, "mlx5_rc_header_only"},
        // A list: one doorbell, and all blocks are read.
        PostCase{"cib", IBV_QPT_UD, 60, kInline, 4, 0, 1, 8, 0, 0, "mlx5_ud_list"},
        PostCase{"cib", IBV_QPT_UD, 0, 0, 4, 0, 1, 4, 0, 0, "mlx5_ud_header_only_list"},
        PostCase{"cib", IBV_QPT_UD, 64, kSignaled, 4, 0, 1, 12, 4, 0, "mlx5_ud_by_dma_list"},
        // mlx4: BlueFlame only with inline data. CQEs have 32 bytes, half a line.
        PostCase{"cx3", IBV_QPT_UD, 60, kInline | kSignaled, 1, 2, 0, 0, 0, 1, "mlx4_ud_inline_signaled"},
        PostCase{"cx3", IBV_QPT_UD, 0, kInline, 1, 0, 1, 1, 0, 0, "mlx4_ud_header_only"},
        PostCase{"cx3", IBV_QPT_UD, 64, 0, 1, 0, 1, 3, 0, 0, "mlx4_ud_by_dma"},
        PostCase{"cx3", IBV_QPT_RC, 44, kInline, 1, 1, 0, 0, 0, 0, "mlx4_rc_inline"},
        PostCase{"cx3", IBV_QPT_UD, 60, kInline, 4, 0, 1, 8, 0, 0, "mlx4_ud_list"}),
    testing::PrintToStringParamName());

TEST(BlueFlame, EndsAtHalfTheRegister) {
  // mlx5, UD: 68 + 188 = 256 bytes is the largest; one more byte takes 272.
  const QpOptions options{
      .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 256}};
  const PcieCounts largest =
      counts_of_post(steady_profile(), IBV_QPT_UD, {.length = 188, .flags = kInline}, 1, options);
  EXPECT_EQ(largest.mmio_wc_lines, 4u);
  EXPECT_EQ(largest.mmio_doorbells, 0u);
  const PcieCounts larger = counts_of_post(steady_profile(), IBV_QPT_UD, {.length = 189, .flags = kInline}, 1, options);
  EXPECT_EQ(larger.mmio_wc_lines, 0u);
  EXPECT_EQ(larger.mmio_doorbells, 1u);
  EXPECT_EQ(larger.dma_read_lines, 5u);
}

// A link with 62.5 ps per byte and headers of 24 and 20 bytes. Reads of 64 bytes take 396.75 ns (pcie_bus_test.cpp).
Profile round_link() {
  Profile profile = steady_profile();
  profile.wire.pcie.lane_mb_per_s = 1000;
  profile.wire.pcie.request_header = Bytes(24);
  profile.wire.pcie.completion_header = Bytes(20);
  profile.link.tlp_share = profile.link.host_share = 1;
  profile.link.mmio_gap = Picos(0);
  profile.link.propagation = Nanos(120);
  profile.host.memory_read = Nanos(150);
  profile.host.poll_call = Picos(0);  // so that times are exact to a nanosecond
  return profile;
}

TEST(Doorbell, AddsOneDmaReadToTheLatencyOfALonePost) {
  const auto latency = [](const Profile& profile) {
    Pair pair(IBV_QPT_UD, {}, profile);
    pair.b.post_recvs(pair.qb, kIn, 64, 16);
    pair.pass(std::chrono::microseconds(20));  // until the RECVs are fetched
    const Picos begin = pair.cluster.now();
    EXPECT_EQ(pair.send({.length = 0, .flags = 0}), 0);
    Picos when{0};
    EXPECT_THAT(pair.await(pair.b.recv_cq(), 1, std::chrono::milliseconds(1), &when), SizeIs(1));
    return static_cast<double>((when - begin).count());
  };
  Profile by_blueflame = round_link();
  by_blueflame.nic.blueflame_wqe = by_blueflame.nic.doorbell_wqe;  // equal unit times
  Profile by_doorbell = by_blueflame;
  by_doorbell.wire.blueflame_max = Bytes(0);
  // The read of one block, minus the difference of the MMIO writes: 8 + 24 bytes instead of 64 + 24.
  EXPECT_NEAR(latency(by_doorbell) - latency(by_blueflame), 396'750 - 56 * 62.5, 1'500);
}

// The time from the first post until the last of `messages` messages of each of `qps` QPs has left, in microseconds.
double time_to_send(const Profile& profile, int qps, int messages) {
  const QpOptions options{
      .cap = {.max_send_wr = 1024, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0}};
  TwoNodes nodes(profile);
  ibv_ah* ah = nodes.a.make_ah(1);
  std::vector<ibv_qp*> sinks;
  for (int i = 0; i < 16; ++i) {
    sinks.push_back(nodes.b.make_qp(IBV_QPT_UD, options));  // without RECVs: they drop all packets
    EXPECT_EQ(bring_up(nodes.b, sinks.back(), options, 0, 0), 0);
  }
  for (int i = 0; i < qps; ++i) {
    ibv_qp* qp = nodes.a.make_qp(IBV_QPT_UD, options);
    EXPECT_EQ(bring_up(nodes.a, qp, options, 0, 0), 0);
    for (int n = 16; n < messages; n += 16) {
      EXPECT_EQ(nodes.a.post_list(qp, {.flags = 0}, 16, ah, sinks[static_cast<std::size_t>(n / 16 % 16)]->qp_num), 0);
    }
    EXPECT_EQ(nodes.a.post_list(qp, {.flags = 0}, 15, ah, sinks[0]->qp_num), 0);
    EXPECT_EQ(nodes.a.post(qp, {.flags = kSignaled}, ah, sinks[0]->qp_num), 0);
  }
  Picos when{0};
  EXPECT_THAT(nodes.await(nodes.a.send_cq(), static_cast<std::size_t>(qps), std::chrono::milliseconds(1), &when),
              SizeIs(qps));
  return static_cast<double>(when.count()) * 1e-6;
}

// Header-only WQEs of one block: 80 + 20 ns each, by doorbell and by BlueFlame.
Profile hundred_ns_a_wqe() {
  Profile profile = round_link();
  profile.nic.doorbell_wqe = profile.nic.blueflame_wqe = Nanos(80);
  profile.nic.wqe_block = Nanos(20);
  return profile;
}

TEST(Units, OneUnitServesAQp) {
  // 960 WQEs at 100 ns: 96 us, and about two microseconds until the first has arrived and the last has left.
  EXPECT_NEAR(time_to_send(hundred_ns_a_wqe(), 1, 960), 97, 1.5);
}

TEST(Units, TwoQpsUseTwo) {
  EXPECT_NEAR(time_to_send(hundred_ns_a_wqe(), 2, 960), 97, 1.5);
}

TEST(Units, TwoQpsOfOneUnitTakeTwiceAsLong) {
  Profile profile = hundred_ns_a_wqe();
  profile.nic.requester_units = 1;
  EXPECT_NEAR(time_to_send(profile, 2, 960), 193, 1.5);
}

TEST(Units, AreBusyForTheServiceTimeOfEachWqe) {
  Pair pair(IBV_QPT_UD, {}, hundred_ns_a_wqe());
  EXPECT_EQ(pair.send_list({.flags = 0}, 16), 0);
  pair.pass(kLong);
  EXPECT_EQ(pair.cluster.usage_times(0).requester_units.front().busy, Picos(16 * 100'000));
  // Each is dropped because there is no RECV, which takes only the packet's time.
  const NicProfile nic = hundred_ns_a_wqe().nic;
  EXPECT_EQ(pair.cluster.usage_times(1).responder_units.front().busy, 16 * nic.receive_packet);
}

TEST(Units, ReceivingCostsTimeForPayloadAndCompletion) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recvs(pair.qb, kIn, 128, 2);
  EXPECT_EQ(pair.send({.length = 0}), 0);
  EXPECT_EQ(pair.send({.length = 8}), 0);
  pair.pass(kLong);
  // Two packets, a DMA for each completion, and one for the payload.
  const NicProfile nic = load_profile("cib").nic;
  EXPECT_EQ(pair.cluster.usage_times(1).responder_units.front().busy, 2 * nic.receive_packet + 3 * nic.receive_dma);
}

// Four chunks of four lines: each of three units moves a third of them.
TEST(Units, IdleUnitsMoveChunksOfALongPayload) {
  Profile profile = steady_profile();
  profile.nic.responder_units = 3;
  profile.nic.receive_chunk = Bytes(256);
  profile.nic.receive_line = std::chrono::nanoseconds(10);
  Pair pair(IBV_QPT_UD, {}, profile);
  pair.b.post_recvs(pair.qb, kIn, 2048, 1);
  EXPECT_EQ(pair.send({.length = 1024}), 0);
  pair.pass(kLong);
  std::vector<Picos> busy;
  for (const UnitTime& unit : pair.cluster.usage_times(1).responder_units) busy.push_back(unit.busy);
  const Picos share = 4 * (profile.nic.receive_dma + 3 * profile.nic.receive_line) / 3;
  const Picos alone = profile.nic.receive_packet + profile.nic.receive_dma;  // with the DMA of the CQE
  EXPECT_THAT(busy, testing::UnorderedElementsAre(alone + share, share, share));
}

}  // namespace
}  // namespace verbscope::test
