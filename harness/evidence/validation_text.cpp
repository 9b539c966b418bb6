#include "harness/evidence/validation_text.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analysis/text_table.hpp"
#include "harness/evidence/error_figures.hpp"

namespace verbscope {
namespace {

using Rows = std::vector<const EvidenceOutcome*>;

std::string use_of(const EvidenceRow& row) {
  return row.point.calibration ? "calibration" : "prediction";
}

bool is_measured(const EvidenceOutcome& outcome) {
  return !outcome.row->columns.empty();
}

ErrorFigures figures_of(const Rows& rows) {
  std::vector<double> errors;
  for (const EvidenceOutcome* each : rows) errors.push_back(*each->error_percent);
  return error_figures(errors);
}

// The rows with an error, by what `key` makes of them.
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
  // A published paper is one slice; a measured set has one for each source.
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

bool keeps_goals(const ErrorFigures& figures) {
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
    cells.push_back(!measured ? "" : keeps_goals(figures) ? "kept" : "NOT kept");
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

std::string number_or_none(const std::optional<double>& value) {
  return value ? fmt::format("{:g}", *value) : "none";
}

std::string bend_table(const std::vector<Bend>& all, std::size_t width) {
  TextTable table({{"", {{"", true}, {"along", true}}},
                   {"at", {{"theirs"}, {"ours"}}},
                   {"", {{"", true}}},
                   {"", {{"curve", true}}}});
  for (const Bend& bend : all) {
    table.add_row({bend.kind, bend.curve->along, number_or_none(bend.theirs), number_or_none(bend.ours), bend.verdict(),
                   bend.curve->name()});
  }
  const auto near = std::ranges::count_if(all, &Bend::near);
  return table.text(width) + fmt::format("{} of {} knees and cliffs within one step of the sweep\n", near, all.size());
}

std::string fitted_lines(const std::vector<FittedCluster>& fitted) {
  std::string text;
  for (const FittedCluster& each : fitted) {
    text += fmt::format("{}: {} free parameters were fitted, to {} rows\n", each.cluster, each.parameters, each.rows);
  }
  return text;
}

// The rows without a figure: how many for each reason and set, those that failed one by one.
std::string missing_lines(const std::vector<EvidenceOutcome>& outcomes) {
  std::map<std::string, std::size_t> reasons;
  std::string failed;
  for (const EvidenceOutcome& each : outcomes) {
    const EvidenceRow& row = *each.row;
    const std::string set = fmt::format("{} on {}", row.point.paper, row.point.cluster);
    if (!row.not_run.empty()) ++reasons[fmt::format("{}: {}", set, row.not_run)];
    if (!each.uncounted.empty()) ++reasons[fmt::format("{}: run, not counted: {}", set, each.uncounted)];
    if (!each.failure.empty()) failed += fmt::format("FAILED: {}\n", each.failure);
  }
  std::string text = failed;
  for (const auto& [reason, rows] : reasons)
    text += fmt::format("not run: {} row{} of {}\n", rows, rows == 1 ? "" : "s", reason);
  return text;
}

}  // namespace

bool Validation::good() const {
  const auto groups = grouped(outcomes, [](const EvidenceOutcome& each) {
    return std::tuple(each.row->point.cluster, is_measured(each), each.row->point.calibration);
  });
  return std::ranges::all_of(outcomes, [](const EvidenceOutcome& each) { return each.failure.empty(); }) &&
         std::ranges::all_of(groups, [](const auto& group) {
           return !std::get<1>(group.first) || keeps_goals(figures_of(group.second));
         });
}

std::string validation_summary(const Validation& validation, std::size_t width) {
  std::string text = slice_table(validation.outcomes, width) + "\n" + cluster_table(validation.outcomes, width) + "\n";
  const std::vector<Bend> all = bends(validation.curves);
  if (!all.empty()) text += bend_table(all, width) + "\n";
  return text + fitted_lines(validation.fitted) + missing_lines(validation.outcomes);
}

std::string validation_rows(const Validation& validation) {
  TextTable table(
      {{"", {{"row", true}}}, {"figures", {{"theirs"}, {"ours"}, {"error in %"}}}, {"", {{"use", true}, {"", true}}}});
  std::string heading;
  for (const EvidenceOutcome& each : validation.outcomes) {
    const EvidenceRow& row = *each.row;
    const std::string own =
        fmt::format("{} on {}{}", row.point.paper, row.point.cluster, is_measured(each) ? ", " + row.point.where : "");
    if (heading != own) table.add_heading(own);
    heading = own;
    std::vector<std::string> cells{is_measured(each) ? row.point.what : row.point.id, row.point.value_text()};
    if (!each.ours) {
      table.add_note(std::move(cells), each.failure.empty() ? "not run: " + row.not_run : "FAILED: " + each.failure);
      continue;
    }
    cells.push_back(number_text(each.ours));
    cells.push_back(each.error_percent ? percent_text(*each.error_percent) : "-");
    cells.push_back(use_of(row));
    cells.push_back(row.by_shape ? "shape" : "");
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string validation_page(const Validation& validation, const std::string& command) {
  return fmt::format(
      "# Simulated figures against published and measured ones\n\n"
      "Made by `{}`; not written by hand. Theirs is what the paper or the measurement\n"
      "has (`configs/published.json`, `configs/measured/`), ours the simulator's. *Calibration* says that a parameter "
      "may have\n"
      "been fitted to the row, *prediction* that no parameter names it or its source; but whoever chose the values had "
      "seen all\n"
      "measured rows, so that none of these is unseen. Rows marked *shape* count divided by the median of their "
      "source and\n"
      "cluster. A bound that holds has no error. A knee is where a curve has 90 % of its largest value, a cliff where "
      "half of its\n"
      "fall is done.\n\n"
      "## Errors\n\n```\n{}```\n\n## Every row\n\n```\n{}```\n",
      command, validation_summary(validation), validation_rows(validation));
}

}  // namespace verbscope
