// Outcomes of simulated runs that are kept beside a results file, so that the next answer about it needs no run twice.
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
  // `file` is read if it is there; lines that are none of ours are left out. An empty path keeps outcomes in memory
  // only, as does a file that cannot be written.
  explicit RunCache(std::filesystem::path file = {});

  // Outcomes by everything that they depend on: program, profile and options. May be called by several threads.
  std::optional<TrialOutcome> find(const std::string& key) const;
  void add(const std::string& key, const TrialOutcome& outcome);

 private:
  std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, TrialOutcome> outcomes_;
};

// The file beside a results file.
std::filesystem::path run_cache_of(const std::filesystem::path& results);

}  // namespace verbscope
