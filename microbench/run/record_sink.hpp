// Where the record of a point goes.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "common/record.hpp"
#include "common/terminal.hpp"

namespace verbscope {

// The place that the record goes to; a file is opened, and refused, before anything is measured.
class RecordSink {
 public:
  explicit RecordSink(const std::string& path) : to_stdout_(path == "-") {
    if (!path.empty() && !to_stdout_) writer_.emplace(path, "--out_json_file");
  }

  bool to_stdout() const { return to_stdout_; }

  void write(const Record& record) {
    if (writer_) writer_->append(record);
    if (to_stdout_) print_text(stdout, dump_json(to_json(record)) + "\n");
  }

 private:
  bool to_stdout_;
  std::optional<ResultsWriter> writer_;
};

}  // namespace verbscope
