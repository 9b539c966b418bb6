// The data path of a client of HERD's cache against a device that executes at once; the test plays the server.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "systems/herd/client.hpp"
#include "systems/requests/client.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope::herd {
namespace {

KeyHash hash_before(const std::byte* end) {
  KeyHash key;
  std::memcpy(&key, end - 16, sizeof key);
  return key;
}

using test::ExecutingDevice;
using test::ScriptedNode;

constexpr std::uint32_t kClientWindow = 2;

StoreOptions options_of(std::uint32_t puts) {
  StoreOptions options;
  options.keys = 100;
  options.put_percent = puts;
  return options;
}

// Client 1 of four, of a server with two threads.
struct ClientEnd {
  SlotLayout places;
  std::vector<std::byte> region;
  ExecutingDevice device;
  StoreWorkload workload;
  ClientOracle oracle;
  SlotWriter writer;
  std::uint64_t bell_word = 0;
  std::vector<std::byte> buffer;
  std::vector<Open> open = std::vector<Open>(2 * kClientWindow);
  std::vector<ServerLane> lanes;
  std::vector<ibv_recv_wr> recvs = std::vector<ibv_recv_wr>(8);
  std::vector<ibv_sge> segments = std::vector<ibv_sge>(8);
  std::vector<std::byte> bodies;
  std::array<SendQueue, 1> queues;
  StoreClientState state;
  Asker asker;
  RunEnd end;

  explicit ClientEnd(std::uint32_t puts, std::uint32_t value = 32)
      : places{.servers = 2, .clients = 4, .window = kClientWindow, .request_bytes = put_bytes(value)},
        region(places.bytes()),
        workload(options_of(puts), 1),
        oracle(workload, StoreValues(1, value), 1, 4, 64),
        buffer(4 * places.retry_bytes()),
        bodies(8 * (40 + value)),
        queues{{{.qp = device.add_qp(), .depth = 16, .room = 16, .signal_every = 4}}},
        state{{{.cq = device.cq()}, queues, Picos(50'000)}, &oracle} {
    writer.layout = places;
    writer.request.sg_list = &writer.request_segment;
    writer.ring_segment = {reinterpret_cast<std::uint64_t>(&bell_word), 8, 0};
    writer.ring.sg_list = &writer.ring_segment;
    writer.bell_word = &bell_word;
    writer.inline_bytes = 256;
    writer.client = 1;
    for (ibv_send_wr* wr : {&writer.request, &writer.ring}) {
      wr->wr_id = send_id(0);
      wr->num_sge = 1;
      wr->opcode = IBV_WR_RDMA_WRITE;
    }
    const auto base = reinterpret_cast<std::uint64_t>(region.data());
    for (std::size_t i = 0; i < open.size(); ++i)
      open[i].end = buffer.data() + (i + 1) * places.retry_bytes() - kNumberBytes;
    for (std::uint32_t t = 0; t < 2; ++t) {
      ServerLane& lane = lanes.emplace_back();
      lane.slots = std::span(open).subspan(t * kClientWindow, kClientWindow);
      lane.first_slot = base + places.slot_end(t, 1, 0);
      lane.first_retry = base + places.retry_number(t, 1, 0) + kNumberBytes;
      lane.bell = base + places.bell(t);
    }
    for (std::uint32_t j = 0; j < 8; ++j) {
      segments[j] = {reinterpret_cast<std::uint64_t>(bodies.data() + j * (40 + value)), 40 + value, 0};
      recvs[j].wr_id = recv_id(1, j);
      recvs[j].sg_list = &segments[j];
      recvs[j].num_sge = 1;
    }
    asker.state = &state;
    asker.lanes = lanes;
    asker.writer = &writer;
    asker.recvs = {.ring = {.qp = device.add_qp(),
                            .ring = recvs.data(),
                            .length = static_cast<std::uint32_t>(recvs.size()),
                            .payloads = bodies.data() + 40,
                            .stride = 40u + value}};
    asker.value = value;
    asker.outstanding = kClientWindow;
  }

  // The server answers what the tag says.
  void answer(std::uint32_t tag, const std::vector<std::byte>& value = {}) {
    std::vector<std::byte> message(40);
    message.insert(message.end(), value.begin(), value.end());
    device.edit = [tag](ibv_wc& wc) {
      wc.imm_data = htobe32(tag);
      wc.wc_flags = IBV_WC_WITH_IMM;
    };
    device.deliver(message.data(), static_cast<std::uint32_t>(message.size()));
    bool moved = false;
    take_responses(asker, state, 16, Picos(1000), true, moved, end);
  }
  const ibv_send_wr& posted(std::size_t i) const { return device.requests.at(i); }
  // The thread of the server and the number that the client's request in `place` of its window has.
  std::uint32_t tag_at(std::size_t i) const {
    return tag_of(static_cast<std::uint32_t>(i / kClientWindow), open[i].number);
  }
  std::vector<std::size_t> waiting() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i].open) out.push_back(i);
    }
    return out;
  }
};

