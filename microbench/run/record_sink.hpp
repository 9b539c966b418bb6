// Where the record of a run goes.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "common/record.hpp"
#include "common/terminal.hpp"

namespace verbscope {

// The file of the record, or standard output, or nothing. A file is opened, or refused, before the measurement.
class RecordSink {
 public:
  // `path`: of --out_json_file. "-": standard output. Empty: nothing. Throws Error.
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
