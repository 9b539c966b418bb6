// Reads small files of /sys and /proc below a root folder. Tests use a tree of their own.
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

  // The first 64 KiB of the file, without blanks at both ends. Empty optional if it cannot be read, which is usual for
  // some files of /sys.
  std::optional<std::string> read(const std::string& path) const;
  // The text of the file as a JSON string; null if it cannot be read.
  Json read_json(const std::string& path) const;
  // The number at the beginning of the file, if there is one.
  std::optional<long long> read_number(const std::string& path) const;
  // The names in the folder, with numbers in numeric order (eth2 before eth10). Empty if the folder does not exist.
  std::vector<std::string> list(const std::string& path) const;
  bool exists(const std::string& path) const;
  // True if this user may read the file. Does not read it.
  bool readable(const std::string& path) const;
  // The target of the symbolic link. In a copied tree without links, a file with the target as its text takes the place
  // of the link.
  std::optional<std::string> link_target(const std::string& path) const;
  // The last component of the target: the driver of a device, the group of an IOMMU.
  std::optional<std::string> link_name(const std::string& path) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace verbscope
