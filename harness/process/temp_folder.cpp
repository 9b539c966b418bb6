#include "harness/process/temp_folder.hpp"

#include <cstdlib>

#include "common/error.hpp"

namespace verbscope {

TempFolder::TempFolder(const std::filesystem::path& parent) {
  path_ = (parent / "verbscope-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw_errno("make a temporary folder " + path_, errno);
  scratch_.emplace(path_);
}

}  // namespace verbscope
