#include "analysis/sources.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kSimulated = "sim:";

// The last `parts` parts of a path, without its extension.
std::string end_of_path(const std::filesystem::path& path, std::size_t parts) {
  std::filesystem::path out = path.stem(), folder = path.parent_path();
  for (std::size_t i = 1; i < parts && folder.has_filename(); ++i, folder = folder.parent_path()) {
    out = folder.filename() / out;
  }
  return out.string();
}

std::pair<std::string, std::string> place_of(const Record& record) {
  return {text_at(record.environment, "fabric"), text_at(record.environment, "cluster_profile")};
}

}  // namespace

std::string short_fabric(const std::string& fabric) {
  if (!fabric.starts_with(kSimulated)) return fabric;
  std::string name = fabric.substr(fabric.find_last_of("/:") + 1);
  if (name.ends_with(".json")) name.erase(name.size() - 5);
  return name;
}

std::string fabric_name(const Record& record) {
  const std::string fabric = text_at(record.environment, "fabric");
  return fabric.starts_with(kSimulated) ? std::string(kSimulated) + short_fabric(fabric) : fabric;
}

std::vector<std::string> distinct_ends(const std::vector<std::string>& paths) {
  std::vector<std::string> before;
  for (std::size_t parts = 1;; ++parts) {
    std::vector<std::string> ends;
    for (const std::string& path : paths) ends.push_back(end_of_path(path, parts));
    if (std::set<std::string>(ends.begin(), ends.end()).size() == ends.size()) return ends;
    if (ends == before) return paths;  // they differ only in their extensions
    before = std::move(ends);
  }
}

std::vector<std::string> file_names(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return {""};
  std::vector<std::string> whole;
  for (const std::string& path : paths) {
    whole.push_back(std::filesystem::absolute(path).lexically_normal().string());
    if (std::ranges::count(whole, whole.back()) > 1) fail_usage("{} is given twice: name each results file once", path);
  }
  return distinct_ends(whole);
}

FabricNames::FabricNames(const std::vector<const Record*>& records) {
  std::map<std::string, std::set<std::string>> fabrics;    // by short name
  std::map<std::string, std::set<std::string>> checksums;  // by fabric
  for (const Record* record : records) {
    const auto [fabric, checksum] = place_of(*record);
    names_[{fabric, checksum}];
    fabrics[short_fabric(fabric)].insert(fabric);
    checksums[fabric].insert(checksum);
  }
  for (const auto& [name, same] : fabrics) {
    std::vector<std::string> paths;
    for (const std::string& fabric : same) paths.push_back(fabric.substr(same.size() > 1 ? kSimulated.size() : 0));
    const std::vector<std::string> ends = same.size() > 1 ? distinct_ends(paths) : std::vector{name};
    std::size_t i = 0;
    for (const std::string& fabric : same) {
      const std::string& end = ends[i++];
      for (const std::string& checksum : checksums[fabric]) {
        constexpr std::size_t kDigits = 8;
        const bool changed = checksums[fabric].size() > 1 && !checksum.empty();
        names_[{fabric, checksum}] = changed ? end + "@" + checksum.substr(0, kDigits) : end;
      }
    }
  }
}

const std::string& FabricNames::of(const Record& record) const {
  return names_.at(place_of(record));
}

}  // namespace verbscope
