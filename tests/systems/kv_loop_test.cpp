// The data path of kv_atomic's clients against a device that executes what is posted at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "systems/kv_atomic/ends.hpp"
#include "systems/kv_atomic/loop.hpp"
#include "tests/microbench/executing_device.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ExecutingDevice;
using test::ScriptedNode;
using testing::ElementsAre;

constexpr std::uint32_t kValue = 64;
constexpr std::uint32_t kOutstanding = 4;

// A store and one client thread with two QPs.
struct Store {
  ExecutingDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  KvOptions options;
  Operation operation;
  std::vector<std::byte> memory;
  std::vector<std::byte> buffer = std::vector<std::byte>(2 * kOutstanding * kValue);
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(2 * kOutstanding);
  std::vector<KvLane> lanes;
  std::vector<KvOperation> operations = std::vector<KvOperation>(2 * kOutstanding);
  KvState state;

  explicit Store(std::uint64_t keys, bool emulate = false)
      : options{.keys = keys, .emulate = emulate},
        operation{.payload = kValue},
        memory(options.layout(kValue).region_bytes()),
        state(options.layout(kValue), KvValues(operation.seed, kValue), 5) {
    fill_kv_region(options, operation, memory);
    for (int q = 0; q < 2; ++q) {
      lanes.push_back({device.add_qp(), nullptr, reinterpret_cast<std::uint64_t>(memory.data())});
    }
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      operations[i].lane = i / kOutstanding;
      operations[i].value = &buffer[i * kValue];
      operations[i].word = &words[i];
      prepare_kv(operations[i], i, {}, operation, emulate);
    }
    state.cq = device.cq();
    state.lanes = lanes;
    state.operations = operations;
    state.emulate = emulate;
    state.lease = std::chrono::seconds(1);
    state.goal = 1000;
    control.phase = Phase::measure;
    node.on_idle = [this] { control.quit = true; };
  }

  void run() { kv_loop(node, state, control, tally); }

  std::uint64_t& lock(std::uint64_t key) {
    return *reinterpret_cast<std::uint64_t*>(memory.data() + state.layout.lock_of(key));
  }
  KvReading value(std::uint64_t key) const {
    return state.values.look_at(memory.data() + state.layout.value_of(key), key);
  }
  std::map<ibv_wr_opcode, std::size_t> posted() const {
    std::map<ibv_wr_opcode, std::size_t> count;
    for (const ibv_send_wr& wr : device.requests) ++count[wr.opcode];
    return count;
  }
};

TEST(KvLoop, AGetIsOneRead) {
  Store store(100);
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::finished);
  EXPECT_EQ(store.tally.interval.end_ops - store.tally.interval.begin_ops, 1000u);
  EXPECT_EQ(store.posted(), (std::map<ibv_wr_opcode, std::size_t>{{IBV_WR_RDMA_READ, store.state.counts.gets}}));
  EXPECT_EQ(store.state.counts.window_gets, 1000u);
  EXPECT_EQ(store.state.get_latency.count(), 1000u);
  EXPECT_EQ(store.state.counts.wrong, 0u);
}

TEST(KvLoop, APutIsLockWriteUnlock) {
  Store store(4096);
  store.state.put_percent = 100;
  store.run();
  EXPECT_EQ(store.posted()[IBV_WR_ATOMIC_FETCH_AND_ADD], 2 * store.state.counts.puts);
  EXPECT_EQ(store.posted()[IBV_WR_RDMA_WRITE], store.state.counts.puts);
  EXPECT_EQ(store.posted()[IBV_WR_RDMA_READ], store.state.counts.lock_retries);
  std::vector<ibv_wr_opcode> of_first_record;
  const auto base = reinterpret_cast<std::uint64_t>(store.memory.data());
  const std::uint64_t record = (store.device.requests.front().wr.atomic.remote_addr - base) / kKvRecord;
  for (const ibv_send_wr& wr : store.device.requests) {
    const bool atomic = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint64_t address = atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
    if ((address - base) / kKvRecord == record && of_first_record.size() < 3) of_first_record.push_back(wr.opcode);
  }
  EXPECT_THAT(of_first_record,
              ElementsAre(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD));
}

TEST(KvLoop, EmulatedPutsAreTheirAtomics) {
  Store store(100, true);
  store.state.put_percent = 100;
  store.run();
  EXPECT_EQ(store.posted()[IBV_WR_ATOMIC_FETCH_AND_ADD], 2 * store.state.counts.puts);
  EXPECT_EQ(store.posted()[IBV_WR_RDMA_WRITE], 0u);
  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_EQ(store.value(key).version, 0u);
}

TEST(KvLoop, EveryRecordHoldsItsLastPutAndCountsThemAll) {
  for (const std::uint64_t keys : {1, 2, 50}) {
    Store store(keys);
    store.state.put_percent = 50;
    store.run();
    std::uint64_t puts = 0;
    for (std::uint64_t key = 0; key < keys; ++key) {
      const std::uint64_t lock = store.lock(key);
      EXPECT_EQ(next_ticket(lock), now_served(lock));
      EXPECT_EQ(store.value(key).finding, KvFinding::consistent);
      EXPECT_EQ(store.value(key).version, now_served(lock));
      puts += now_served(lock);
    }
    EXPECT_EQ(puts, store.state.counts.puts);
    EXPECT_EQ(store.state.counts.wrong, 0u);
    EXPECT_EQ(store.state.counts.skipped, 0u);
    EXPECT_NEAR(static_cast<double>(store.state.counts.puts), 500, 60);  // binomial: deviation 16
  }
}

