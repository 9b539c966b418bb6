#include "harness/process/temp_folder.hpp"

#include <cstdlib>
#include <filesystem>

#include "common/error.hpp"

namespace verbscope {

TempFolder::TempFolder() {
  path_ = (std::filesystem::temp_directory_path() / "verbscope-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw_errno("make a temporary folder " + path_, errno);
  scratch_.emplace(path_);
}

}  // namespace verbscope
