// The parts of an endpoint for RPCs, one by one: packets, message buffers, the timing wheel, Timely and DCQCN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "systems/rpc/message_buffer.hpp"
#include "systems/rpc/packet.hpp"
#include "systems/rpc/rate_control.hpp"
#include "systems/rpc/timely.hpp"
#include "systems/rpc/timing_wheel.hpp"
#include "systems/rpc/work_times.hpp"
#include "wire/packet.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;

TEST(RpcPackets, HaveTheirHeaderInTwoWords) {
  const PacketWords words = PacketWords::of(PacketKind::response, {0x1234, 0xabcd}).with(7, 0x56789a, 0x123456789ab);
  std::array<std::byte, kPacketHeaderBytes> packet;
  std::memcpy(packet.data(), &words, sizeof words);
  const PacketHeader h = load_header(packet.data());
  EXPECT_EQ(h.type, 7u);
  EXPECT_EQ(h.bytes, 0x56789au);
  EXPECT_EQ(h.session, 0x1234u);
  EXPECT_EQ(h.epoch, 0xabcdu);
  EXPECT_EQ(h.request, 0x123456789abu);
  EXPECT_EQ(h.number, 0u);
  EXPECT_EQ(static_cast<PacketKind>(h.kind), PacketKind::response);
  const ReceivedHeader received(packet.data());
  EXPECT_EQ(received.type(), 7);
  EXPECT_EQ(received.bytes(), 0x56789au);
  EXPECT_EQ(received.session(), 0x1234);
  EXPECT_EQ(received.second_word(), words.second);
  EXPECT_TRUE(received.is_first(PacketKind::response));
  EXPECT_FALSE(received.is_first(PacketKind::request));
}

TEST(RpcPackets, CutMessagesAtTheDataOfAPacket) {
  const PacketCut cut{100};
  EXPECT_EQ(cut.packets(0), 1u);
  EXPECT_EQ(cut.packets(100), 1u);
  EXPECT_EQ(cut.packets(101), 2u);
  EXPECT_EQ(cut.length(101, 0), 100u);
  EXPECT_EQ(cut.length(101, 1), 1u);
  // 8 MB hold 8192 packets of 1024 bytes, each with 1008 bytes of data.
  EXPECT_EQ(PacketCut{1008}.most_bytes(), 8192u * 1008);
  // The numbers of a request and a response of that size fit into 14 bits.
  EXPECT_LT(2 * PacketCut{1008}.packets(PacketCut{1008}.most_bytes()) - 2, 1u << 14);
}

TEST(RpcBuffers, PutTheFirstHeaderBeforeTheDataAndTheOthersBehindIt) {
  MessagePool pool({100}, nullptr, false);
  const MessageBuffer buffer = pool.allocate(250);
  EXPECT_EQ(buffer.header(0) + kPacketHeaderBytes, buffer.data);
  EXPECT_GE(buffer.header(1), buffer.data + 250);
  EXPECT_EQ(buffer.header(2), buffer.header(1) + kPacketHeaderBytes);
  pool.free(buffer);
  EXPECT_EQ(pool.allocate(240).data, buffer.data) << "a freed buffer serves the next message of its size class";
}

TEST(RpcBuffers, RefuseMessagesThatNeedMorePacketsThanNumbersExist) {
  MessagePool pool({16}, nullptr, false);
  EXPECT_THROW(pool.allocate(16 * 8192 + 1), std::exception);
}

