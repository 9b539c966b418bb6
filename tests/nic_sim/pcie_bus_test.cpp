// The PCIe link: TLPs, bytes, cache lines and time of each transfer, computed by hand.
#include "nic_sim/link/pcie_bus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace verbscope::sim {
namespace {

using testing::ElementsAre;

// 16 lanes of 1000 MB/s: 62.5 ps per byte. Headers: 24 bytes for requests, 20 for completions. Nothing is random.
Profile round_numbers() {
  Profile profile = load_profile("cib");
  profile.wire.pcie.lane_mb_per_s = 1000;
  profile.wire.pcie.request_header = Bytes(24);
  profile.wire.pcie.completion_header = Bytes(20);
  profile.wire.pcie.mps = Bytes(256);
  profile.wire.pcie.mrrs = Bytes(512);
  profile.wire.pcie.rcb = profile.wire.pcie.completion = Bytes(128);
  profile.link.tlp_share = profile.link.host_share = 1;
  profile.link.mmio_gap = Picos(0);
  profile.link.propagation = Nanos(120);
  profile.link.read_tags = 64;
  profile.link.posted_credits = Bytes(4096);
  profile.host.memory_read = Nanos(150);
  profile.host.memory_read_jitter = Picos(0);
  profile.host.slow_read_probability = 0;
  profile.host.memory_write = Nanos(60);
  return profile;
}

struct Link {
  explicit Link(const Profile& p = round_numbers()) : profile(p), bus(engine, profile, 1) {}

  void read(std::uint64_t address, std::uint64_t bytes) {
    bus.dma_read(
        address, bytes, [](void* self, std::uint64_t) { static_cast<Link*>(self)->note(); }, this, 0);
  }
  void note() { done.push_back(engine.now().count()); }
  void run() {
    while (engine.next_time() != Engine::kNever) engine.step();
  }

