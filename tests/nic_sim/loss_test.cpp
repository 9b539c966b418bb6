// A switch that loses packets: RC delivers everything once and in order; UC and UD lose whole messages and nothing
// else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::SizeIs;

constexpr std::uint32_t kSlot = 2048;  // per message
constexpr unsigned kBatch = 16;
constexpr Picos kGap = std::chrono::microseconds(20);  // long enough for everything to arrive

Profile lossy(double share) {
  Profile profile = steady_profile();
  profile.fabric.loss_probability = share;
  return profile;
}

// Message n: its number, then a pattern that depends on it.
std::uint32_t length_of(unsigned n) {
  return 16 + n * 37 % 1500;
}

void write_message(std::uint8_t* memory, unsigned n) {
  fill(memory, length_of(n), n);
  std::memcpy(memory, &n, sizeof n);
}

testing::AssertionResult is_message(const std::uint8_t* memory, std::size_t bytes, unsigned n) {
  std::vector<std::uint8_t> expected(kSlot);
  write_message(expected.data(), n);
  if (bytes != length_of(n)) return testing::AssertionFailure() << bytes << " bytes, not " << length_of(n);
  if (std::memcmp(memory, expected.data(), bytes) != 0) return testing::AssertionFailure() << "corrupted";
  return testing::AssertionSuccess();
}

struct Lossy {
  ibv_qp_type type;
  ibv_mtu mtu;
  double share;
  std::uint64_t seed;
  std::uint8_t timeout;
  friend std::ostream& operator<<(std::ostream& out, const Lossy& c) {
    return out << name_of(c.type) << '_' << (128 << c.mtu) << "_timeout" << int{c.timeout} << "_seed" << c.seed;
  }
};

class Loss : public testing::TestWithParam<Lossy> {};

// The result of sending messages in batches, each `gap` after the completion of the one before: the numbers of the
// messages that arrived (with their bytes checked) and of the completions.
struct Arrived {
  std::vector<unsigned> received;
  std::vector<std::uint64_t> completed;
};

Arrived send_through(Pair& pair, ibv_qp_type type, unsigned messages, Picos gap) {
  Arrived arrived;
  const std::uint32_t head = grh_room(type);
  const auto take_received = [&](ibv_cq* cq) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      const std::uint8_t* message = pair.b.memory(kIn + wc.wr_id * kSlot + head);
      unsigned n = 0;
      std::memcpy(&n, message, sizeof n);
      EXPECT_TRUE(is_message(message, wc.byte_len - head, n)) << "message " << n;
      arrived.received.push_back(n);
      EXPECT_EQ(pair.b.post_recv(pair.qb, kIn + wc.wr_id * kSlot, kSlot, wc.wr_id), 0);
    }
  };
  EXPECT_EQ(pair.b.post_recvs(pair.qb, kIn, kSlot, 64), 0);
  for (unsigned n = 0; n < messages; n += kBatch) {
    for (unsigned i = n; i < n + kBatch; ++i) {
      const std::uint64_t place = i % 64 * kSlot;
      write_message(pair.a.memory(place), i);
      const unsigned flags = kSignaled | (length_of(i) <= 256 && i % 2 == 0 ? kInline : 0);
      EXPECT_EQ(pair.send({.offset = place, .length = length_of(i), .id = i, .flags = flags}), 0);
    }
    // Without loss, or after a few timeouts.
    for (const ibv_wc& wc : pair.await(pair.a.send_cq(), kBatch, std::chrono::milliseconds(20))) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
      arrived.completed.push_back(wc.wr_id);
    }
    if (gap.count() > 0) pair.pass(gap);
    take_received(pair.b.recv_cq());
  }
  return arrived;
}

