// The attributes that a change of state must have, those that it must not have, and their ranges: the tables of
// ibv_modify_qp(3); InfiniBand Architecture Specification 1.3, volume 1, section 11.2.4.2.
#include <array>
#include <tuple>

#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

constexpr int kBits = 21;  // bits of the mask: IBV_QP_STATE to IBV_QP_DEST_QPN

std::string transition_name(ibv_qp_state to) {
  return to == IBV_QPS_INIT ? "Init" : to == IBV_QPS_RTR ? "ReadyToReceive" : "ReadyToSend";
}

class Attributes : public Rig, public testing::WithParamInterface<std::tuple<ibv_qp_type, ibv_qp_state>> {
 protected:
  ibv_qp_type type() const { return std::get<0>(GetParam()); }
  ibv_qp_state target() const { return std::get<1>(GetParam()); }

  // A QP that is one step before target(), and that step.
  ibv_qp* qp_before() {
    ibv_qp* qp = a.make_qp(type());
    if (target() != IBV_QPS_INIT) {
      EXPECT_EQ(modify(a, qp, to_init(a, type())), 0);
    }
    if (target() == IBV_QPS_RTS) {
      EXPECT_EQ(modify(a, qp, to_rtr(a, type(), b, 0x100)), 0);
    }
    return qp;
  }
  Step step() {
    if (target() == IBV_QPS_INIT) return to_init(a, type());
    return target() == IBV_QPS_RTR ? to_rtr(a, type(), b, 0x100) : to_rts(type());
  }
};
INSTANTIATE_TEST_SUITE_P(, Attributes,
                         testing::Combine(testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                                          testing::Values(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS)),
                         [](const auto& which) {
                           return transport_name(std::get<0>(which.param)) + "To" +
                                  transition_name(std::get<1>(which.param));
                         });

TEST_P(Attributes, AreEachRequired) {
  ibv_qp* qp = qp_before();
  const ibv_qp_state before = state_of(a, qp);
  const Step whole = step();
  for (int bit = 0; bit < kBits; ++bit) {
    const int attribute = 1 << bit;
    if (attribute == IBV_QP_STATE || (whole.mask & attribute) == 0) continue;
    Step lacking = whole;
    lacking.mask &= ~attribute;
    EXPECT_EQ(modify(a, qp, lacking), EINVAL) << "without attribute " << attribute;
    EXPECT_EQ(state_of(a, qp), before);
  }
  EXPECT_EQ(modify(a, qp, whole), 0);
}

TEST_P(Attributes, OfOtherTransitionsAreRefused) {
  // Optional in one transition or another: not looked at here.
  constexpr int kOptional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
                            IBV_QP_PATH_MIG_STATE | IBV_QP_QKEY | IBV_QP_MIN_RNR_TIMER;
  const std::array steps{to_init(a, IBV_QPT_UD), to_rtr(a, IBV_QPT_RC, b, 0x100), to_rts(IBV_QPT_RC)};
  const Step whole = step();
  ibv_qp* qp = qp_before();
  for (const Step& other : steps) {
    for (int bit = 0; bit < kBits; ++bit) {
      const int attribute = 1 << bit;
      if ((other.mask & attribute & ~(kOptional | whole.mask)) == 0) continue;
      Step more = other;
      more.mask = whole.mask | attribute;
      more.attr.qp_state = target();
      EXPECT_EQ(modify(a, qp, more), EINVAL) << "with attribute " << attribute;
    }
  }
  EXPECT_EQ(modify(a, qp, whole), 0);
}

// A field of a reliable connection that has so many values and no more.
struct Range {
  const char* name;
  ibv_qp_state target;
  std::uint8_t ibv_qp_attr::*field;
  std::uint8_t largest;

  friend std::ostream& operator<<(std::ostream& out, const Range& range) { return out << range.name; }
};
class Ranges : public Rig, public testing::WithParamInterface<Range> {};
INSTANTIATE_TEST_SUITE_P(, Ranges,
                         testing::Values(Range{"Timeout", IBV_QPS_RTS, &ibv_qp_attr::timeout, 31},
                                         Range{"RetryCount", IBV_QPS_RTS, &ibv_qp_attr::retry_cnt, 7},
                                         Range{"RnrRetry", IBV_QPS_RTS, &ibv_qp_attr::rnr_retry, 7},
                                         Range{"MinRnrTimer", IBV_QPS_RTR, &ibv_qp_attr::min_rnr_timer, 31}),
                         [](const auto& which) { return std::string(which.param.name); });

