#include "harness/perftest/output.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "common/error.hpp"
#include "common/text.hpp"
#include "harness/import/tool_output.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

// Last lines of perftest when it gives up, for which a line before them has the reason.
constexpr std::array<std::string_view, 2> kNoReasons{"Parser function exited with Error",
                                                     "Couldn't get context for the device"};

std::vector<Imported> rows_of(const std::string& output) {
  PerftestTable table;
  std::vector<Imported> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) table.read_line(line, rows);
  return rows;
}

}  // namespace

void add_figures(const std::string& tool, const std::vector<PerftestOutput>& outputs, Outcome& outcome) {
  std::vector<std::string> errors;
  for (const PerftestOutput& output : outputs) {
    std::istringstream lines(output.errors);
    for (std::string line; std::getline(lines, line);) errors.push_back(printable_ascii(line));
    const std::vector<Imported> rows = rows_of(output.text);
    if (rows.empty()) continue;
    outcome.config.update(rows.back().record.config);
    outcome.result.update(rows.back().record.result);
    return;
  }
  // perftest ends so, and with success, if it cannot measure the frequency of the processor.
  fail("{}", with_last_line(tool + " has printed no row of results", errors));
}

std::string failure_text(const std::string& end, const std::vector<std::string>& tail) {
  PerftestTable table;
  std::vector<Imported> rows;
  // The table's head may be behind the reason: perftest buffers standard output, but not standard error.
  const auto is_reason = [&](std::string_view line) {
    return std::ranges::find(kNoReasons, trimmed(line, " \t")) == kNoReasons.end() && !table.read_line(line, rows);
  };
  const auto reason = std::find_if(tail.rbegin(), tail.rend(), is_reason);
  return reason == tail.rend() ? with_last_line(end, tail) : fmt::format("{}: {}", end, trimmed(*reason, " \t"));
}

}  // namespace verbscope
