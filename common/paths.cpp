#include "common/paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

namespace fs = std::filesystem;

// "clusters" -> "cluster", for messages.
std::string singular(const std::string& kind) {
  if (kind.empty()) return "configuration";
  return kind.ends_with('s') ? kind.substr(0, kind.size() - 1) : kind;
}

// "; did you mean atc16/read_in or herd14/read_in?": the names in subfolders that end in `name`.
std::string suggest_subfolder(const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::string> found;
  for (const std::string& each : known) {
    if (each.ends_with("/" + name)) found.push_back(each);
  }
  return found.empty() ? "" : fmt::format("; did you mean {}?", or_list(found));
}

}  // namespace

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::vector<fs::path> config_roots() {
  std::vector<fs::path> candidates;
  if (const char* chosen = std::getenv("VERBSCOPE_CONFIGS"); chosen != nullptr && *chosen != '\0') {
    if (std::error_code error; !fs::is_directory(chosen, error))
      fail("VERBSCOPE_CONFIGS: \"{}\" is not a folder", chosen);
    candidates.emplace_back(chosen);
  }
  // An installed program uses only the files of its own prefix, even if that was moved.
  const fs::path installed = program_folder() / ".." / "share" / "verbscope" / "configs";
  if (fs::is_directory(installed)) {
    candidates.push_back(installed);
  } else {
    candidates.push_back(program_folder() / ".." / ".." / "configs");
    candidates.emplace_back(VERBSCOPE_SOURCE_CONFIGS);
  }
  std::vector<fs::path> roots;
  for (const auto& candidate : candidates) {
    std::error_code error;
    const fs::path root = fs::canonical(candidate, error);
    if (!error && std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
  }
  return roots;
}

fs::path find_config(const std::string& kind, const std::string& name) {
  const bool is_name = !name.starts_with('/') && !name.starts_with('.') && !name.ends_with(".json");
  for (const auto& root : is_name ? config_roots() : std::vector<fs::path>()) {
    fs::path path = root / kind / (name + ".json");
    std::error_code error;  // such as a file name that is too long
    if (fs::is_regular_file(path, error)) return path;
  }
  if (!is_name || name.find('/') != std::string::npos) return name;
  const std::vector<std::string> known = list_configs(kind);
  // The suggestion precedes the list, which may be cut off.
  std::string suggestion = suggest_subfolder(name, known);
  if (suggestion.empty()) suggestion = did_you_mean(name, known);
  fail_usage("unknown {} \"{}\"{} known: {}; or give the path of a .json file", singular(kind), name,
             suggestion.empty() ? ";" : suggestion, fmt::join(known, ", "));
}

std::vector<std::string> list_configs(const std::string& kind) {
  std::set<std::string> names;
  for (const auto& root : config_roots()) {
    std::error_code error;
    const fs::path folder = root / kind;
    for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
      if (entry.path().extension() != ".json") continue;
      names.insert(entry.path().lexically_relative(folder).replace_extension().string());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace verbscope
