#include "harness/what_if/run_cache.hpp"

#include <fstream>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

// A larger file is removed: most of its outcomes are of older programs and profiles.
constexpr std::uintmax_t kMaxBytes = 64'000'000;

}  // namespace

RunCache::RunCache(std::filesystem::path file) : file_(std::move(file)) {
  std::error_code error;
  if (file_.empty()) return;
  if (const auto size = std::filesystem::file_size(file_, error); !error && size > kMaxBytes) {
    std::filesystem::remove(file_, error);
  }
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto mops = number_at(json, "mops");
    const std::string key = text_at(json, "key");
    if (!mops || key.empty()) continue;
    outcomes_[key] = {.mops = *mops,
                      .gbit_per_s = number_at(json, "gbit_per_s").value_or(0),
                      .latency_us = number_at(json, "latency_us").value_or(0),
                      .failure = text_at(json, "failure")};
  }
}

std::optional<TrialOutcome> RunCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = outcomes_.find(key);
  return found == outcomes_.end() ? std::nullopt : std::optional(found->second);
}

void RunCache::add(const std::string& key, const TrialOutcome& outcome) {
  const Json line{{"key", key},
                  {"mops", outcome.mops},
                  {"gbit_per_s", outcome.gbit_per_s},
                  {"latency_us", outcome.latency_us},
                  {"failure", outcome.failure}};
  const std::lock_guard lock(mutex_);
  outcomes_[key] = outcome;
  if (file_.empty()) return;
  std::ofstream out(file_, std::ios::app);
  out << dump_json(line) + "\n";
}

std::filesystem::path run_cache_of(const std::filesystem::path& results) {
  std::filesystem::path out = results;
  out += ".explain";
  return out;
}

}  // namespace verbscope