// Sections 9.7.6.1.3 (five bits), 9.7.5.2.8 (five bits); retry counts are three bits wide (section 11.2.4.2).
TEST_P(Ranges, TheLargestValueIsTakenAndNoLarger) {
  const Range& range = GetParam();
  ibv_qp* qp = a.make_qp(IBV_QPT_RC);
  ASSERT_EQ(modify(a, qp, to_init(a, IBV_QPT_RC)), 0);
  Step step = to_rtr(a, IBV_QPT_RC, b, 0x100);
  if (range.target == IBV_QPS_RTS) {
    ASSERT_EQ(modify(a, qp, step), 0);
    step = to_rts(IBV_QPT_RC);
  }
  step.attr.*range.field = static_cast<std::uint8_t>(range.largest + 1);
  const bool unchecked = range.field != &ibv_qp_attr::timeout && deviates("ranges-unchecked");
  EXPECT_EQ(modify(a, qp, step), unchecked ? 0 : EINVAL);
  if (unchecked) return;
  step.attr.*range.field = range.largest;
  EXPECT_EQ(modify(a, qp, step), 0);
}

class PathMtu : public EachConnected {};
VERBSCOPE_EACH_CONNECTED(PathMtu);

TEST_P(PathMtu, OutsideOfTheEncodingIsRefused) {
  ibv_qp* qp = a.make_qp(type());
  ASSERT_EQ(modify(a, qp, to_init(a, type())), 0);
  Step step = to_rtr(a, type(), b, 0x100);
  for (const int code : {6, 7, 0}) {
    if (code == 0 && deviates("path-mtu-zero")) continue;
    step.attr.path_mtu = static_cast<ibv_mtu>(code);
    EXPECT_EQ(modify(a, qp, step), EINVAL) << "code " << code;
  }
  EXPECT_EQ(state_of(a, qp), IBV_QPS_INIT);
}

TEST_P(PathMtu, MayBeSmallerThanThePorts) {
  const Pair pair{a.make_qp(type()), b.make_qp(type())};
  for (const auto& [side, peer, qp, other] : {std::tuple{&a, &b, pair.a, pair.b}, std::tuple{&b, &a, pair.b, pair.a}}) {
    ASSERT_EQ(modify(*side, qp, to_init(*side, type())), 0);
    Step step = to_rtr(*side, type(), *peer, other->qp_num);
    step.attr.path_mtu = IBV_MTU_256;
    ASSERT_EQ(modify(*side, qp, step), 0);
    ASSERT_EQ(modify(*side, qp, to_rts(type())), 0);
  }
  fill(a.memory(), 1000, 1);
  recv(pair.b, {b.sge(0, 1000)});
  send(pair.a, {.sges = {a.sge(0, 1000)}});
  EXPECT_EQ(await_success(b.recv_cq(), "a message of four packets").byte_len, 1000u);
  EXPECT_TRUE(has_pattern(b.memory(), 1000, 1));
}

class ReadyToSend : public Rig {};

// Table of RTS to RTS: attributes that may change while the QP works.
TEST_F(ReadyToSend, TheRnrTimerAndTheAccessMayChange) {
  const Pair pair = connect(IBV_QPT_RC);
  Step step = to_state(IBV_QPS_RTS);
  step.mask |= IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS;
  step.attr.min_rnr_timer = 3;
  step.attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(modify(a, pair.a, step), 0);
  marker(pair);
}

TEST_F(ReadyToSend, ThePathAndTheSequenceNumberMayNotChange) {
  const Pair pair = connect(IBV_QPT_RC);
  Step step = to_state(IBV_QPS_RTS);
  step.mask |= IBV_QP_SQ_PSN;
  EXPECT_EQ(modify(a, pair.a, step), EINVAL);
  step.mask = IBV_QP_STATE | IBV_QP_DEST_QPN;
  EXPECT_EQ(modify(a, pair.a, step), EINVAL);
  step.mask = IBV_QP_STATE | IBV_QP_TIMEOUT;
  EXPECT_EQ(modify(a, pair.a, step), EINVAL);
  marker(pair);
}

TEST_F(ReadyToSend, MoreReadsThanTheDeviceHasAreRefused) {
  ibv_qp* qp = a.make_qp(IBV_QPT_RC);
  ASSERT_EQ(modify(a, qp, to_init(a, IBV_QPT_RC)), 0);
  ASSERT_EQ(modify(a, qp, to_rtr(a, IBV_QPT_RC, b, 0x100)), 0);
  const int most = a.device().attributes().max_qp_init_rd_atom;
  ASSERT_LT(most, 255);
  Step step = to_rts(IBV_QPT_RC);
  step.attr.max_rd_atomic = static_cast<std::uint8_t>(most + 1);
  EXPECT_EQ(modify(a, qp, step), EINVAL);
  step.attr.max_rd_atomic = static_cast<std::uint8_t>(most);
  EXPECT_EQ(modify(a, qp, step), 0);
}

TEST_F(ReadyToSend, NumbersOfQpsAreDifferentAndHave24Bits) {
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 8; ++i) numbers.push_back(a.make_qp(IBV_QPT_UC)->qp_num);
  std::ranges::sort(numbers);
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
  EXPECT_LT(numbers.back(), 1u << 24);
  EXPECT_GT(numbers.front(), 1u) << "0 and 1 are the management QPs";
}

}  // namespace
}  // namespace verbscope::conformance
