#include "systems/raft/replica_report.hpp"

#include <algorithm>
#include <array>

namespace verbscope {

namespace {

struct CountKey {
  const char* name;
  std::uint64_t ReplicaCounts::*count;
};
constexpr std::array<CountKey, 11> kCounts = {{{"puts", &ReplicaCounts::puts},
                                               {"gets", &ReplicaCounts::gets},
                                               {"elections", &ReplicaCounts::elections},
                                               {"terms", &ReplicaCounts::terms},
                                               {"leaderships", &ReplicaCounts::leaderships},
                                               {"probes", &ReplicaCounts::probes},
                                               {"snapshots", &ReplicaCounts::snapshots},
                                               {"no_space", &ReplicaCounts::no_space},
                                               {"lag_samples", &ReplicaCounts::lag_samples},
                                               {"lag_sum", &ReplicaCounts::lag_sum},
                                               {"lag_max", &ReplicaCounts::lag_max}}};

struct HistogramKey {
  const char* name;
  Histogram ReplicaReport::*histogram;
};
constexpr std::array<HistogramKey, 3> kHistograms = {{{"commits", &ReplicaReport::commits},
                                                      {"syncs", &ReplicaReport::syncs},
                                                      {"append_waits", &ReplicaReport::append_waits}}};

double share(double part, double of) {
  return of > 0 ? part / of : 0;
}

Json log_result(const ReplicaReport& of) {
  const double syncs = static_cast<double>(of.syncs.count());
  Json json = of.syncs.to_json("log_sync");
  json.update(of.append_waits.to_json("log_wait"));
  json["log_sync_share"] = share(syncs * to_seconds(of.syncs.mean()), of.seconds);
  json["log_appends_per_sync"] = share(static_cast<double>(of.append_waits.count()), syncs);
  return json;
}

}  // namespace

Json ReplicaReport::to_json() const {
  Json json{{"leads", leads}, {"full", full}, {"term", term}, {"seconds", seconds}, {"busy_s", busy_s}};
  for (const CountKey& key : kCounts) json[key.name] = counts.*key.count;
  for (const HistogramKey& key : kHistograms) json[key.name] = (this->*key.histogram).pack();
  return json;
}

ReplicaReport ReplicaReport::from_json(const std::string& text) {
  const std::string where = "report of a replica";
  const Json json = parse_json_text(text, where);
  JsonFields fields(json, where);
  ReplicaReport report;
  report.leads = fields.require<bool>("leads");
  report.full = fields.require<bool>("full");
  report.term = fields.require<std::uint64_t>("term");
  report.seconds = fields.require<double>("seconds");
  report.busy_s = fields.require<double>("busy_s");
  for (const CountKey& key : kCounts) report.counts.*key.count = fields.require<std::uint64_t>(key.name);
  for (const HistogramKey& key : kHistograms) report.*key.histogram = Histogram::unpack(fields.at(key.name), where);
  fields.reject_unknown();
  return report;
}

Json replica_result(const std::vector<ReplicaReport>& reports, std::size_t replicas) {
  ReplicaReport leader, majority;
  std::uint64_t elections = 0, terms = 0, snapshots = 0;
  for (const ReplicaReport& each : reports) {
    elections += each.counts.elections;
    snapshots += each.counts.snapshots;
    terms = std::max(terms, each.counts.terms);
    if (each.leads && each.term >= leader.term) leader = each;
  }
  if (!reports.empty()) {
    std::vector<ReplicaReport> by_wait = reports;
    std::ranges::sort(by_wait, {}, [](const ReplicaReport& each) { return each.append_waits.mean(); });
    majority = by_wait[std::min(replicas / 2, by_wait.size() - 1)];
  }
  Json json = leader.commits.to_json("commit");
  json.update(log_result(majority));
  json.update(Json{{"leader_busy_share", share(leader.busy_s, leader.seconds)},
                   {"log_lag_mean",
                    share(static_cast<double>(leader.counts.lag_sum), static_cast<double>(leader.counts.lag_samples))},
                   {"log_lag_max", leader.counts.lag_max},
                   {"read_rounds", leader.counts.probes},
                   {"elections", elections},
                   {"term_changes", terms},
                   {"snapshots", snapshots}});
  return json;
}

}  // namespace verbscope
