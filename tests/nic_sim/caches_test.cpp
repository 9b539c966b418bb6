// The adapter's caches: WQEs between arrival and last use, QP contexts, and RECVs that are fetched in groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/one_sided.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::SizeIs;

struct Seen {
  PcieCounts pcie;
  NicCounts nic;
};

// Posts sixteen header-only requests by one doorbell, with a WQE cache of `cache_bytes`.
Seen send_sixteen(const std::string& cluster, ibv_qp_type type, unsigned flags, std::uint64_t cache_bytes,
                  std::uint32_t length = 0, std::uint32_t max_inline = 0) {
  Profile profile = steady_profile(cluster);
  profile.nic.wqe_cache = Bytes(cache_bytes);
  const QpOptions options{.cap = {.max_send_wr = 64,
                                  .max_recv_wr = 64,
                                  .max_send_sge = 1,
                                  .max_recv_sge = 1,
                                  .max_inline_data = max_inline},
                          .mtu = IBV_MTU_2048};
  Pair pair(type, options, profile);
  pair.b.post_recvs(pair.qb, kIn, 256, 16);
  pair.pass(kLong);
  EXPECT_EQ(pair.send_list({.length = length, .flags = flags}, 16), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(16));
  return {pair.cluster.pcie_counts(0), pair.cluster.nic_counts(0)};
}

TEST(WqeCache, HoldsABatchThatFits) {
  const Seen seen = send_sixteen("cib", IBV_QPT_UD, 0, 16 * 64);
  EXPECT_EQ(seen.nic.wqe_cache_misses, 0u);
  EXPECT_EQ(seen.nic.wqe_cache_hits, 16u);
  EXPECT_EQ(seen.nic.wqe_cache_reread_lines, 0u);
}

TEST(WqeCache, ReadsAgainWhatItCouldNotHold) {
  // The cache holds two: of sixteen WQEs that arrive together, the last two remain. The other fourteen are read again.
  const Seen seen = send_sixteen("cib", IBV_QPT_UD, 0, 2 * 64);
  EXPECT_EQ(seen.nic.wqe_cache_misses, 14u);
  EXPECT_EQ(seen.nic.wqe_cache_hits, 2u);
  EXPECT_EQ(seen.nic.wqe_cache_reread_lines, 14u);
}

// Time from posting 64 header-only SENDs by one doorbell until the last has arrived, with a cache of `cache_bytes`.
// Rereads take no unit time.
Picos time_of_sixty_four_sends(std::uint64_t cache_bytes) {
  Profile profile = steady_profile();
  profile.nic.wqe_cache = Bytes(cache_bytes);
  profile.nic.reread_wqe = Picos(0);
  Pair pair(IBV_QPT_UD, {}, profile);
  pair.b.post_recvs(pair.qb, kIn, 256, 64);
  pair.pass(kLong);
  EXPECT_EQ(pair.send_list({.length = 0, .flags = 0}, 64), 0);
  const Picos begin = pair.cluster.now();
  Picos end = begin;
  pair.cluster.add_thread(1, 0, [&pair, &end](SimNode& node) {
    ibv_wc wc{};
    for (int arrived = 0; arrived < 64;) {
      if (ibv_poll_cq(pair.b.recv_cq(), 1, &wc) == 1) {
        ++arrived;
      } else {
        node.idle();
      }
    }
    end = node.now();
  });
  pair.pass(kLong);
  return end - begin;
}

TEST(WqeCache, WqesAreReadAgainWhileTheUnitWorksOnThoseBeforeThem) {
  // A unit takes longer for eight WQEs than a PCIe read takes, so it waits for the first read only. Without look-ahead
  // it would wait eight times.
  const Profile profile = steady_profile();
  const Picos read = 2 * profile.link.propagation + profile.host.memory_read;
  ASSERT_GT(8 * (profile.nic.doorbell_wqe + profile.nic.wqe_block), read + Nanos(100));
  const Picos waited = time_of_sixty_four_sends(2 * 64) - time_of_sixty_four_sends(1 << 20);
  EXPECT_GT(waited, read / 2);
  EXPECT_LT(waited, 2 * read);
}

TEST(WqeCache, AnAcknowledgementNeedsNoWqe) {
  // Sending: 14 misses as above. Acknowledged WRITEs complete without their WQE and so never miss (ATC 2016, Section
  // 5.3.2).
  const Seen seen = send_sixteen("cib", IBV_QPT_RC, kSignaled, 2 * 64);
  EXPECT_EQ(seen.nic.wqe_cache_misses, 14u);
  EXPECT_EQ(seen.nic.wqe_cache_hits, 2u);
}

