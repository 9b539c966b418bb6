#include "microbench/run/record_sink.hpp"

#include "microbench/run/report.hpp"

namespace verbscope {

Record run_recorded(RecordSink& sink, const RunIdentity& identity, const std::function<Outcome()>& run) {
  const auto write = [&](const Outcome& outcome) {
    Record record;
    record.benchmark = identity.benchmark;
    fill_record(record, outcome, identity.table, make_environment(identity.fabric, identity.command_line));
    sink.write(record);
    return record;
  };
  Outcome outcome;
  try {
    outcome = run();
  } catch (const std::exception& error) {
    outcome.failure = error.what();
    // The schema of records allows existing fabrics only.
    if (is_fabric(identity.fabric)) write(outcome);
    throw;
  }
  return write(outcome);
}

}  // namespace verbscope
