// A temporary folder, removed by its owner.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/error.hpp"
#include "common/scratch.hpp"

namespace verbscope {

// The system's temporary folder. Throws if TMPDIR does not name a folder.
inline std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* chosen = std::getenv("TMPDIR");
    fail("TMPDIR \"{}\": not a usable folder: {}; set TMPDIR to an existing folder", chosen == nullptr ? "" : chosen,
         error.message());
  }
  return folder;
}

// Creates a folder in `parent` and removes it with its contents, also if a signal ends the program.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& parent = temporary_folder())
      : path_((parent / "verbscope-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw_errno("create the temporary folder " + path_, errno);
    scratch_.emplace(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file of this folder and returns its path. Unlike replace_file() it does not wait for the disk: these files
  // end with the program. Throws Error that names the path.
  std::string write(const std::string& name, std::string_view text) const;

 private:
  std::string path_;
  std::optional<Scratch> scratch_;
};

}  // namespace verbscope
