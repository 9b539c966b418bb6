// A folder for files of the moment.
#pragma once

#include <optional>
#include <string>

#include "common/scratch.hpp"

namespace verbscope {

// A folder under the system's temporary folder, removed with all in it, also by a signal that ends
// the program.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  // The path of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<Scratch> scratch_;
};

}  // namespace verbscope