TEST(KvLoop, WaitsForALockThatAnotherClientHolds) {
  Store store(1);
  store.state.put_percent = 100;
  store.lock(0) = kTakeTicket;  // another client's
  int looks = 0;
  store.device.after = [&](const ibv_send_wr& wr) {
    if (wr.opcode == IBV_WR_RDMA_READ && ++looks == 100) store.lock(0) += kServeNext;
  };
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::finished);
  EXPECT_GE(store.state.counts.lock_retries, 100u);
  EXPECT_EQ(now_served(store.lock(0)), store.state.counts.puts + 1);
  EXPECT_EQ(store.value(0).version, store.state.counts.puts + 1);
  EXPECT_EQ(store.state.counts.wrong, 0u);
}

TEST(KvLoop, SkipsATicketThatIsHeldLongerThanTheLease) {
  Store store(1);
  store.state.put_percent = 100;
  store.state.lease = std::chrono::microseconds(1);
  store.lock(0) = 2 * kTakeTicket;  // of a client that died, which waited for its own lock
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::finished);
  EXPECT_EQ(store.state.counts.skipped, 2u);  // of eight operations that wait
  EXPECT_EQ(now_served(store.lock(0)), store.state.counts.puts + 2);
  EXPECT_EQ(store.state.counts.wrong, 0u);
}

TEST(KvLoop, TakesAnotherTicketWhenItsOwnWasSkipped) {
  Store store(1);
  store.state.put_percent = 100;
  store.lock(0) = kTakeTicket;
  int looks = 0;
  store.device.after = [&](const ibv_send_wr& wr) {
    // Everybody who waits is skipped, as if all of this client's tickets had been given up.
    if (wr.opcode == IBV_WR_RDMA_READ && ++looks == 20) store.lock(0) = next_ticket(store.lock(0)) * (kServeNext + 1);
  };
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::finished);
  EXPECT_EQ(store.state.counts.turns_lost, 2u * kOutstanding);
  EXPECT_EQ(store.state.counts.wrong, 0u);
}

TEST(KvLoop, DetectsALockThatItsHolderLost) {
  Store store(1);
  store.state.put_percent = 100;
  int writes = 0;
  store.device.after = [&](const ibv_send_wr& wr) {
    if (wr.opcode == IBV_WR_RDMA_WRITE && ++writes == 10) store.lock(0) += kServeNext;
  };
  store.run();
  EXPECT_GE(store.state.counts.wrong, 1u);
}

TEST(KvLoop, ReadsATornValueAgain) {
  Store store(1);
  store.state.values.fill(store.memory.data(), 0, 8);
  std::vector<std::byte> newer(kValue);
  store.state.values.fill(newer.data(), 0, 9);
  std::copy_n(newer.begin(), kValue / 2, store.memory.begin());  // half of a WRITE has arrived
  int reads = 0;
  store.device.after = [&](const ibv_send_wr& wr) {
    if (wr.opcode == IBV_WR_RDMA_READ && ++reads == 50) std::copy(newer.begin(), newer.end(), store.memory.begin());
  };
  store.run();
  EXPECT_EQ(store.state.counts.torn_reads, 50u);
  EXPECT_EQ(store.posted()[IBV_WR_RDMA_READ], store.state.counts.gets + 50);
  EXPECT_EQ(store.state.counts.wrong, 0u);
  EXPECT_EQ(store.state.counts.given_up, 0u);
}

TEST(KvLoop, GivesUpAValueThatStaysTorn) {
  Store store(1);
  store.state.lease = std::chrono::nanoseconds(100);
  store.state.goal = 3;
  store.state.values.fill(store.memory.data(), 0, 8);
  std::vector<std::byte> newer(kValue);
  store.state.values.fill(newer.data(), 0, 9);
  std::copy_n(newer.begin(), kValue / 2, store.memory.begin());
  store.run();
  EXPECT_EQ(store.state.counts.given_up, store.state.counts.gets);
}

TEST(KvLoop, CountsAValueThatNoClientWrote) {
  Store store(1);
  store.memory[5] ^= std::byte{0xff};
  store.run();
  EXPECT_EQ(store.state.counts.wrong, store.state.counts.gets);
}

TEST(KvLoop, EndsOnAFailedCompletion) {
  Store store(10);
  store.state.put_percent = 50;
  int seen = 0;
  store.device.edit = [&](ibv_wc& wc) {
    if (++seen == 30) wc.status = IBV_WC_REM_ACCESS_ERR;
  };
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(store.tally.end.code, IBV_WC_REM_ACCESS_ERR);
}

TEST(KvLoop, GivesUpOnTheOrderToQuit) {
  Store store(1);
  store.device.hold_completions = true;
  store.run();
  EXPECT_EQ(store.tally.end.kind, EndKind::gave_up);
}

}  // namespace
}  // namespace verbscope