TEST(RpcWheel, ReleasesPacketsInOrderWhenTheirSlotIsOver) {
  TimingWheel<int> wheel(Picos(100'000'000));
  std::vector<int> out;
  const auto take = [&out](int packet) { out.push_back(packet); };
  wheel.insert(1, Picos(700'000), Picos(0));    // in the slot from 0.5 to 1 us
  wheel.insert(2, Picos(900'000), Picos(0));    // the same
  wheel.insert(3, Picos(2'600'000), Picos(0));  // from 2.5 to 3 us
  wheel.reap(Picos(900'000), take);
  EXPECT_THAT(out, ElementsAre());
  wheel.reap(Picos(1'000'000), take);
  EXPECT_THAT(out, ElementsAre(1, 2));
  EXPECT_EQ(wheel.next_due(), Picos(3'000'000));
  wheel.reap(Picos(3'000'000), take);
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(RpcWheel, SendsAfterItsHorizonWhatIsDueLater) {
  TimingWheel<int> wheel(Picos(10'000'000));
  int released = 0;
  wheel.insert(1, Picos(900'000'000), Picos(0));
  wheel.reap(Picos(11'000'000), [&released](int) { ++released; });
  EXPECT_EQ(released, 1);
}

// By hand from the update of NSDI 2019, section 5.2.
TEST(RpcTimely, ChangesItsRateByTheRoundTripsAndTheirGradient) {
  TimelyParameters p;
  p.link = BytesPerSecond{1e9};
  Timely timely(p);
  EXPECT_TRUE(timely.at_link_rate());
  timely.sample(Picos(1'000'000), Picos(10'000'000));  // shorter than 2 us: ignored
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9);
  // 2 ms, above 1 ms: 1 - 0.26 * (1 - 1/2) of the rate.
  timely.sample(Picos(2'000'000'000), Picos(10'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9 * 0.87);
  // 100 us: the gradient is far below 0, so that the rate rises by 5 MB/s.
  timely.sample(Picos(100'000'000), Picos(20'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 0.87e9 + 5e6);
  // 10 us, below 50 us: once more.
  timely.sample(Picos(10'000'000), Picos(30'000'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 0.87e9 + 10e6);
}

// The fifth round trip in a row that is shorter than the one before counts, wherever the others lie.
TEST(RpcTimely, HurriesAfterFiveFallingRoundTrips) {
  TimelyParameters p;
  p.link = BytesPerSecond{1e9};
  Timely timely(p);
  Picos now{10'000'000};
  for (const int us : {1300, 1250, 1200, 1150, 1100}) timely.sample(Picos(us * 1'000'000), now += Picos(10'000'000));
  const double before = timely.rate();
  timely.sample(Picos(900'000'000), now += Picos(10'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), before + 5 * 5e6);
  timely.sample(Picos(950'000'000), now += Picos(10'000'000));  // rises: the gradient is still below 0
  EXPECT_DOUBLE_EQ(timely.rate(), before + 6 * 5e6);
}

TEST(RpcTimely, StaysBetweenTheFloorAndTheLink) {
  TimelyParameters p;
  p.link = BytesPerSecond{1e9};
  Timely timely(p);
  Picos now{0};
  for (int i = 0; i < 1000; ++i) timely.sample(Picos(5'000'000'000), now += Picos(10'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), p.floor);
  for (int i = 0; i < 1000; ++i) timely.sample(Picos(10'000'000), now += Picos(10'000'000));
  EXPECT_DOUBLE_EQ(timely.rate(), 1e9);
}

// A clock that a test moves.
Picos clock_at(const void* node) {
  return *static_cast<const Picos*>(node);
}

TEST(RpcWorkTimes, GoToTheWorkThatIsDone) {
  Picos now{100};
  WorkTimes times;
  times.charge(Picos(1000));  // nothing is measured yet
  times.start(&clock_at, &now, true);
  now += Picos(1);  // outside
  {
    const WorkBlock receive(times, RpcWork::receive);
    now += Picos(2);
    {
      const WorkBlock handler(times, RpcWork::handler);
      now += Picos(4);
      times.charge(Picos(8));
    }
    now += Picos(16);
    times.charge(Picos(32));
  }
  now += Picos(64);  // outside again
  EXPECT_EQ(times.times(), (WorkTimes::Times{Picos(2 + 16 + 32), Picos(0), Picos(4 + 8), Picos(0)}));
  times.turn(RpcWork::send);
  now += Picos(128);
  times.skip();
  times.turn(RpcWork::other);
  EXPECT_EQ(times.times()[1], Picos(0));
}

// On a host the clock measures all work. Declared time must not be added to it.
TEST(RpcWorkTimes, OfAHostHaveNoDeclaredTime) {
  Picos now{0};
  WorkTimes times;
  times.start(&clock_at, &now, false);
  const WorkBlock send(times, RpcWork::send);
  times.charge(Picos(1000));
  EXPECT_EQ(times.times()[1], Picos(0));
}

// 2 for 10, 5 for 10, 0 for 20: a mean of 70 / 40, and half of the time.
TEST(RpcOccupancy, IsAMeanOverTime) {
  Occupancy queue;
  queue.set(9, Picos(0));
  queue.set(2, Picos(100));
  queue.clear(Picos(100));
  queue.set(5, Picos(110));
  queue.set(0, Picos(120));
  EXPECT_DOUBLE_EQ(queue.mean(Picos(140)), 70.0 / 40);
  EXPECT_DOUBLE_EQ(queue.busy(Picos(140)), 0.5);
  EXPECT_EQ(queue.peak(), 5u);
  queue.set(1, Picos(140));
  EXPECT_DOUBLE_EQ(queue.mean(Picos(180)), 110.0 / 80);  // until now
}

constexpr std::uint32_t kPacket = 1000;  // bytes

RpcOptions dcqcn_at(double line) {
  RpcOptions options;
  options.control = RpcControl::dcqcn;
  options.dcqcn.line = {line};
  return options;
}

// A mark that arrives at `at_us`, while the rate limiter has packets until `limited_us`, and the rate after it.
struct Mark {
  std::int64_t at_us;
  std::int64_t limited_us = 0;
  double rate;
};
void expect_rates(const std::vector<Mark>& marks) {
  const RpcOptions options = dcqcn_at(4e9);
  RateControl control(options);
  EXPECT_TRUE(control.at_link_rate());
  for (const Mark& mark : marks) {
    control.sample(Picos(0), true, Picos(mark.limited_us * 1'000'000), Picos(mark.at_us * 1'000'000));
    EXPECT_DOUBLE_EQ(control.rate(), mark.rate) << "at " << mark.at_us << " us";
  }
}

// By hand from SIGCOMM 2015, section 3.2: alpha begins as 1, so that the first mark halves the rate.
TEST(RpcDcqcn, ReactsToOneMarkIn50Microseconds) {
  expect_rates({{.at_us = 0, .rate = 2e9}, {.at_us = 49, .rate = 2e9}, {.at_us = 50, .rate = 1e9}});
}

// Packets in the rate limiter were given their times at the rate before, so that their marks say nothing about this
// one.
TEST(RpcDcqcn, IgnoresMarksUntilLimitedPacketsHaveLeft) {
  expect_rates({{.at_us = 0, .limited_us = 52, .rate = 2e9}, {.at_us = 51, .rate = 2e9}, {.at_us = 52, .rate = 1e9}});
}

TEST(RpcDcqcn, RecoversByItsTimer) {
  const RpcOptions options = dcqcn_at(4e9);
  RateControl control(options);
  control.sample(Picos(0), true, Picos(0), Picos(0));
  control.sample(Picos(0), true, Picos(0), Picos(50'000'000));  // rate 1 GB/s, target 2 GB/s
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(104'000'000)), 1e9);
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(105'000'000)), 1.5e9);  // fast recovery after 55 us
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(160'000'000)), 1.75e9);
  // The sixth increase is additive: the target rises by 40 Mb/s, and the rate half of the way to it.
  const double after_five = 2e9 - 1e9 / 32;
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(50'000'000 + 6 * 55'000'000)), (2e9 + 5e6 + after_five) / 2);
}

TEST(RpcDcqcn, RecoversByItsByteCounter) {
  RpcOptions options = dcqcn_at(4e9);
  options.dcqcn.increase_bytes = Bytes(3 * kPacket);
  RateControl control(options);
  control.sample(Picos(0), true, Picos(0), Picos(0));  // rate 2 GB/s, target 4 GB/s
  control.send(kPacket, Picos(1));
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(2)), 2e9);
  EXPECT_DOUBLE_EQ(control.send(kPacket, Picos(3)), 3e9);
}

TEST(RpcDcqcn, FallsToItsLowestRate) {
  const RpcOptions options = dcqcn_at(4e9);
  RateControl control(options);
  for (int i = 0; i < 100; ++i) control.sample(Picos(0), true, Picos(0), Picos(i * 50'000'000ll));
  EXPECT_DOUBLE_EQ(control.rate(), options.lowest_rate());
}

TEST(RpcRateControl, BypassesAnswersThatCannotChangeTheLinkRate) {
  RpcOptions options = dcqcn_at(4e9);
  RateControl dcqcn(options);
  EXPECT_EQ(dcqcn.steady_below(), Picos::max());
  dcqcn.sample(Picos(0), true, Picos(0), Picos(1));
  EXPECT_LT(dcqcn.steady_below(), Picos(0)) << "it is below link rate";
  options.control = RpcControl::timely;
  options.timely.link = {4e9};
  RateControl timely(options);
  EXPECT_EQ(timely.steady_below(), options.timely.low);
  timely.sample(Picos(2'000'000'000), false, Picos(0), Picos(10'000'000'000));
  EXPECT_LT(timely.steady_below(), Picos(0)) << "it is below link rate";
}

// RFC 3168, figure 1: the two lowest bits of the traffic class; 3 is a mark.
TEST(RpcMarks, AreReadFromIpv4AndIpv6Headers) {
  std::array<std::byte, 40> room{};
  room[20] = std::byte{0x45};
  for (const auto& [tos, marked] : {std::pair(0x03, true), {0x02, false}, {0x01, false}, {0xff, true}, {0xb8, false}}) {
    room[21] = static_cast<std::byte>(tos);
    EXPECT_EQ(is_ecn_marked(room.data()), marked) << tos;
  }
  room.fill(std::byte{0xff});  // an address behind the first words
  room[0] = std::byte{0x60};
  room[1] = std::byte{0x20};  // traffic class 2
  EXPECT_FALSE(is_ecn_marked(room.data()));
  room[1] = std::byte{0x30};  // traffic class 3
  EXPECT_TRUE(is_ecn_marked(room.data()));
}

}  // namespace
}  // namespace verbscope
