// Small files of /sys and /proc, below any root: tests read planted trees.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

class SysTree {
 public:
  explicit SysTree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // The first 64 KiB of the file, without blanks at its ends; nothing when it cannot be read, as some of /sys cannot.
  std::optional<std::string> read(const std::string& path) const;
  // The text of the file as a JSON string; null when there is none.
  Json read_json(const std::string& path) const;
  // The number that the file begins with; nothing when there is none.
  std::optional<long long> read_number(const std::string& path) const;
  // Names in the folder, numbers in them in order (eth2 before eth10); none when it is not there.
  std::vector<std::string> list(const std::string& path) const;
  bool exists(const std::string& path) const;
  // Whether this user may read it; nothing is read.
  bool readable(const std::string& path) const;
  // The target of the link. Copies of a tree without links have a file with that text in its place.
  std::optional<std::string> link_target(const std::string& path) const;
  // The last part of that: the driver of a device, the group of an IOMMU.
  std::optional<std::string> link_name(const std::string& path) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace verbscope
