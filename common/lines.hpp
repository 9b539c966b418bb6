// Reads text files of any size line by line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "common/fd.hpp"

namespace verbscope {

// The lines of a file with their numbers. Skips the content of lines that are too long for JSON.
class Lines {
 public:
  // Errors begin with `what`, such as "cannot read results from FILE".
  Lines(const std::filesystem::path& path, std::string what);

  // Returns false at the end of the file. A last line without a line end counts.
  bool next();

  const std::string& line() const { return line_; }
  std::size_t number() const { return number_; }
  bool too_long() const { return too_long_; }  // longer than kMaxJsonBytes
  bool ended() const { return ended_; }        // false: the line is the last one and has no line end

 private:
  bool read_block();

  std::string path_, what_;
  Fd file_;
  std::string block_, line_;
  std::size_t at_ = 0, number_ = 0;
  bool too_long_ = false, ended_ = false;
};

}  // namespace verbscope
