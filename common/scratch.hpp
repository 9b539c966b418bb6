// Temporary files and folders, removed by their owner and on every signal that can be caught.
#pragma once

#include <filesystem>

namespace verbscope {

struct ScratchEntry;

// Owns a path that must not outlive the program. The first object of a process installs handlers for all signals that
// would end it. They remove the paths of all objects, then let the signal take effect.
class Scratch {
 public:
  // `path`: absolute path of a file, or a folder with its contents, which may exist already or later.
  explicit Scratch(const std::filesystem::path& path);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();  // removes it

  // Makes the path permanent: it is not removed.
  void keep();

 private:
  ScratchEntry* entry_;
};

}  // namespace verbscope
