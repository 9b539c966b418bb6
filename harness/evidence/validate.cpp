#include "harness/evidence/validate.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"
#include "harness/evidence/validation_text.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

// Keeps the rows of the set or cluster.
void keep_only(std::vector<EvidenceRow>& rows, const std::string& only) {
  if (only.empty()) return;
  std::set<std::string> known;
  for (const EvidenceRow& row : rows) known.insert({row.point.paper, row.point.cluster});
  if (!known.contains(only)) fail_usage("no rows of \"{}\" are known: there are {}", only, fmt::join(known, ", "));
  std::erase_if(rows, [&only](const EvidenceRow& row) { return row.point.paper != only && row.point.cluster != only; });
}

// Rows that are drawn together: one, or of those that count by their shape as many as have a shape.
std::vector<std::vector<std::size_t>> drawn_together(const std::vector<EvidenceRow>& rows) {
  std::vector<std::vector<std::size_t>> units;
  std::map<std::string, std::vector<std::size_t>> shapes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].not_run.empty() || rows[i].point.calibration) continue;
    if (!rows[i].by_shape) {
      units.push_back({i});
      continue;
    }
    std::vector<std::size_t>& waiting = shapes[rows[i].point.where + " " + rows[i].point.cluster];
    waiting.push_back(i);
    if (waiting.size() == kMinShape) units.push_back(std::exchange(waiting, {}));
  }
  return units;
}

// Draws among the rows that run, that no parameter was fitted to, and that count, and keeps those only. Returns how
// many there are to draw from.
std::size_t keep_sample(std::vector<EvidenceRow>& rows, std::size_t count, std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> units = drawn_together(rows);
  std::size_t candidates = 0;
  std::vector<std::size_t> chosen;
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < units.size(); ++i) {
    std::swap(units[i], units[i + random() % (units.size() - i)]);
    candidates += units[i].size();
    if (chosen.size() + units[i].size() <= count) chosen.insert(chosen.end(), units[i].begin(), units[i].end());
  }
  std::ranges::sort(chosen);
  std::vector<EvidenceRow> kept;
  for (const std::size_t i : chosen) kept.push_back(rows[i]);
  rows = std::move(kept);
  return candidates;
}

std::string command_text(const ValidateOptions& options) {
  std::string text = "verbscope validate";
  if (!options.only.empty()) text += " " + options.only;
  if (!options.rows.empty()) text += " --rows " + std::filesystem::path(options.rows).filename().string();
  if (options.sample > 0) text += fmt::format(" --sample {} --seed {}", options.sample, options.seed);
  const std::filesystem::path page(options.out);
  return text + " --out " + (page.is_absolute() ? page.filename() : page).string();
}

std::size_t different_runs(const std::vector<EvidenceRow>& rows) {
  std::set<std::string> runs;
  for (const EvidenceRow& row : rows) {
    if (!row.not_run.empty()) continue;
    for (const RowRun& run : runs_of(row.point)) runs.insert(run.identity());
  }
  return runs.size();
}

}  // namespace

int validate(const ValidateOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  std::optional<OutputFile> page;
  if (!options.out.empty()) {
    check_output("--out", options.out, FileKind::validation_page, {options.rows});
    page.emplace(options.out);
  }
  std::vector<EvidenceRow> rows = options.rows.empty() ? all_evidence() : evidence_of_file(options.rows);
  keep_only(rows, options.only);
  Programs programs(folder);
  note_not_run(rows, programs);
  Validation validation;
  std::vector<EvidenceRow> shipped = all_evidence();
  note_not_run(shipped, programs);
  validation.fitted = note_fitted(rows, shipped);
  if (options.sample > 0) {
    const std::size_t candidates = keep_sample(rows, options.sample, options.seed);
    print_format(out, "{} rows drawn of {} that run, that count, and that no parameter was fitted to\n", rows.size(),
                 candidates);
  }
  const std::size_t jobs = job_count(options.jobs), runs = different_runs(rows);
  print_format(out, "{} rows, {} different runs, {} at a time\n", rows.size(), runs, jobs);
  Progress progress(TimeLeft(runs), out, isatty(fileno(out)) == 1);
  auto start = std::chrono::steady_clock::now();
  std::size_t records_ended = 0;
  std::map<std::string, Record> records;
  try {
    records =
        run_evidence(rows, {.folder = folder,
                            .jobs = jobs,
                            .stop = &interrupt,
                            .fabric = [](const std::string& cluster) { return "sim:" + cluster; },
                            .finished =
                                [&](const RowRun& run, const Record& record) {
                                  const auto now = std::chrono::steady_clock::now();
                                  progress.finished(records_ended++, run.text(), outcome_text(record), now - start);
                                  start = now;
                                }});
  } catch (const InterruptedError&) {
    print_format(out, "interrupted\n");
    return kExitInterrupted;
  }
  validation.outcomes = evidence_outcomes(rows, records);
  validation.curves = measured_curves(validation.outcomes);
  print_format(out, "\n{}", validation_summary(validation, terminal_width(out)));
  if (page) {
    page->write(validation_page(validation, command_text(options)));
    page->commit();
    print_format(out, "written: {}\n", options.out);
  }
  if (!options.plots.empty()) {
    for (const auto& path : draw_curves(validation.curves, options.plots))
      print_format(out, "drawn: {}\n", path.string());
  }
  return validation.good() ? 0 : 1;
}

}  // namespace verbscope