// Misses of sixteen outstanding READs with a cache for four sent WQEs.
std::uint64_t misses_of_sixteen_reads(Replacement replacement) {
  Profile profile = steady_profile();
  profile.nic.sent_wqe_cache = Bytes(4 * 64);
  profile.nic.sent_wqe_replacement = replacement;
  OneSided pair(IBV_QPT_RC, {}, profile);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 32)), 0);
  EXPECT_THAT(pair.await(pair.a.send_cq(), 16), SizeIs(16));
  return pair.cluster.nic_counts(0).wqe_cache_misses;
}

TEST(WqeCache, AResponseNeedsItsWqeOnceMore) {
  // Twelve of sixteen find no place. With replacement of the oldest these are the first twelve; with random replacement
  // at least the last one remains.
  EXPECT_EQ(misses_of_sixteen_reads(Replacement::oldest), 12u);
  EXPECT_EQ(misses_of_sixteen_reads(Replacement::random), 12u);
}

struct RereadCase {
  std::string cluster;
  ibv_qp_type type;
  unsigned flags;
  std::uint32_t length, max_inline;
  friend std::ostream& operator<<(std::ostream& out, const RereadCase& c) {
    return out << c.cluster << '_' << name_of(c.type) << "_flags" << c.flags << '_' << c.length << "_of_"
               << c.max_inline;
  }
};

class Reread : public testing::TestWithParam<RereadCase> {};

TEST_P(Reread, TheExtraReadsAreExactlyTheRereadLines) {
  const RereadCase& c = GetParam();
  const Seen enough = send_sixteen(c.cluster, c.type, c.flags, 1 << 20, c.length, c.max_inline);
  const Seen small = send_sixteen(c.cluster, c.type, c.flags, 256, c.length, c.max_inline);
  EXPECT_EQ(enough.nic.wqe_cache_misses, 0u);
  EXPECT_GT(small.nic.wqe_cache_misses, 0u);
  EXPECT_EQ(small.pcie.dma_read_lines - enough.pcie.dma_read_lines, small.nic.wqe_cache_reread_lines);
}

