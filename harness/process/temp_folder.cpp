#include "harness/process/temp_folder.hpp"

#include <cstdlib>

#include "common/error.hpp"

namespace verbscope {

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* chosen = std::getenv("TMPDIR");
    fail("TMPDIR \"{}\": it is no folder: {}", chosen == nullptr ? "" : chosen, error.message());
  }
  return folder;
}

TempFolder::TempFolder(const std::filesystem::path& parent) {
  path_ = (parent / "verbscope-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw_errno("make a temporary folder " + path_, errno);
  scratch_.emplace(path_);
}

}  // namespace verbscope
