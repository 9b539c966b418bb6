// Programs that run command after command in one process (common/served.hpp), and a pool of them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "harness/process/child.hpp"

namespace verbscope {

class ServedProgram {
 public:
  // Starts the program. Like any child, it ends with the thread that started it. Throws "cannot start PATH: reason".
  explicit ServedProgram(std::string path);
  ServedProgram(const ServedProgram&) = delete;
  ServedProgram& operator=(const ServedProgram&) = delete;

  const std::string& path() const { return path_; }
  Child& child() { return *child_; }
  bool running() const { return child_->running(); }
  // The last command has not ended.
  bool busy() const { return busy_ && running(); }
  // Of the last command; nothing: the program ended before it.
  std::optional<int> exit_code() const { return exit_code_; }
  // The last lines that the last command printed.
  std::vector<std::string> tail() const;

  // Begins a command. Precondition: not busy. Throws if the program has ended.
  void begin(const std::vector<std::string>& arguments);

 private:
  void receive(std::string_view chunk);

  std::string path_;
  Fd commands_;
  std::string line_;  // of its output, not complete
  bool busy_ = false;
  std::optional<int> exit_code_;
  std::unique_ptr<Child> child_;
};

// Programs without a command, for several threads.
class ServedPrograms {
 public:
  // Starts programs in the calling thread until `count` with this path are idle.
  void prepare(const std::string& path, std::size_t count);
  // Null: none is idle.
  std::unique_ptr<ServedProgram> take(const std::string& path);
  // Keeps the program for others, unless it has ended or its command has not.
  void give_back(std::unique_ptr<ServedProgram> program);

 private:
  std::mutex mutex_;
  std::multimap<std::string, std::unique_ptr<ServedProgram>> idle_;
};

}  // namespace verbscope