std::uint32_t length_of(const ibv_send_wr& wr) {
  return wr.sg_list->length;
}

TEST(HerdClient, AGetWritesSixteenBytesAtTheEndOfItsSlot) {
  ClientEnd client(0);
  const auto before = client.region;
  std::vector<std::uint32_t> lengths;
  client.device.after = [&](const ibv_send_wr& wr) { lengths.push_back(length_of(wr)); };
  ASSERT_TRUE(client.asker.ask(Picos(0), client.end));
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{16, 16}));
  for (const std::size_t i : client.waiting()) {
    const std::uint32_t t = static_cast<std::uint32_t>(i / kClientWindow);
    EXPECT_EQ(owner_of(client.open[i].key, 2), t);
    const std::byte* const end = client.region.data() + client.places.slot_end(t, 1, client.open[i].number);
    EXPECT_EQ(hash_before(end), client.workload.hash(client.open[i].request.key));
    EXPECT_EQ(length_before(end), 0);
  }
  EXPECT_NE(client.region, before);
}

TEST(HerdClient, APutOfAThousandBytesEndsWithItsHash) {
  ClientEnd client(100, 1000);
  std::vector<std::uint32_t> lengths, flags;
  client.device.after = [&](const ibv_send_wr& wr) {
    lengths.push_back(length_of(wr));
    flags.push_back(wr.send_flags & IBV_SEND_INLINE);
  };
  ASSERT_TRUE(client.asker.ask(Picos(0), client.end));
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{1018, 1018}));
  EXPECT_EQ(flags, (std::vector<std::uint32_t>{0, 0}));  // over the inline border of 256 bytes
  const std::size_t i = client.waiting().front();
  const std::byte* const end =
      client.region.data() + client.places.slot_end(i / kClientWindow, 1, client.open[i].number);
  EXPECT_EQ(length_before(end), 1000);
  const StoreReading reading = client.oracle.values().read(end - 1018, client.open[i].request.key);
  EXPECT_TRUE(reading.whole);
  EXPECT_EQ(reading.first, StoreVersion(1, client.open[i].request.number));
}

TEST(HerdClient, KeepsItsWindowFullAndTakesEachResponseOnce) {
  ClientEnd client(0);
  client.asker.ask(Picos(0), client.end);
  EXPECT_EQ(client.asker.open(), kClientWindow);
  const std::size_t i = client.waiting().front();
  std::vector<std::byte> value(32);
  client.oracle.values().fill(value.data(), client.open[i].request.key, StoreVersion());
  const std::uint32_t tag = client.tag_at(i);
  client.answer(tag, value);
  EXPECT_EQ(client.oracle.done(), 1u);
  EXPECT_EQ(client.oracle.counts.wrong, 0u);
  EXPECT_EQ(client.asker.open(), kClientWindow - 1);
  client.answer(tag, value);
  EXPECT_EQ(client.oracle.counts.surplus, 1u);
  client.answer(client.tag_at(client.waiting().front()), {std::byte{0}});  // a status alone
  EXPECT_EQ(client.oracle.counts.misses, 1u);
}

TEST(HerdClient, ResendsTheOldestRequestAndRingsTheBell) {
  ClientEnd client(100);
  client.asker.ask(Picos(0), client.end);
  const std::size_t i = client.waiting().front();
  const std::uint64_t t = i / kClientWindow, number = client.open[i].number;
  ASSERT_TRUE(client.asker.ask_again(Picos(49'000), client.end));
  EXPECT_EQ(client.oracle.counts.retries, 0u);
  ASSERT_TRUE(client.asker.ask_again(Picos(50'000), client.end));
  EXPECT_GE(client.oracle.counts.retries, 1u);
  std::byte* const word = client.region.data() + client.places.retry_number(t, 1, number);
  EXPECT_EQ(load_word<std::uint64_t>(word), retry_word(number));
  EXPECT_EQ(hash_before(word), client.open[i].key);
  EXPECT_EQ(client.oracle.values().read(word - 18 - 32, client.open[i].request.key).first,
            StoreVersion(1, client.open[i].request.number));
  EXPECT_NE(load_word<std::uint64_t>(client.region.data() + client.places.bell(t)), 0u);
}

TEST(HerdClient, ARetriedGetHasALengthOfZero) {
  ClientEnd client(0);
  client.asker.ask(Picos(0), client.end);
  const std::size_t i = client.waiting().front();
  const std::uint64_t t = i / kClientWindow;
  std::byte* const word = client.region.data() + client.places.retry_number(t, 1, client.open[i].number);
  std::memset(word - 18, 0x5a, 2);  // the length of a PUT that was there
  client.asker.ask_again(Picos(50'000), client.end);
  EXPECT_EQ(length_before(word), 0);
  EXPECT_EQ(hash_before(word), client.open[i].key);
}

}  // namespace
}  // namespace verbscope::herd
