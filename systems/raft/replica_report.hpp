// What a replica has done since its counts were cleared, and what a record has of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/histogram.hpp"
#include "common/json.hpp"
#include "systems/raft/replica.hpp"

namespace verbscope {

struct ReplicaReport {
  bool leads = false;
  bool full = false;
  std::uint64_t term = 0;
  ReplicaCounts counts{};
  double seconds = 0;  // since the counts were cleared
  double busy_s = 0;   // of them, the thread worked
  Histogram commits{};
  Histogram syncs{};         // of new entries; empty if the storage is fast
  Histogram append_waits{};  // from an append until it was durable; empty if the storage is fast

  Json to_json() const;
  // Throws Error.
  static ReplicaReport from_json(const std::string& text);
};

// The result of the replicas that have reported, out of `replicas`: their counts, and the work of the leader and of its
// log. The times of the log are those of the replica that completes a majority, by the mean wait for its log.
Json replica_result(const std::vector<ReplicaReport>& reports, std::size_t replicas);

}  // namespace verbscope