  Profile profile;
  Engine engine;
  PcieBus bus;
  std::vector<std::int64_t> done;  // completion times of reads
};

struct ReadCase {
  std::uint64_t address, bytes;
  std::uint64_t lines, requests, completions;
  friend std::ostream& operator<<(std::ostream& out, const ReadCase& c) {
    return out << c.bytes << "_at_" << c.address;
  }
};

class DmaRead : public testing::TestWithParam<ReadCase> {};

TEST_P(DmaRead, IsCountedTlpByTlp) {
  const ReadCase& c = GetParam();
  Link link;
  link.read(c.address, c.bytes);
  link.run();
  const PcieCounts& counts = link.bus.counts();
  EXPECT_EQ(counts.dma_read_lines, c.lines);
  EXPECT_EQ(counts.tlps_to_host, c.requests);
  EXPECT_EQ(counts.bytes_to_host, c.requests * 24);
  EXPECT_EQ(counts.payload_bytes_to_host, 0u);
  EXPECT_EQ(counts.tlps_to_nic, c.completions);
  EXPECT_EQ(counts.bytes_to_nic, c.bytes + c.completions * 20);
  EXPECT_EQ(counts.payload_bytes_to_nic, c.bytes);
  EXPECT_EQ(link.done.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, DmaRead,
                         testing::Values(ReadCase{0, 64, 1, 1, 1},        //
                                         ReadCase{62, 4, 2, 1, 1},        // straddles two lines, not an RCB boundary
                                         ReadCase{126, 4, 2, 1, 2},       // straddles two lines and an RCB boundary
                                         ReadCase{0, 128, 2, 1, 1},       //
                                         ReadCase{0, 256, 4, 1, 2},       //
                                         ReadCase{64, 256, 4, 1, 3},      // 64 + 128 + 64
                                         ReadCase{0, 512, 8, 1, 4},       //
                                         ReadCase{0, 1000, 16, 2, 8},     // 512 and 488, each 4 completions
                                         ReadCase{100, 1024, 17, 2, 10},  // to 612: cuts at 128, 256, 384, 512; then
                                                                          // to 1124: at 640, 768, 896, 1024
                                         ReadCase{0, 513, 9, 2, 5},
                                         ReadCase{4000, 200, 4, 1, 2},  // ends at 4096 and at 4200
                                         ReadCase{100, 8192, 129, 16, 80}
                                         // 16 requests of 5 completions each, as those of 1024 B at 100
                                         ),
                         testing::PrintToStringParamName());

// Completions of up to 256 B that end at multiples of 64: [100,320), [320,576) and [576,612).
TEST(PcieCompletions, MayBeLongerThanTheRcb) {
  Profile profile = round_numbers();
  profile.wire.pcie.rcb = Bytes(64);
  profile.wire.pcie.completion = Bytes(256);
  Link link(profile);
  link.read(100, 512);
  link.run();
  EXPECT_EQ(link.bus.counts().tlps_to_nic, 3u);
}

struct WriteCase {
  std::uint64_t address, bytes;
  std::uint64_t full, partial, requests;
  friend std::ostream& operator<<(std::ostream& out, const WriteCase& c) {
    return out << c.bytes << "_at_" << c.address;
  }
};

class DmaWrite : public testing::TestWithParam<WriteCase> {};

TEST_P(DmaWrite, IsCountedTlpByTlp) {
  const WriteCase& c = GetParam();
  Link link;
  link.bus.dma_write(c.address, c.bytes);
  const PcieCounts& counts = link.bus.counts();
  EXPECT_EQ(counts.dma_write_full_lines, c.full);
  EXPECT_EQ(counts.dma_write_partial_lines, c.partial);
  EXPECT_EQ(counts.tlps_to_host, c.requests);
  EXPECT_EQ(counts.bytes_to_host, c.bytes + c.requests * 24);
  EXPECT_EQ(counts.payload_bytes_to_host, c.bytes);
  EXPECT_EQ(counts.tlps_to_nic, 0u);
}

INSTANTIATE_TEST_SUITE_P(, DmaWrite,
                         testing::Values(WriteCase{0, 64, 1, 0, 1},         //
                                         WriteCase{32, 64, 0, 2, 1},        //
                                         WriteCase{62, 4, 0, 2, 1},         // straddles two lines
                                         WriteCase{8, 4, 0, 1, 1},          //
                                         WriteCase{30, 200, 2, 2, 1},       // to 230: whole lines at 64 and 128
                                         WriteCase{0, 300, 4, 1, 2},        // 256 and 44
                                         WriteCase{0, 4096, 64, 0, 16},     //
                                         WriteCase{120, 4096, 63, 2, 16}),  // 8 B, 63 lines, 56 B
                         testing::PrintToStringParamName());

TEST(Mmio, CountsLinesAndDoorbellsSeparately) {
  Link link;
  link.bus.mmio_write(64);
  link.bus.mmio_write(64);
  link.bus.mmio_write(8);
  link.bus.mmio_write(4);
  const PcieCounts& counts = link.bus.counts();
  EXPECT_EQ(counts.mmio_wc_lines, 2u);
  EXPECT_EQ(counts.mmio_doorbells, 2u);
  EXPECT_EQ(counts.tlps_to_nic, 4u);
  EXPECT_EQ(counts.bytes_to_nic, 64u + 64 + 8 + 4 + 4 * 24);
  EXPECT_EQ(counts.payload_bytes_to_nic, 140u);
  EXPECT_EQ(counts.tlps_to_host, 0u);
}

// Kalia et al., ATC 2016, section 3: ten 65-byte WQEs, two lines each, take 1800 bytes by MMIO, and 1534 by a doorbell
// and a read of 1280 bytes. The paper's headers have 26 and 22 bytes.
TEST(PublishedBytes, TenWqesByMmioAndByDoorbell) {
  Profile profile = round_numbers();
  profile.wire.pcie.request_header = Bytes(26);
  profile.wire.pcie.completion_header = Bytes(22);
  Link by_mmio(profile);
  for (int i = 0; i < 20; ++i) by_mmio.bus.mmio_write(64);
  EXPECT_EQ(by_mmio.bus.counts().bytes_to_nic, 1800u);
  Link by_doorbell(profile);
  by_doorbell.bus.mmio_write(8);
  by_doorbell.read(0, 1280);
  by_doorbell.run();
  EXPECT_EQ(by_doorbell.bus.counts().bytes_to_nic, 1534u);
}

// 64 bytes: request 24 * 62.5 = 1500 ps, propagation 120 ns, memory 150 ns, completion 84 * 62.5 = 5250 ps, propagation
// 120 ns.
constexpr std::int64_t kRead64 = 1'500 + 120'000 + 150'000 + 5'250 + 120'000;

TEST(Timing, SingleReadTakesRoundTrip) {
  Link link;
  link.read(0, 64);
  link.run();
  EXPECT_THAT(link.done, ElementsAre(kRead64));
}

TEST(Timing, ReadsShareTheLinkInSequence) {
  Link link;
  for (int i = 0; i < 3; ++i) link.read(0, 64);
  link.run();
  // Completions take longer than requests: 5250 ps each.
  EXPECT_THAT(link.done, ElementsAre(kRead64, kRead64 + 5'250, kRead64 + 10'500));
}

// Two of three reads wait for the link and hold their tags meanwhile. On an idle link each would hold its tag as long
// as a single read.
TEST(Timing, TagsAreHeldLongerWhileReadsWaitForLink) {
  Link link;
  for (int i = 0; i < 3; ++i) link.read(0, 64);
  link.run();
  EXPECT_EQ(link.bus.idle_read(64).count(), kRead64);
  EXPECT_EQ(link.bus.tags_held_idle().count(), 3 * kRead64);
  EXPECT_EQ(link.bus.tags_held().count(), 3 * kRead64 + 5'250 + 10'500);
}

TEST(Timing, AReadWithoutATagWaitsForOne) {
  Profile profile = round_numbers();
  profile.link.read_tags = 2;
  Link link(profile);
  for (int i = 0; i < 4; ++i) link.read(0, 64);
  link.run();
  // The third starts when the first is done, the fourth when the second is.
  EXPECT_THAT(link.done, ElementsAre(kRead64, kRead64 + 5'250, 2 * kRead64, 2 * kRead64 + 5'250));
}

TEST(Timing, ReadWithMoreRequestsThanTagsCompletes) {
  Profile profile = round_numbers();
  profile.link.read_tags = 2;
  Link link(profile);
  link.read(0, 2048);  // four requests
  link.read(0, 64);
  link.run();
  ASSERT_EQ(link.done.size(), 2u);
  EXPECT_EQ(link.done[1] - link.done[0], kRead64);  // it had to wait for all tags
}

TEST(Timing, ReadsStartInOrder) {
  Profile profile = round_numbers();
  profile.link.read_tags = 3;
  Link link(profile);
  link.read(0, 1024);  // two tags
  link.read(0, 1024);  // waits for two
  link.read(0, 64);    // one tag is free, but the second read is before it
  link.run();
  ASSERT_EQ(link.done.size(), 3u);
  EXPECT_GE(link.done[2], link.done[1]);
}

TEST(Timing, WritesAreVisibleAfterLinkAndMemory) {
  Link link;
  // (64 + 24) * 62.5 = 5500 ps each on the link, then 120 ns of propagation and 60 ns of memory.
  EXPECT_EQ(link.bus.dma_write(0, 64), Picos(5'500 + 180'000));
  EXPECT_EQ(link.bus.dma_write(64, 64), Picos(11'000 + 180'000));
}

// 4096 bytes are 16 writes of 256 + 24 bytes, 17500 ps each. The request waits for one of them and takes 24 * 62.5 ps,
// which delays the writes after it.
TEST(Timing, AReadRequestWaitsForOneWriteOfABacklog) {
  Link link;
  link.bus.dma_write(0, 4096);
  link.read(0, 64);
  EXPECT_EQ(link.bus.dma_write(0, 64), Picos(16 * 17'500 + 1'500 + 5'500 + 180'000));
  link.run();
  EXPECT_THAT(link.done, ElementsAre(17'500 + kRead64));
}

TEST(Timing, MmioWritesLeaveInSequenceWithGap) {
  Profile profile = round_numbers();
  profile.link.mmio_gap = Picos(500);
  Link link(profile);
  EXPECT_EQ(link.bus.mmio_write(64), Picos(6'000));         // 88 * 62.5 + 500
  EXPECT_EQ(link.bus.mmio_write(8), Picos(6'000 + 2'500));  // 32 * 62.5 + 500
}

TEST(Timing, TlpShareLengthensEachTransfer) {
  Profile profile = round_numbers();
  profile.link.tlp_share = profile.link.host_share = 0.5;
  Link link(profile);
  EXPECT_EQ(link.bus.dma_write(0, 64), Picos(11'000 + 180'000));
}

TEST(Timing, TheDirectionsDoNotWaitForEachOther) {
  Link link;
  for (int i = 0; i < 100; ++i) link.bus.mmio_write(64);
  EXPECT_EQ(link.bus.dma_write(0, 64), Picos(5'500 + 180'000));
  EXPECT_EQ(link.bus.busy_to_nic(), Picos(0));  // nothing has been sent yet
  link.engine.schedule(
      Picos(1'000'000), [](void*, std::uint64_t) {}, nullptr, 0);
  link.run();
  EXPECT_EQ(link.bus.busy_to_nic(), Picos(550'000));
  EXPECT_EQ(link.bus.busy_to_host(), Picos(5'500));
}

TEST(PostedCredits, RunOutWhenQueueExceedsThem) {
  Link link;
  // 4096 bytes drain in 256 ns. Writes of 88 bytes take 5.5 ns each: 253 ns for 46, 258.5 ns for 47.
  for (int i = 0; i < 46; ++i) link.bus.dma_write(0, 64);
  EXPECT_EQ(link.bus.posted_credit_at(), Picos(0));
  link.bus.dma_write(0, 64);
  EXPECT_EQ(link.bus.posted_credit_at(), Picos(2'500));
}

TEST(Jitter, StaysWithinItsBoundsAndDependsOnTheSeed) {
  Profile profile = round_numbers();
  profile.host.memory_read_jitter = Nanos(30);
  const auto times = [&](std::uint64_t seed) {
    std::vector<std::int64_t> all;
    Engine engine;
    PcieBus bus(engine, profile, seed);
    for (int i = 0; i < 200; ++i) {
      const std::int64_t start = engine.now().count();
      bus.dma_read(
          0, 64, [](void*, std::uint64_t) {}, nullptr, 0);
      while (engine.next_time() != Engine::kNever) engine.step();
      all.push_back(engine.now().count() - start);
    }
    return all;
  };
  EXPECT_THAT(times(1), testing::Each(testing::AllOf(testing::Ge(kRead64), testing::Lt(kRead64 + 30'000))));
  EXPECT_EQ(times(1), times(1));
  EXPECT_NE(times(1), times(2));
}

TEST(Jitter, SomeReadsAreSlow) {
  Profile profile = round_numbers();
  profile.host.slow_read_probability = 0.25;
  profile.host.slow_read_extra = Nanos(300);
  Link link(profile);
  int slow = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t start = link.engine.now().count();
    link.read(0, 64);
    link.run();
    const std::int64_t took = link.done.back() - start;
    EXPECT_TRUE(took == kRead64 || took == kRead64 + 300'000) << took;
    slow += took > kRead64 ? 1 : 0;
  }
  // 1000 draws with probability 1/4: mean 250, standard deviation 13.7; the tolerance is five of them.
  EXPECT_NEAR(slow, 250, 69);
}

}  // namespace
}  // namespace verbscope::sim
