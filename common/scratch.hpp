// Files and folders of the moment: they go with their owner, and on every signal that can be caught.
#pragma once

#include <filesystem>

namespace verbscope {

struct ScratchEntry;

// Owns a path that must not outlive the program. The first one of a process has every signal that would end it remove
// the paths of all before it takes its effect.
class Scratch {
 public:
  // `path` is a file or a folder with all in it, there already or not yet, absolute.
  explicit Scratch(const std::filesystem::path& path);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();  // removes it

  // The path is no longer of the moment: nothing removes it.
  void keep();

 private:
  ScratchEntry* entry_;
};

}  // namespace verbscope
