// A folder for files of the moment.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/scratch.hpp"

namespace verbscope {

// The system's temporary folder. Throws where TMPDIR names none.
std::filesystem::path temporary_folder();

// A folder in `parent`, which is the system's temporary folder unless another is given; removed with all in it, also by
// a signal that ends the program.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent = temporary_folder());
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
