#include "harness/doctor/sys_tree.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

namespace verbscope {
namespace {

constexpr std::size_t kMaxBytes = 1 << 16;

}  // namespace

std::optional<std::string> SysTree::read(const std::string& path) const {
  std::ifstream in(root_ / path, std::ios::binary);
  std::string text(kMaxBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) return std::nullopt;
  text.resize(static_cast<std::size_t>(in.gcount()));
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

Json SysTree::read_json(const std::string& path) const {
  const std::optional<std::string> text = read(path);
  return text ? Json(*text) : Json();
}

std::optional<long long> SysTree::read_number(const std::string& path) const {
  const std::optional<std::string> text = read(path);
  long long number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

std::vector<std::string> SysTree::list(const std::string& path) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root_ / path, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names,
                    [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

bool SysTree::exists(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(root_ / path, error);
}

bool SysTree::readable(const std::string& path) const {
  return access((root_ / path).c_str(), R_OK) == 0;
}

std::optional<std::string> SysTree::link_target(const std::string& path) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(root_ / path, error);
  if (!error) return target.string();
  if (!std::filesystem::is_regular_file(root_ / path, error)) return std::nullopt;
  const std::optional<std::string> text = read(path);
  return text && text->starts_with("../") ? text : std::nullopt;
}

std::optional<std::string> SysTree::link_name(const std::string& path) const {
  const std::optional<std::string> target = link_target(path);
  if (!target) return std::nullopt;
  return std::filesystem::path(*target).filename().string();
}

}  // namespace verbscope
