// raft_kv: a store that is replicated by Raft, and its clients.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "systems/history/history.hpp"
#include "systems/raft/log_storage.hpp"
#include "systems/raft/raft_faults.hpp"
#include "systems/raft/replica_report.hpp"
#include "systems/raft/replica_server.hpp"
#include "systems/raft/store_client.hpp"
#include "systems/service/service.hpp"

namespace verbscope {

namespace {

constexpr std::uint64_t kUsualKeys = 1'000'000;
constexpr std::uint32_t kReportBytes = 1 << 16;
constexpr std::string_view kFile = "file:";
constexpr Picos kLongestElection = std::chrono::minutes(10);

class RaftKv final : public Service {
 public:
  Description describe() const override {
    return {"raft_kv", "Measures a store that is replicated by Raft.", "--puts 50"};
  }
  void options(OptionTable& table) override;
  std::uint32_t servers() const override;
  void serve(ServiceThread& thread) override;
  void call(ServiceThread& thread) override;
  void script(SimFaults& cluster) override;
  Json result() override;
  std::string summary(const Json& result) const override;

 private:
  // What one machine keeps when its process ends.
  struct Storages {
    MemoryStorage log, snapshot;
  };
  // Names a replica to the script of faults, while it lives.
  class Shown {
   public:
    Shown(const ReplicaServer*& place, const ReplicaServer& server) : place_(place) { place_ = &server; }
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;
    ~Shown() { place_ = nullptr; }

   private:
    const ReplicaServer*& place_;
  };
  // What the client threads have measured.
  struct Measured {
    StoreClientCounts counts;
    double ops_per_s = 0;
    double puts_per_s = 0;
    std::vector<ReplicaReport> replicas;  // those that answered
    std::size_t replicas_in_all = 0;
    std::uint64_t clients = 0;
  };

  std::vector<std::string> addresses() const;
  ReplicaOptions replica_options(ServiceThread& thread, raft_id id, const std::vector<std::string>& addresses) const;
  void run_replica(ServiceThread& thread, LogStorage& log, LogStorage& snapshot, raft_id id,
                   const std::vector<std::string>& addresses);
  std::vector<ReplicaReport> reports(ServiceThread& thread, bool clear) const;
  void merge(const StoreClientCounts& counts, Picos time);
  Picos election() const { return election_.value_or(std::chrono::milliseconds(100)); }
  Picos heartbeat() const { return heartbeat_.value_or(election() / 10); }

  std::string replicas_ = "3";
  std::uint32_t replica_ = 0;
  std::string log_ = "dram";
  ReadMode reads_ = ReadMode::leader;
  PlantedBug planted_ = PlantedBug::none;
  std::uint32_t put_percent_ = 100;
  std::uint32_t outstanding_ = 1;
  std::uint64_t keys_ = kUsualKeys;
  std::uint32_t snapshot_every_ = 1 << 20;
  std::optional<Picos> election_, heartbeat_, warmup_, duration_;
  std::string history_;
  std::string faults_ = "none";

