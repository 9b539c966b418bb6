// Keeps outcomes of simulated runs in a file beside a results file, so that later commands need not repeat them.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "harness/what_if/limit_search.hpp"

namespace verbscope {

class RunCache {
 public:
  // Reads `file` if it exists and ignores foreign lines. If the path is empty or the file cannot be written, outcomes
  // are kept in memory only.
  explicit RunCache(std::filesystem::path file = {});

  // The key contains everything that the outcome depends on: program, profile and options. Thread-safe.
  std::optional<TrialOutcome> find(const std::string& key) const;
  void add(const std::string& key, const TrialOutcome& outcome);

 private:
  std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, TrialOutcome> outcomes_;
};

// The path of the cache of a results file.
std::filesystem::path run_cache_of(const std::filesystem::path& results);

}  // namespace verbscope
