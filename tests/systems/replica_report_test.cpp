// What a replica reports about its log, and what `explain` makes of it.
#include "systems/raft/replica_report.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>

#include "analysis/explain.hpp"
#include "common/error.hpp"
#include "tests/analysis/records.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kPuts = 50;

class NoNetwork final : public RaftNetwork {
 public:
  std::byte* prepare(raft_id, std::size_t, MessageOrder) override { return nullptr; }
  void send(std::uint64_t) override {}
};

// A replica without others, on the clock of this machine.
class LonelyReplica {
 public:
  LonelyReplica(LogStorage& log, LogStorage& snapshot) : log_(log, snapshot) {
    while (!replica_.leads()) replica_.poll(now());
    session_ = ask({}).session;
    while (replica_.io().appending()) replica_.poll(now());
    replica_.clear_counts();
    log_.clear_syncs();
    begin_ = now();
  }

  void put(std::uint64_t number) {
    const Picos since = now();
    ask({.op = StoreOp::put, .session = session_, .number = number, .key = store_key(number), .value = {}});
    latency_.record(now() - since);
  }

  // The record of raft_kv with one client and one PUT at a time.
  Record record() const {
    const double seconds = to_seconds(now() - begin_);
    const double waited = kPuts * to_seconds(replica_.append_waits().mean());
    const ReplicaReport report{.leads = true,
                               .counts = replica_.counts(),
                               .seconds = seconds,
                               .busy_s = std::max(0.0, seconds - waited),
                               .commits = replica_.commits(),
                               .syncs = log_.syncs(),
                               .append_waits = replica_.append_waits()};
    const double rate = static_cast<double>(latency_.count()) / report.seconds * 1e-6;
    Record record = sweep_record(Json{{"replicas", "1"}, {"outstanding", 1}}, rate, 0, "verbs");
    record.benchmark = "raft_kv";
    record.environment["simulated"] = false;
    record.result["put_mops"] = rate;
    record.result.update(latency_.to_json());
    record.result.update(replica_result({ReplicaReport::from_json(report.to_json().dump())}, 1));
    return record;
  }

 private:
  static Picos now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  StoreAnswer ask(const StoreRequest& request) {
    answer_.reset();
    replica_.request({.slot = &slot_}, std::as_bytes(std::span(&request, 1)).first(StoreRequest::bytes(request.op)),
                     now());
    while (!answer_) replica_.poll(now());
    return *answer_;
  }

  RaftLog log_;
  NoNetwork network_;
  ServerSlot slot_;
  std::optional<StoreAnswer> answer_;
  Replica replica_{{.id = 1,
                    .io = {.addresses = {"1"},
                           .election = std::chrono::milliseconds(10),
                           .heartbeat = std::chrono::milliseconds(1),
                           .random = [] { return 1; },
                           .compute = [](Picos) {}},
                    .keys = 1000,
                    .snapshot_every = 1 << 20},
                   log_,
                   network_,
                   [](void* self, const RpcHandle&, const StoreAnswer& answer) {
                     static_cast<LonelyReplica*>(self)->answer_ = answer;
                   },
                   this};
  std::uint64_t session_ = 0;
  Picos begin_{0};
  Histogram latency_;
};

Record record_of_puts(bool synced) {
  const TempDir dir;
  FileStorage log(dir / "log", synced), snapshot(dir / "log.snapshot", synced);
  LonelyReplica replica(log, snapshot);
  for (std::uint64_t number = 1; number <= kPuts; ++number) replica.put(number);
  return replica.record();
}

// Each PUT waits for a sync of its own, and is a few function calls besides.
TEST(ReplicaReport, NamesTheLogDeviceIfItsFileIsSynced) {
  const Record record = record_of_puts(true);
  const Json& result = record.result;
  EXPECT_EQ(result.at("log_sync_samples"), kPuts);
  EXPECT_EQ(result.at("log_appends_per_sync"), 1.0);
  EXPECT_GT(result.at("log_sync_share").get<double>(), 0);
  EXPECT_LE(result.at("log_sync_share").get<double>(), 1);
  EXPECT_LE(result.at("log_sync_mean_ns").get<double>(), result.at("log_wait_mean_ns").get<double>());
  EXPECT_LE(result.at("log_wait_mean_ns").get<double>(), result.at("lat_mean_ns").get<double>());
  const Explanation it = explain(record);
  EXPECT_EQ(it.limit_words(), "log device") << it.limit_sentence();
  ASSERT_FALSE(it.advice.empty());
  EXPECT_EQ(it.advice.front().options, Json({{"log", "dram"}}));
  EXPECT_GT(it.advice.front().factor, 2);
}

TEST(ReplicaReport, HasNoSyncsOfALogThatOutlivesTheProcessOnly) {
  const Record record = record_of_puts(false);
  EXPECT_EQ(record.result.at("log_sync_samples"), 0);
  EXPECT_EQ(record.result.at("log_sync_share"), 0.0);
  EXPECT_EQ(explain(record).limit_words(), "CPU of the busiest thread") << "it never waits";
}

// Two of three logs make an entry durable: the slowest does not count, the fastest is not enough.
TEST(ReplicaReport, HasTheLogThatCompletesAMajority) {
  const auto report_of = [](int wait_us) {
    ReplicaReport report{.seconds = 1};
    report.append_waits.record(std::chrono::microseconds(wait_us));
    return report;
  };
  const auto wait = [](const Json& result) { return result.at("log_wait_mean_ns"); };
  EXPECT_EQ(wait(replica_result({report_of(3), report_of(9), report_of(5)}, 3)), 5000.0);
  EXPECT_EQ(wait(replica_result({report_of(3), report_of(9)}, 3)), 9000.0);
  EXPECT_EQ(wait(replica_result({report_of(3)}, 1)), 3000.0);
  EXPECT_EQ(wait(replica_result({}, 3)), Json());
}

TEST(ReplicaReport, RefusesAMessageThatIsNone) {
  EXPECT_THROW(ReplicaReport::from_json("{}"), Error);
}

}  // namespace
}  // namespace verbscope