std::vector<RereadCase> reread_cases() {
  std::vector<RereadCase> all;
  for (const std::string cluster : {"cib", "cx3", "cx"}) {
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
      for (const unsigned signaled : {0u, kSignaled}) {
        all.push_back({cluster, type, signaled, 0, 0});
        all.push_back({cluster, type, signaled, 0, 188});  // slots larger than their WQEs
        all.push_back({cluster, type, signaled | kInline, 60, 60});
        all.push_back({cluster, type, signaled | kInline, 100, 188});
        all.push_back({cluster, type, signaled, 64, 0});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, Reread, testing::ValuesIn(reread_cases()), testing::PrintToStringParamName());

TEST(WqeCache, WqesOfSeveralSizesGoRoundARingCorrectly) {
  // WQEs of one to four blocks, in a ring whose size is not a multiple of theirs. WQEs that cross its end are read in
  // two parts.
  Profile profile = steady_profile();
  profile.nic.wqe_cache = Bytes(256);
  const QpOptions options{
      .cap = {.max_send_wr = 7, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 188}};
  Pair small(IBV_QPT_UD, options, profile);
  Pair enough(IBV_QPT_UD, options);
  for (unsigned round = 0; round < 40; ++round) {
    for (Pair* pair : {&small, &enough}) {
      ASSERT_EQ(pair->b.post_recvs(pair->qb, kIn, 256, 7), 0);
      for (unsigned first = 0; first < 6; first += 3) {
        const std::uint32_t length = (round * 61 + first * 50) % 189;
        fill(pair->a.memory(first * 256), length, round);
        ASSERT_EQ(pair->send_list({.offset = first * 256, .length = length, .flags = kInline | kSignaled}, 3), 0);
      }
      pair->pass(std::chrono::microseconds(30));
      ASSERT_THAT(pair->a.poll_sends(), SizeIs(6)) << round;
      const auto received = pair->b.poll_recvs();
      ASSERT_THAT(received, SizeIs(6)) << round;
      for (unsigned i = 0; i < 6; ++i) {
        const std::uint32_t length = (round * 61 + i / 3 * 150) % 189;
        ASSERT_EQ(received[i].byte_len, length + 40);
        ASSERT_TRUE(has_pattern(pair->b.memory(kIn + received[i].wr_id * 256 + 40), length, round));
      }
      ASSERT_EQ(pair->send({.length = 0, .flags = kSignaled}), 0);
      pair->pass(std::chrono::microseconds(30));
      pair->a.poll_sends();
      pair->b.poll_recvs();
    }
  }
  EXPECT_GT(small.cluster.nic_counts(0).wqe_cache_misses, 0u);
  EXPECT_EQ(small.cluster.pcie_counts(0).dma_read_lines - enough.cluster.pcie_counts(0).dma_read_lines,
            small.cluster.nic_counts(0).wqe_cache_reread_lines);
}

// One header-only SEND by BlueFlame from each of `qps` QPs in turn, for `rounds` rounds, with a cache for four contexts
// of 375 bytes. The sender reads only contexts.
Seen take_turns(int qps, int rounds) {
  Profile profile = steady_profile();
  profile.nic.qp_context = Bytes(375);
  profile.nic.qp_context_cache = Bytes(4 * 375);
  Pair pair(IBV_QPT_UD, {}, profile);
  std::vector<ibv_qp*> all{pair.qa};
  for (int i = 1; i < qps; ++i) {
    all.push_back(pair.a.make_qp(IBV_QPT_UD));
    EXPECT_EQ(bring_up(pair.a, all.back(), {}, 0, 0), 0);
  }
  for (int round = 0; round < rounds; ++round) {
    for (ibv_qp* qp : all) {
      EXPECT_EQ(pair.a.post(qp, {.flags = kSignaled}, pair.ah, pair.qb->qp_num), 0);
      pair.pass(std::chrono::microseconds(5));
      EXPECT_THAT(pair.a.poll_sends(), SizeIs(1));
    }
  }
  return {pair.cluster.pcie_counts(0), pair.cluster.nic_counts(0)};
}

TEST(QpContextCache, MissesEachQpOnceWhenAllFit) {
  const Seen seen = take_turns(4, 3);
  EXPECT_EQ(seen.nic.qp_context_misses, 4u);
  EXPECT_EQ(seen.nic.qp_context_hits, 8u);
  EXPECT_EQ(seen.pcie.dma_read_lines, 4u * 6);  // 375 bytes are 6 lines
}

TEST(QpContextCache, MissesTwoInFiveWhenOneMoreTakesTurns) {
  // One of five is always missing. At its turn it evicts a random one of the other four, whose turn is one to four uses
  // later: a miss per 2.5 uses. 1,000 misses with a standard deviation of 1.1 uses: 1.4 % of the mean.
  constexpr int kRounds = 500;
  const Seen seen = take_turns(5, kRounds);
  const auto misses = static_cast<double>(seen.nic.qp_context_misses);
  EXPECT_NEAR(misses / (5 * kRounds), 0.4, 4 * 0.4 * 0.014);
  EXPECT_EQ(seen.pcie.dma_read_lines, seen.nic.qp_context_misses * 6);
  EXPECT_EQ(seen.nic.qp_context_misses_twice, 5u);  // a cache for eight would hold all
}

TEST(QpContextCache, AMissDelaysTheRequestByTheRead) {
  Profile profile = steady_profile();
  profile.nic.qp_context = Bytes(375);
  profile.nic.qp_context_miss = Picos(0);
  Profile never = profile;
  never.nic.qp_context_cache = Bytes(1);  // too small for any
  const auto time = [](const Profile& p) {
    Pair pair(IBV_QPT_UD, {}, p);
    EXPECT_EQ(pair.send({.flags = kSignaled}), 0);
    pair.pass(std::chrono::microseconds(20));
    EXPECT_THAT(pair.a.poll_sends(), SizeIs(1));
    const Picos begin = pair.cluster.now();
    EXPECT_EQ(pair.send({.flags = kSignaled}), 0);
    Picos when{0};
    pair.await(pair.a.send_cq(), 1, std::chrono::milliseconds(1), &when);
    return static_cast<double>((when - begin).count()) * 1e-3;
  };
  // 375 bytes: request 26 B, three completions 375 + 66 B at 64.7 ps, propagation 2 * 120 ns, memory 150 ns: 420 ns. A
  // poll takes 16 ns.
  EXPECT_NEAR(time(never) - time(profile), 420, 17);
}

TEST(NearQpContexts, AFarOneDelaysThePostTheRequestAndTheAcknowledgement) {
  const auto time = [](std::uint64_t near) {
    Profile profile = steady_profile();
    profile.nic.near_qp_contexts = near;
    profile.nic.far_qp_context = Nanos(400);
    Pair pair(IBV_QPT_RC, {}, profile);
    pair.b.post_recvs(pair.qb, kIn, 256, 2);
    Picos begin{0}, when{0};
    for (int i = 0; i < 2; ++i) {  // the first has delays for other reasons
      begin = pair.cluster.now();
      EXPECT_EQ(pair.send({.flags = kSignaled}), 0);
      pair.await(pair.a.send_cq(), 1, std::chrono::milliseconds(1), &when);
    }
    return static_cast<double>((when - begin).count()) * 1e-3;
  };
  EXPECT_NEAR(time(0) - time(1), 3 * 400, 17);  // a poll takes 16 ns
}

// Counts the lines that the receiver's adapter reads for RECVs of one SGE, 16 bytes each.
struct Receiver : Pair {
  Receiver()
      : Pair(IBV_QPT_UD, {.cap = {.max_send_wr = 256,
                                  .max_recv_wr = 256,
                                  .max_send_sge = 1,
                                  .max_recv_sge = 1,
                                  .max_inline_data = 64}}) {
    // The first packet is dropped and loads the QP's context.
    send({.flags = 0});
    pass(kLong);
    context_lines_ = cluster.pcie_counts(1).dma_read_lines;
  }
  // Without lines of translations, which miss because the buffers are new.
  std::uint64_t recv_lines() {
    pass(kLong);
    return cluster.pcie_counts(1).dma_read_lines - context_lines_ - cluster.nic_counts(1).translation_misses;
  }

 private:
  std::uint64_t context_lines_ = 0;
};

TEST(RecvFetch, ReadsGroupsOfSixteenAsFourLines) {
  Receiver receiver;
  ASSERT_EQ(receiver.b.post_recvs(receiver.qb, kIn, 64, 16), 0);
  EXPECT_EQ(receiver.recv_lines(), 4u);
}

TEST(RecvFetch, StaysTwoGroupsAhead) {
  Receiver receiver;
  ASSERT_EQ(receiver.b.post_recvs(receiver.qb, kIn, 64, 128), 0);
  EXPECT_EQ(receiver.recv_lines(), 8u);
  // One used RECV makes room for part of a group. Groups are aligned, so nothing is read until fewer than two groups
  // are ahead, which is immediately the case.
  for (int i = 0; i < 16; ++i) ASSERT_EQ(receiver.send({.length = 8, .flags = kInline}), 0);
  EXPECT_EQ(receiver.recv_lines(), 12u);
  for (int i = 0; i < 96; ++i) ASSERT_EQ(receiver.send({.length = 8, .flags = kInline}), 0);
  EXPECT_EQ(receiver.recv_lines(), 32u);  // all 128
  EXPECT_EQ(receiver.cluster.nic_counts(1).messages_received, 112u);
}

TEST(RecvFetch, ReadsALoneRecvAtOnceAndTheRestOfItsGroupTogether) {
  Receiver receiver;
  ASSERT_EQ(receiver.b.post_recv(receiver.qb, kIn, 64), 0);
  EXPECT_EQ(receiver.recv_lines(), 1u);  // none was fetched: 16 bytes
  for (int i = 1; i < 15; ++i) ASSERT_EQ(receiver.b.post_recv(receiver.qb, kIn, 64), 0);
  EXPECT_EQ(receiver.recv_lines(), 1u);
  ASSERT_EQ(receiver.b.post_recv(receiver.qb, kIn, 64), 0);
  EXPECT_EQ(receiver.recv_lines(), 1u + 4);  // the other fifteen: 240 bytes, from 16 to 256
}

TEST(RecvFetch, APacketThatComesBeforeItsRecvIsFetchedWaits) {
  Receiver receiver;
  ASSERT_EQ(receiver.send({.length = 8, .flags = kInline}), 0);
  // The packet takes about 530 ns to the responder, the RECV's fetch 400 ns.
  receiver.pass(Nanos(300));
  ASSERT_EQ(receiver.b.post_recv(receiver.qb, kIn, 64, 3), 0);
  receiver.pass(kLong);
  EXPECT_THAT(ids(receiver.b.poll_recvs()), testing::ElementsAre(3));
  EXPECT_EQ(receiver.cluster.nic_counts(1).recv_waits, 1u);
}

}  // namespace
}  // namespace verbscope::test
