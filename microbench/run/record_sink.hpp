// Where the record of a run goes.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "common/terminal.hpp"
#include "microbench/bench/option_table.hpp"
#include "microbench/bench/outcome.hpp"

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

// What a record says of its run besides the outcome.
struct RunIdentity {
  std::string benchmark;
  const std::string& fabric;
  const OptionTable& table;
  const std::vector<std::string>& command_line;
};

// Calls `run` and writes the record of its outcome. If `run` throws, writes a failed record and rethrows.
Record run_recorded(RecordSink& sink, const RunIdentity& identity, const std::function<Outcome()>& run);

}  // namespace verbscope
