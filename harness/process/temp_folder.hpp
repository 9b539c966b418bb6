// A folder for files of the moment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/scratch.hpp"

namespace verbscope {

// A folder in `parent`, which is the system's temporary folder unless another is given; removed with all in it, also by
// a signal that ends the program.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  // The path of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<Scratch> scratch_;
};

}  // namespace verbscope