TEST_P(Loss, ArrivedMessagesAreComplete) {
  const Lossy& lossy_case = GetParam();
  constexpr unsigned kMessages = 480;
  Pair pair(lossy_case.type, {.timeout = lossy_case.timeout, .mtu = lossy_case.mtu}, lossy(lossy_case.share),
            lossy_case.seed);
  const Arrived arrived =
      send_through(pair, lossy_case.type, kMessages, lossy_case.type == IBV_QPT_RC ? Picos(0) : kGap);
  std::vector<std::uint64_t> all(kMessages);
  for (unsigned i = 0; i < kMessages; ++i) all[i] = i;
  EXPECT_EQ(arrived.completed, all);
  const NicCounts sender = pair.cluster.nic_counts(0);
  const NicCounts receiver = pair.cluster.nic_counts(1);
  EXPECT_GT(receiver.dropped_by_switch, 0u);
  if (lossy_case.type == IBV_QPT_RC) {
    EXPECT_EQ(std::vector<std::uint64_t>(arrived.received.begin(), arrived.received.end()), all);
    EXPECT_EQ(sender.messages_sent, kMessages);
    EXPECT_EQ(receiver.messages_received, kMessages);
    EXPECT_GT(sender.packets_resent, 0u);
  } else {
    EXPECT_LT(arrived.received.size(), kMessages);
    // In order and none twice: the numbers increase.
    for (std::size_t i = 1; i < arrived.received.size(); ++i) {
      ASSERT_LT(arrived.received[i - 1], arrived.received[i]);
    }
    EXPECT_EQ(sender.packets_resent, 0u);
    EXPECT_EQ(sender.packets_sent, receiver.packets_received + receiver.dropped_by_switch);
  }
}

std::vector<Lossy> cases() {
  std::vector<Lossy> all;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_256}) {
      all.push_back({IBV_QPT_RC, mtu, 0.05, seed, 4});
      all.push_back({IBV_QPT_UC, mtu, 0.05, seed, 4});
    }
    all.push_back({IBV_QPT_UD, IBV_MTU_4096, 0.05, seed, 4});
    // The shortest timeout, 8.2 us: some expire before the answer arrives.
    all.push_back({IBV_QPT_RC, IBV_MTU_256, 0.02, seed, 1});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, Loss, testing::ValuesIn(cases()), testing::PrintToStringParamName());

// Messages of one packet, so equal shares of messages and packets are lost: 5 % of 480 is 24, deviation 4.8.
TEST(LossShare, MatchesLossProbability) {
  Pair pair(IBV_QPT_UD, {}, lossy(0.05));
  const Arrived arrived = send_through(pair, IBV_QPT_UD, 480, kGap);
  EXPECT_NEAR(static_cast<double>(480 - arrived.received.size()), 24, 24);
}

TEST(LossOfEverything, FailsAnRcSender) {
  Pair pair(IBV_QPT_RC, {.timeout = 1, .retries = 3}, lossy(1));
  pair.b.post_recv(pair.qb, kIn, kSlot);
  ASSERT_EQ(pair.send({.length = 64}), 0);
  EXPECT_THAT(statuses(pair.await(pair.a.send_cq(), 1, std::chrono::milliseconds(1))),
              testing::ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

// Answers are late, not lost: the sender repeats packets that have arrived, and accepts the late answer meanwhile.
TEST(LateAnswers, NeitherDuplicateNorMixMessages) {
  Profile profile = steady_profile();
  profile.nic.responder_units = 1;
  profile.nic.receive_packet = std::chrono::microseconds(1);  // 16 messages take 16 us, the timeout is 8.2 us
  profile.nic.ack_coalescing = 16;                            // and one answer comes after all of them
  Pair pair(IBV_QPT_RC, {.timeout = 1, .retries = 7}, profile);
  const Arrived arrived = send_through(pair, IBV_QPT_RC, 160, std::chrono::microseconds(200));
  ASSERT_THAT(arrived.received, SizeIs(160));
  for (unsigned i = 0; i < 160; ++i) EXPECT_EQ(arrived.received[i], i);
  EXPECT_GT(pair.cluster.nic_counts(0).packets_resent, 0u);
}

}  // namespace
}  // namespace verbscope::test
