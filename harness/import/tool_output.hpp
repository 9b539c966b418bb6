// The output of a tool that is not of this project, as records.
#pragma once

#include <string_view>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A record of status `imported` without its environment, which its file gives it.
struct Imported {
  Record record;
  std::string fabric = "verbs";
  std::string tool;
};

// Reads one tool's output line by line.
class ToolOutput {
 public:
  virtual ~ToolOutput() = default;
  // Takes a line of the tool, and adds the records that it completes; false when the line is none of this tool's.
  virtual bool take(std::string_view line, std::vector<Imported>& out) = 0;
  // At the end of the file: adds what no further line completes.
  virtual void finish(std::vector<Imported>& /*out*/) {}
};

}  // namespace verbscope
