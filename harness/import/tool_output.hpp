// Readers for the output of tools that are not part of this project.
#pragma once

#include <string_view>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A record of status `imported`. Its environment is added later, for the whole file.
struct Imported {
  Record record;
  std::string fabric = "verbs";
  std::string tool;
};

// Reads one tool's output line by line.
class ToolOutput {
 public:
  virtual ~ToolOutput() = default;
  // Reads a line and appends the records that it completes. Returns false if the line is not of this tool.
  virtual bool take(std::string_view line, std::vector<Imported>& out) = 0;
  // At the end of the file: appends the records that are still incomplete.
  virtual void finish(std::vector<Imported>& /*out*/) {}
};

}  // namespace verbscope