  std::array<Storages, kMostReplicas> storages_;                    // by simulated machine
  std::array<const ReplicaServer*, kMostReplicas> replicas_now_{};  // by simulated machine; null: it does not run
  RaftFaultReport fault_report_;
  std::mutex mutex_;  // of what client threads share
  std::optional<HistoryWriter> writer_;
  Measured measured_;
};

void RaftKv::options(OptionTable& table) {
  table.text("--replicas", replicas_, "1, 3 or 5, or a list HOST[:PORT],HOST[:PORT],...",
             "sim: number of replicas; on a device, the addresses of all, at each replica");
  table.integer("--replica", replica_, 0u, static_cast<std::uint32_t>(kMostReplicas),
                "on a device: run the replica with this number in --replicas, from 1 on");
  table.text("--log", log_, "dram or file:PATH",
             "keep the log in memory, which the end of a process leaves, or in a file with fdatasync (devices only)");
  table.choice("--reads", reads_, {{"leader", ReadMode::leader}, {"lease", ReadMode::lease}},
               "GETs ask a majority whether the leader still leads, or trust its lease");
  table.duration("--election", election_,
                 "a follower that hears nothing for this to twice as long starts an election "
                 "(default 100 ms)");
  table.duration("--heartbeat", heartbeat_, "the leader sends something this often (default a tenth of --election)");
  table.integer("--snapshot", snapshot_every_, 1u, 1u << 30, "entries of the log between two snapshots");
  table.integer("--puts", put_percent_, 0u, 100u, "share of PUTs among the operations, in percent");
  table.integer("--outstanding", outstanding_, 1u, 1024u, "operations outstanding of each client thread");
  table.integer("--keys", keys_, std::uint64_t{1}, std::uint64_t{1} << 30, "keys, chosen uniformly");
  table.duration("--warmup", warmup_, "do not measure for this long (default: sim 1 ms, else 1 s)",
                 OptionTable::Zero::allowed);
  table.duration("-D,--duration", duration_, "measure for this long (default: sim 10 ms, else 10 s)");
  table.text("--history", history_, "a file", "write the operations and their times, for `verbscope linearizable`");
  table.text("--faults", faults_, "none, random, or a list",
             "sim: cause faults at random, one after another: leader_killed, follower_killed, all_killed, leader_cut, "
             "follower_cut, leader_paused, slow_follower, busy_machines, full_log");
  table.choice("--plant", planted_,
               {{"none", PlantedBug::none},
                {"lost_put", PlantedBug::lost_put},
                {"stale_read", PlantedBug::stale_read},
                {"double_put", PlantedBug::double_put}},
               "tests: replicas make this error at some requests");
}

// Called before anything runs: refuses what does not fit together.
std::uint32_t RaftKv::servers() const {
  const auto replicas = static_cast<std::uint32_t>(addresses().size());
  if (replicas < 3 && !parse_faults(faults_).empty()) {
    fail_usage("--faults {}: a fault leaves no majority of {} replicas; give --replicas 3 or 5", faults_, replicas);
  }
  if (election() > kLongestElection) {
    fail_usage("--election {:g} s: at most {:g} s", to_seconds(election()), to_seconds(kLongestElection));
  }
  if (2 * heartbeat() > election()) {
    fail_usage("--heartbeat {:g} s: at most half of --election ({:g} s)", to_seconds(heartbeat()),
               to_seconds(election()));
  }
  if (log_ != "dram" && !log_.starts_with(kFile)) fail_usage("--log {}: expected dram or file:PATH", log_);
  return replicas;
}

// In the simulator the names of the machines; only their number counts here.
std::vector<std::string> RaftKv::addresses() const {
  std::vector<std::string> list;
  std::uint32_t number = 0;
  const char* const end = replicas_.data() + replicas_.size();
  if (const auto [read, error] = std::from_chars(replicas_.data(), end, number); error == std::errc() && read == end) {
    if (number != 1 && number != 3 && number != 5) fail_usage("--replicas {}: expected 1, 3 or 5", replicas_);
    for (std::uint32_t i = 0; i < number; ++i) list.push_back(fmt::format("node{}", i));
    return list;
  }
  for (std::size_t at = 0; at <= replicas_.size();) {
    const std::size_t comma = std::min(replicas_.find(',', at), replicas_.size());
    list.push_back(replicas_.substr(at, comma - at));
    if (list.back().empty()) fail_usage("--replicas {}: expected HOST[:PORT],HOST[:PORT],...", replicas_);
    at = comma + 1;
  }
  if (list.size() > kMostReplicas) fail_usage("--replicas: {} addresses (at most {})", list.size(), kMostReplicas);
  return list;
}

ReplicaOptions RaftKv::replica_options(ServiceThread& thread, raft_id id,
                                       const std::vector<std::string>& addresses) const {
  return {.id = id,
          .io = {.addresses = addresses,
                 .election = election(),
                 .heartbeat = heartbeat(),
                 .random = [&thread] { return thread.random(); },
                 .compute = [&thread](Picos time) { thread.compute(time); }},
          .keys = keys_,
          .snapshot_every = snapshot_every_,
          .reads = reads_,
          .planted = planted_};
}

void RaftKv::run_replica(ServiceThread& thread, LogStorage& log_storage, LogStorage& snapshot_storage, raft_id id,
                         const std::vector<std::string>& addresses) {
  RaftLog log(log_storage, snapshot_storage);
  ReplicaServer server(thread, replica_options(thread, id, addresses), log);
  const Shown shown(replicas_now_[thread.machine()], server);
  while (thread.pass()) server.poll();
}

void RaftKv::serve(ServiceThread& thread) {
  if (thread.number() > 0) {  // a replica has one thread
    while (thread.pass()) {
    }
    return;
  }
  const std::vector<std::string> all = addresses();
  if (!thread.servers().empty()) {
    if (log_ != "dram") fail_usage("--log {}: a simulated machine has no files", log_);
    Storages& own = storages_[thread.machine()];
    return run_replica(thread, own.log, own.snapshot, thread.machine() + 1, thread.servers());
  }
  if (replica_ == 0 || replica_ > all.size()) {
    fail_usage("--replica {}: expected a number from 1 to {}, the place of this process in --replicas", replica_,
               all.size());
  }
  const bool in_file = log_.starts_with(kFile);
  // A file in shared memory outlives the process, as DRAM outlives it, but not the machine.
  const std::string path =
      in_file ? log_.substr(kFile.size()) : fmt::format("/dev/shm/raft_kv.{}.{}", getuid(), all[replica_ - 1]);
  FileStorage log(path, in_file), snapshot(path + ".snapshot", in_file);
  run_replica(thread, log, snapshot, replica_, all);
}

std::vector<ReplicaReport> RaftKv::reports(ServiceThread& thread, bool clear) const {
  std::vector<ReplicaReport> all;
  MessageBuffer request = thread.allocate(8), response = thread.allocate(kReportBytes);
  const std::string text = clear ? "clear" : "read";
  request.bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(request.data, text.data(), text.size());
  for (const std::string& address : thread.servers()) {
    const std::uint16_t session = thread.open(address);
    std::optional<RpcStatus> over;
    thread.call(session, {kReplicaReport, &request, &response,
                          [](void* to, std::uint64_t, RpcStatus status) {
                            *static_cast<std::optional<RpcStatus>*>(to) = status;
                          },
                          &over});
    const Picos deadline = thread.now() + 2 * election();
    while (!over && thread.now() < deadline && thread.pass()) {
    }
    thread.disconnect(session);
    while (!over && thread.pass()) {
    }
    if (!over) thread.finish();  // the process is to end
    if (over == RpcStatus::answered) {
      all.push_back(ReplicaReport::from_json({reinterpret_cast<const char*>(response.data), response.bytes}));
    }
  }
  thread.free(request);
  thread.free(response);
  return all;
}

void RaftKv::call(ServiceThread& thread) {
  const bool simulated = thread.machine() > 0;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = measured_.clients++;
    if (!history_.empty() && !writer_) writer_.emplace(history_, "--history");
  }
  const auto record = [this](const HistoryEvent& event) {
    const std::lock_guard lock(mutex_);
    writer_->write(event);
  };
  const Picos patience = 2 * election();
  StoreClient client(thread,
                     {.client = simulated ? number + 1 : thread.random() >> 34 | 1,
                      .outstanding = outstanding_,
                      .keys = keys_,
                      .put_percent = put_percent_,
                      .patience = patience,
                      .pause = election() / 8,
                      .give_up = thread.timeout(),
                      .clock =
                          [&thread, simulated] {
                            return simulated ? std::chrono::duration_cast<Nanos>(thread.now()) : host_history_time();
                          }},
                     writer_ ? StoreClient::Record(record) : nullptr);
  client.connect();
  client.run_until(thread.now() +
                   warmup_.value_or(simulated ? Picos(std::chrono::milliseconds(1)) : std::chrono::seconds(1)));
  if (number == 0) reports(thread, true);
  client.clear_counts();
  thread.begin_interval();
  const Picos begin = thread.now();
  client.run_until(begin +
                   duration_.value_or(simulated ? Picos(std::chrono::milliseconds(10)) : std::chrono::seconds(10)));
  thread.end_interval();
  merge(client.counts(), thread.now() - begin);
  if (number == 0) {
    measured_.replicas = reports(thread, false);
    measured_.replicas_in_all = thread.servers().size();
  }
  client.drain();
}

void RaftKv::merge(const StoreClientCounts& counts, Picos time) {
  const std::lock_guard lock(mutex_);
  StoreClientCounts& all = measured_.counts;
  all.puts += counts.puts;
  all.gets += counts.gets;
  all.unknown += counts.unknown;
  all.retries += counts.retries;
  all.wrong += counts.wrong;
  all.put_latency.merge(counts.put_latency);
  all.get_latency.merge(counts.get_latency);
  measured_.ops_per_s += static_cast<double>(counts.puts + counts.gets) / to_seconds(time);
  measured_.puts_per_s += static_cast<double>(counts.puts) / to_seconds(time);
}

void RaftKv::script(SimFaults& cluster) {
  const std::vector<RaftFault> faults = parse_faults(faults_);
  if (faults.empty()) return;
  const RaftFaultView view{
      .replicas = servers(),
      .leads = [this](std::uint32_t i) { return replicas_now_[i] != nullptr && replicas_now_[i]->replica().leads(); },
      .term = [this](std::uint32_t i) { return replicas_now_[i]->replica().c_raft().current_term; },
      .fill = [this](std::uint32_t i,
                     bool full) { storages_[i].log.limit(full ? storages_[i].log.size() : ~std::uint64_t{0}); }};
  run_raft_faults(cluster, faults, election(), view, fault_report_);
}

Json RaftKv::result() {
  const StoreClientCounts& all = measured_.counts;
  if (all.wrong > 0) fail("{} GETs returned values that no PUT writes", all.wrong);
  Json json{{"rate_mops", measured_.ops_per_s * 1e-6},
            {"window_ops", all.puts + all.gets},
            {"put_mops", measured_.puts_per_s * 1e-6}};
  json.update((all.put_latency.count() > 0 ? all.put_latency : all.get_latency).to_json("lat"));
  json.update(all.get_latency.to_json("get"));
  json.update(replica_result(measured_.replicas, measured_.replicas_in_all));
  json.update(Json{{"retries", all.retries},
                   {"unknown", all.unknown},
                   {"faults", fault_report_.faults},
                   {"longest_without_leader_ns", to_seconds(fault_report_.longest_without_leader) * 1e9}});
  return json;
}

std::string RaftKv::summary(const Json& result) const {
  if (measured_.clients == 0) return {};  // a replica
  std::string text = fmt::format("{:.3f} Mops: {:.3f} Mops PUTs\n", result.at("rate_mops").get<double>(),
                                 result.at("put_mops").get<double>());
  for (const auto& [name, key] : {std::pair{put_percent_ > 0 ? "PUTs" : "GETs", "lat"}, std::pair{"GETs", "get"},
                                  std::pair{"in the leader until applied", "commit"}}) {
    if (result.at(fmt::format("{}_samples", key)) == 0) continue;
    text += fmt::format("{}: p50 {:.2f} us, p99 {:.2f}\n", name,
                        result.at(fmt::format("{}_p50_ns", key)).get<double>() / 1e3,
                        result.at(fmt::format("{}_p99_ns", key)).get<double>() / 1e3);
  }
  return text + fmt::format("leader: thread {:.0f} % busy, {} elections, {} changes of the term\n",
                            result.at("leader_busy_share").get<double>() * 100, result.at("elections").dump(),
                            result.at("term_changes").dump());
}

}  // namespace

}  // namespace verbscope

int main(int argc, char** argv) {
  verbscope::RaftKv service;
  return verbscope::service_main(service, argc, argv);
}
