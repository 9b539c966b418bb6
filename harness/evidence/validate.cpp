#include "harness/evidence/validate.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "analysis/text_table.hpp"
#include "common/cli.hpp"
#include "common/files.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/evidence/intervals.hpp"
#include "harness/evidence/misses.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"
#include "harness/sweep/run_points.hpp"

namespace verbscope {
namespace {

using Rows = std::vector<const EvidenceOutcome*>;

std::string use_of(const EvidenceRow& row) {
  return row.point.calibration ? "calibration" : "prediction";
}

bool is_measured(const EvidenceOutcome& outcome) {
  return !outcome.row->columns.empty();
}

// "rc-swarm on cib"; only the set if the row's machine has no profile.
std::string set_of(const PublishedPoint& point) {
  return point.cluster.empty() ? point.paper : fmt::format("{} on {}", point.paper, point.cluster);
}

ErrorFigures figures_of(const Rows& rows) {
  std::vector<double> errors;
  for (const EvidenceOutcome* each : rows) errors.push_back(*each->error_percent);
  return error_figures(errors);
}

// Groups the rows that have an error by key(outcome).
template <class Key>
auto grouped(const std::vector<EvidenceOutcome>& outcomes, Key key) {
  std::map<decltype(key(outcomes.front())), Rows> groups;
  for (const EvidenceOutcome& each : outcomes) {
    if (each.error_percent) groups[key(each)].push_back(&each);
  }
  return groups;
}

std::vector<std::string> figure_cells(const ErrorFigures& figures) {
  return {fmt::format("{}", figures.rows), fmt::format("{:.1f}", figures.median),
          fmt::format("{:.1f}", figures.percentile_90), fmt::format("{:.1f}", figures.worst)};
}

std::string slice_table(const std::vector<EvidenceOutcome>& outcomes, std::size_t width) {
  TextTable table({{"", {{"cluster", true}}},
                   {"", {{"set", true}, {"slice", true}}},
                   {"", {{"use", true}}},
                   {"error in %", {{"rows"}, {"median"}, {"90 %"}, {"worst"}}},
                   {"", {{"worst row", true}}}});
  // A published paper is one slice; a measured set has one slice per source.
  const auto groups = grouped(outcomes, [](const EvidenceOutcome& each) {
    return std::tuple(each.row->point.cluster, each.row->point.paper, is_measured(each) ? each.row->point.where : "",
                      use_of(*each.row), each.row->by_shape);
  });
  for (const auto& [key, rows] : groups) {
    const ErrorFigures figures = figures_of(rows);
    const auto& [cluster, set, slice, use, by_shape] = key;
    std::vector<std::string> cells{cluster, set, slice + (by_shape ? " (shape)" : ""), use};
    for (std::string& cell : figure_cells(figures)) cells.push_back(std::move(cell));
    const PublishedPoint& worst = rows[figures.worst_at]->row->point;
    cells.push_back(is_measured(*rows[figures.worst_at]) ? worst.what : worst.id);
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

bool meets_goals(const ErrorFigures& figures) {
  return figures.median <= kMedianGoal && figures.percentile_90 <= kPercentile90Goal;
}

std::string cluster_table(const std::vector<EvidenceOutcome>& outcomes, std::size_t width) {
  TextTable table(
      {{"", {{"cluster", true}, {"rows", true}, {"use", true}}},
       {"error in %", {{"rows"}, {"median"}, {"90 %"}, {"worst"}}},
       {"", {{fmt::format("goal of measured rows: {:g} and {:g}", kMedianGoal, kPercentile90Goal), true}}}});
  const auto groups = grouped(outcomes, [](const EvidenceOutcome& each) {
    return std::tuple(each.row->point.cluster, is_measured(each), use_of(*each.row));
  });
  for (const auto& [key, rows] : groups) {
    const ErrorFigures figures = figures_of(rows);
    const auto& [cluster, measured, use] = key;
    std::vector<std::string> cells{cluster, measured ? "measured" : "published", use};
    for (std::string& cell : figure_cells(figures)) cells.push_back(std::move(cell));
    cells.push_back(!measured ? "" : meets_goals(figures) ? "met" : "NOT met");
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

std::string kind_table(const std::vector<EvidenceOutcome>& outcomes, std::size_t width) {
  TextTable table({{"", {{"kind", true}}},
                   {"error in %", {{"rows"}, {"median"}, {"90 %"}, {"worst"}}},
                   {fmt::format("in the {} % interval", kIntervalPercent), {{"predictions"}, {"inside"}, {"%"}}}});
  const auto add = [&table](const std::string& name, const Rows& rows) {
    std::vector<std::string> cells{name};
    for (std::string& cell : figure_cells(figures_of(rows))) cells.push_back(std::move(cell));
    const Coverage coverage = coverage_of(rows);
    const double percent = 100 * static_cast<double>(coverage.inside) / static_cast<double>(coverage.rows);
    cells.push_back(fmt::format("{}", coverage.rows));
    cells.push_back(fmt::format("{}", coverage.inside));
    cells.push_back(coverage.rows == 0 ? "-" : fmt::format("{:.0f}", percent));
    table.add_row(std::move(cells));
  };
  Rows all;
  for (const auto& [kind, rows] : grouped(outcomes, [](const EvidenceOutcome& each) { return kind_of(*each.row); })) {
    add(kind, rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  add("all", all);
  return table.text(width);
}

std::string number_or_none(const std::optional<double>& value) {
  return value ? fmt::format("{:g}", *value) : "none";
}

std::string bend_table(const std::vector<BendPair>& all, std::size_t width) {
  TextTable table({{"", {{"", true}, {"along", true}}},
                   {"at", {{"theirs"}, {"ours"}}},
                   {"", {{"", true}}},
                   {"", {{"curve", true}}}});
  for (const BendPair& bend : all) {
    table.add_row({bend.kind, bend.curve->along, number_or_none(bend.theirs), number_or_none(bend.ours), bend.verdict(),
                   bend.curve->name()});
  }
  const auto near = std::ranges::count_if(all, &BendPair::near);
  return table.text(width) +
         fmt::format("{} of {} knees and cliffs are within one step of the sweep\n", near, all.size());
}

std::string fitted_lines(const std::vector<FittedCluster>& fitted) {
  std::string text;
  for (const FittedCluster& each : fitted) {
    text += fmt::format("{}: {} parameters fitted to {} rows\n", each.cluster, each.parameters, each.rows);
  }
  return text;
}

// The rows without a figure: their number per reason and set; failed rows one by one.
std::string missing_lines(const std::vector<EvidenceOutcome>& outcomes) {
  std::map<std::string, std::size_t> reasons;
  std::string failed;
  for (const EvidenceOutcome& each : outcomes) {
    const EvidenceRow& row = *each.row;
    const std::string set = set_of(row.point);
    if (!row.not_run.empty()) ++reasons[fmt::format("{}: {}", set, row.not_run)];
    if (!each.uncounted.empty()) ++reasons[fmt::format("{}: run, not counted: {}", set, each.uncounted)];
    if (!each.failure.empty()) failed += fmt::format("FAILED: {}\n", each.failure);
  }
  std::string text = failed;
  for (const auto& [reason, rows] : reasons)
    text += fmt::format("not run: {} row{} of {}\n", rows, rows == 1 ? "" : "s", reason);
  return text;
}

// `only`: a set or cluster; empty keeps all rows.
void keep_only(std::vector<EvidenceRow>& rows, const std::string& only) {
  if (only.empty()) return;
  std::set<std::string> known;
  for (const EvidenceRow& row : rows) known.insert({row.point.paper, row.point.cluster});
  if (!known.contains(only)) fail_usage("no rows of \"{}\"; known sets and clusters: {}", only, fmt::join(known, ", "));
  std::erase_if(rows, [&only](const EvidenceRow& row) { return row.point.paper != only && row.point.cluster != only; });
}

// Groups of rows that are drawn together: single rows, or kMinShapeRows rows that count by shape.
std::vector<std::vector<std::size_t>> draw_units(const std::vector<EvidenceRow>& rows) {
  std::vector<std::vector<std::size_t>> units;
  std::map<std::string, std::vector<std::size_t>> shapes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].not_run.empty() || rows[i].point.calibration || rows[i].point.slow) continue;
    if (!rows[i].by_shape) {
      units.push_back({i});
      continue;
    }
    std::vector<std::size_t>& waiting = shapes[shape_group(rows[i])];
    waiting.push_back(i);
    if (waiting.size() == kMinShapeRows) units.push_back(std::exchange(waiting, {}));
  }
  return units;
}

// Keeps up to `count` rows, drawn among those that run in seconds, count, and have no parameter fitted to them. Returns
// the number of these candidates.
std::size_t keep_sample(std::vector<EvidenceRow>& rows, std::size_t count, std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> units = draw_units(rows);
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

}  // namespace

bool Validation::good() const {
  const auto groups = grouped(outcomes, [](const EvidenceOutcome& each) {
    return std::tuple(each.row->point.cluster, is_measured(each), each.row->point.calibration);
  });
  return std::ranges::all_of(outcomes, [](const EvidenceOutcome& each) { return each.failure.empty(); }) &&
         std::ranges::all_of(groups, [](const auto& group) {
           return !std::get<1>(group.first) || meets_goals(figures_of(group.second));
         });
}

std::string validation_summary(const Validation& validation, std::size_t width) {
  std::string text = slice_table(validation.outcomes, width) + "\n" + cluster_table(validation.outcomes, width) + "\n" +
                     kind_table(validation.outcomes, width) + "\n";
  const std::vector<BendPair> all = compare_bends(validation.curves);
  if (!all.empty()) text += bend_table(all, width) + "\n";
  return text + fitted_lines(validation.fitted) + wrap_lines(miss_lines(validation.outcomes), width) +
         missing_lines(validation.outcomes);
}

std::string validation_rows(const Validation& validation) {
  TextTable table({{"", {{"row", true}}},
                   {"figures", {{"theirs"}, {"ours"}, {"error in %"}}},
                   {"theirs expected", {{fmt::format("{} % interval", kIntervalPercent)}}},
                   {"", {{"use", true}, {"", true}}}});
  std::string heading;
  for (const EvidenceOutcome& each : validation.outcomes) {
    const EvidenceRow& row = *each.row;
    const std::string own = set_of(row.point) + (is_measured(each) ? ", " + row.point.where : "");
    if (heading != own) table.add_heading(own);
    heading = own;
    std::vector<std::string> cells{is_measured(each) ? row.point.what : row.point.id, row.point.value_text()};
    if (!each.ours) {
      table.add_note(std::move(cells), each.failure.empty() ? "not run: " + row.not_run : "FAILED: " + each.failure);
      continue;
    }
    cells.push_back(number_text(each.ours));
    cells.push_back(each.error_percent ? percent_text(*each.error_percent) : "-");
    cells.push_back(
        each.interval ? fmt::format("{}..{}", number_text(each.interval->low), number_text(each.interval->high)) : "");
    cells.push_back(use_of(row));
    cells.push_back(row.by_shape ? "shape" : "");
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string validation_page(const Validation& validation, const std::string& command) {
  return fmt::format(
      "# Simulated figures against published and measured ones\n\n"
      "Made by `{}`. Theirs: the figure of the paper or measurement (`configs/published.json`,\n"
      "`configs/measured/`); ours: the simulator's. *Calibration*: a parameter may have been fitted to the row.\n"
      "*Prediction*: no parameter names the row or its source; its interval is where theirs is expected, from errors\n"
      "of predictions of other sources. The authors of the profiles had seen all measured rows, so no row is unseen.\n"
      "Rows marked *shape* are divided by the median of their group. A bound that holds has no error. A knee is the\n"
      "first point with 90 % of the largest value. A cliff is the point after half of the fall.\n\n"
      "## Errors\n\n```\n{}```\n\n## Every row\n\n```\n{}```\n",
      command, validation_summary(validation), validation_rows(validation));
}

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
  set_not_run_reasons(rows, programs);
  Validation validation;
  std::vector<EvidenceRow> shipped = all_evidence();
  set_not_run_reasons(shipped, programs);
  validation.fitted = mark_fitted_rows(rows, shipped);
  if (options.sample > 0) {
    const std::size_t candidates = keep_sample(rows, options.sample, options.seed);
    print_format(out, "{} rows drawn from {} that run, count, and have no parameter fitted to them\n", rows.size(),
                 candidates);
  }
  const std::size_t jobs = job_count(options.jobs), runs = distinct_runs(rows).size();
  print_format(out, "{} rows, {} distinct runs, {} at a time\n", rows.size(), runs, jobs);
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
  add_intervals(validation.outcomes);
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
