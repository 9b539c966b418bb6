// A temporary folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/scratch.hpp"

namespace verbscope {

// The system's temporary folder. Throws if TMPDIR does not name a folder.
std::filesystem::path temporary_folder();

// Creates a folder in `parent` and removes it with its contents, also if a signal ends the program.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent = temporary_folder());
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<Scratch> scratch_;
};

}  // namespace verbscope
