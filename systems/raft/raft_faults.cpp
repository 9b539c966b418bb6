#include "systems/raft/raft_faults.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::array<std::pair<const char*, RaftFault>, 9> kNames = {{{"leader_killed", RaftFault::leader_killed},
                                                                      {"follower_killed", RaftFault::follower_killed},
                                                                      {"all_killed", RaftFault::all_killed},
                                                                      {"leader_cut", RaftFault::leader_cut},
                                                                      {"follower_cut", RaftFault::follower_cut},
                                                                      {"leader_paused", RaftFault::leader_paused},
                                                                      {"slow_follower", RaftFault::slow_follower},
                                                                      {"busy_machines", RaftFault::busy_machines},
                                                                      {"full_log", RaftFault::full_log}}};
constexpr int kMostElections = 10;
constexpr double kSlower = 20;
// The threads of busy machines stand still two thirds of the time. After each kSlices-th part of an election time-out,
// each begins a stall of up to kLongestStall election time-outs with a probability of 1 / kStallEvery.
constexpr int kSlices = 40;
constexpr std::uint64_t kStallEvery = 9;
constexpr double kLongestStall = 0.3;

// One fault after another.
class Script {
 public:
  Script(SimFaults& cluster, Picos election, const RaftFaultView& view, RaftFaultReport& report)
      : cluster_(cluster), election_(election), view_(view), report_(report) {}

  void run(RaftFault fault) {
    const std::uint32_t leader = await_leader("after the last fault");
    const auto other =
        static_cast<std::uint32_t>((leader + 1 + cluster_.random() % (view_.replicas - 1)) % view_.replicas);
    wait(between(0, 3));
    ++report_.faults;
    const Picos during = between(0.2, 5);
    switch (fault) {
      case RaftFault::leader_killed:
        return killed(leader, during);
      case RaftFault::follower_killed:
        return killed(other, during);
      case RaftFault::all_killed:
        for (std::uint32_t i = 0; i < view_.replicas; ++i) cluster_.kill(i);
        wait(during);
        for (std::uint32_t i = 0; i < view_.replicas; ++i) cluster_.restart(i);
        return;
      case RaftFault::leader_cut:
        return cut(leader, during);
      case RaftFault::follower_cut:
        return cut(other, during);
      case RaftFault::leader_paused:
        cluster_.pause(leader, during);
        return wait(during);
      case RaftFault::slow_follower:
        cluster_.slow(other, kSlower);
        wait(during);
        cluster_.slow(other, 1);
        return;
      case RaftFault::busy_machines:
        busy_ = true;
        killed(leader, during);
        busy_ = false;
        return;
      case RaftFault::full_log:
        view_.fill(leader, true);
        wait(during);
        view_.fill(leader, false);
        return;
    }
  }

 private:
  Picos between(double low, double high) {
    const double share = static_cast<double>(cluster_.random() >> 11) / static_cast<double>(std::uint64_t{1} << 53);
    return Picos(static_cast<std::int64_t>(static_cast<double>(election_.count()) * (low + (high - low) * share)));
  }
  void wait(Picos time) {
    const Picos end = cluster_.now() + time;
    while (busy_ && cluster_.now() + election_ / kSlices < end) {
      cluster_.wait_until(cluster_.now() + election_ / kSlices);
      for (std::uint32_t i = 0; i < view_.replicas; ++i) {
        if (cluster_.runs(i) && cluster_.random() % kStallEvery == 0) cluster_.pause(i, between(0, kLongestStall));
      }
    }
    cluster_.wait_until(end);
  }

  void killed(std::uint32_t replica, Picos during) {
    cluster_.kill(replica);
    without(replica, during, "after a replica was killed");
    cluster_.restart(replica);
  }
  void cut(std::uint32_t replica, Picos during) {
    cluster_.cut(replica);
    without(replica, during, "after a replica was cut off");
    cluster_.join(replica);
  }
  void without(std::uint32_t replica, Picos during, const char* when) {
    lost_ = replica;
    await_leader(when);
    wait(during);
    lost_.reset();
  }

  // The leader with the latest term, but for a replica that is lost.
  std::optional<std::uint32_t> leader() const {
    std::optional<std::uint32_t> found;
    for (std::uint32_t i = 0; i < view_.replicas; ++i) {
      if (i == lost_ || !cluster_.runs(i) || !view_.leads(i)) continue;
      if (!found || view_.term(i) > view_.term(*found)) found = i;
    }
    return found;
  }
  std::uint32_t await_leader(const char* when) {
    const Picos begin = cluster_.now();
    while (!leader()) {  // the first election too
      if (cluster_.now() - begin > kMostElections * election_) {
        fail("no leader {} election time-outs {}", kMostElections, when);
      }
      wait(election_ / 20);
    }
    report_.longest_without_leader = std::max(report_.longest_without_leader, cluster_.now() - begin);
    return *leader();
  }

  SimFaults& cluster_;
  const Picos election_;
  const RaftFaultView& view_;
  RaftFaultReport& report_;
  std::optional<std::uint32_t> lost_;
  bool busy_ = false;  // the machines of the replicas
};

}  // namespace

std::vector<RaftFault> parse_faults(const std::string& text) {
  std::vector<RaftFault> faults;
  if (text == "none") return faults;
  if (text == "random") {
    for (const auto& [name, fault] : kNames) faults.push_back(fault);
    return faults;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    const auto found = std::ranges::find_if(kNames, [&word](const auto& entry) { return word == entry.first; });
    if (found == kNames.end()) {
      std::string all;
      for (const auto& [name, fault] : kNames) all += (all.empty() ? "" : ", ") + std::string(name);
      fail_usage("--faults {}: expected none, random, or a list of: {}", word, all);
    }
    faults.push_back(found->second);
    at = comma + 1;
  }
  return faults;
}

void run_raft_faults(SimFaults& cluster, const std::vector<RaftFault>& faults, Picos election,
                     const RaftFaultView& view, RaftFaultReport& report) {
  Script script(cluster, election, view, report);
  for (;;) script.run(faults[cluster.random() % faults.size()]);
}

}  // namespace verbscope
