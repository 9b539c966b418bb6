#include "tools/calibrate/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "analysis/text_table.hpp"
#include "common/input_file.hpp"
#include "common/output_file.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/evidence/error_figures.hpp"
#include "harness/evidence/fit_rows.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"
#include "tools/calibrate/bobyqa.hpp"
#include "tools/calibrate/fit_measurer.hpp"
#include "tools/calibrate/joint_fit.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kFolds = 5;

std::vector<EvidenceRow> chosen_rows(const std::string& cluster, const JointFitName& name,
                                     const std::filesystem::path& folder) {
  std::vector<EvidenceRow> all = all_evidence(), rows;
  Programs programs(folder);
  note_not_run(all, programs);
  for (const std::size_t i : rows_to_fit(all, cluster, name)) rows.push_back(all[i]);
  return rows;
}

std::vector<double> percents(const std::vector<double>& log_errors) {
  std::vector<double> out;
  for (const double error : log_errors) out.push_back((std::exp(error) - 1) * 100);
  return out;
}

double root_mean_square(const std::vector<double>& errors) {
  return std::sqrt(std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0) /
                   static_cast<double>(errors.size()));
}

// The errors of all rows, each by the fit that left it out.
std::vector<double> left_out_errors(const JointFit& fit) {
  std::vector<double> errors(fit.all.errors.size());
  for (const Fitted& fold : fit.left_out) {
    for (std::size_t i = 0; i < fold.judged.size(); ++i) errors[fold.judged[i]] = fold.errors[i];
  }
  return errors;
}

std::string parameter_table(const std::vector<CalibratedParameter>& parameters, const JointFit& fit,
                            std::size_t width) {
  TextTable table({{"", {{"parameter", true}}}, {"value", {{"before"}, {"fitted"}}}, {"folds", {{"least"}, {"most"}}}});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<double> values;
    for (const Fitted& fold : fit.left_out) values.push_back(fold.values[i]);
    const auto [least, most] = std::ranges::minmax(values);
    table.add_row({parameters[i].name, fmt::format("{:g}", parameters[i].value), fmt::format("{:g}", fit.all.values[i]),
                   fmt::format("{:g}", least), fmt::format("{:g}", most)});
  }
  return table.text(width);
}

std::string row_table(const std::vector<EvidenceRow>& rows, const JointFit& fit, std::size_t width) {
  TextTable table({{"", {{"row", true}}}, {"", {{"theirs"}}}, {"error in %", {{"before"}, {"fit"}, {"left out"}}}});
  const auto before = percents(fit.start_errors), fitted = percents(fit.all.errors),
             left = percents(left_out_errors(fit));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.add_row({rows[i].point.id, fmt::format("{:g}", rows[i].point.value), percent_text(before[i]),
                   percent_text(fitted[i]), percent_text(left[i])});
  }
  return table.text(width);
}

std::string error_table(const JointFit& fit, std::size_t width) {
  TextTable table(
      {{"", {{"error in %", true}}}, {"", {{"median"}, {"90 %"}, {"worst"}}}, {"", {{"of the logarithms"}}}});
  const auto add = [&table](const char* name, const std::vector<double>& errors) {
    const ErrorFigures figures = error_figures(percents(errors));
    table.add_row({name, fmt::format("{:.1f}", figures.median), fmt::format("{:.1f}", figures.percentile_90),
                   fmt::format("{:.1f}", figures.worst), fmt::format("{:.4f}", root_mean_square(errors))});
  };
  add("before", fit.start_errors);
  add("fit to all rows", fit.all.errors);
  add("rows left out of their fit", left_out_errors(fit));
  return table.text(width) +
         fmt::format("rows left out are off by {:.2f} times what those of the fit are (root mean squares)\n",
                     root_mean_square(left_out_errors(fit)) / root_mean_square(fit.all.errors));
}

void tell_fit(const Fitted& fit, std::size_t rows, std::FILE* out) {
  const bool all = fit.judged.size() == rows;
  print_format(out, "{}: {} evaluations, {} by {:.4f} (root mean square of the logarithms)\n",
               all ? "fitted to all rows" : fmt::format("fitted without {} rows", fit.judged.size()), fit.evaluations,
               all ? "they are off" : "those are off", root_mean_square(fit.errors));
}

}  // namespace

int calibrate(const CalibrateOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  const std::filesystem::path path = find_config("clusters", options.cluster);
  const std::string text = read_text_file(path);
  const Json profile = parse_json_text(text, path.string());
  const auto cluster = json_value<std::string>(profile.value("name", Json()), path.string() + ": name");
  const std::vector<CalibratedParameter> parameters = calibrated_parameters(profile, path.string());
  if (parameters.empty()) fail("{}: no parameter is calibrated", path.string());
  const JointFitName name{.rows = options.rows, .seed = options.seed};
  const std::vector<EvidenceRow> rows = chosen_rows(cluster, name, folder);
  if (rows.size() < 2) fail("{}: {} rows to fit, expected 2 and more", cluster, rows.size());

  if (options.write) const OutputFile writable(path);  // known before the hours that a fit takes

  FitMeasurer measurer(rows, profile, parameters, folder, job_count(options.jobs), &interrupt);
  const LogErrors errors = [&measurer](const auto& values, const auto& places) {
    return measurer.log_errors(values, places);
  };
  std::vector<double> start;
  std::vector<std::size_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  for (const CalibratedParameter& parameter : parameters) start.push_back(parameter.value);
  const auto begin = std::chrono::steady_clock::now();
  errors(start, all);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double budget = options.hours * 3600;
  const std::chrono::duration<double> least(seconds * first_evaluations(parameters.size()));
  print_format(
      out,
      "{}: {} parameters, {}, {} rows, seed {}; a fit to all of them and {} that leave a fold out: at most {} by the "
      "clock, at least about {}\n",
      cluster, parameters.size(),
      options.known_within > 0 ? fmt::format("known within {:g} %", options.known_within) : "nothing known of them",
      rows.size(), options.seed, std::min(kFolds, rows.size()), duration_text(std::chrono::duration<double>(budget)),
      duration_text(least));
  if (least.count() > budget) fail_usage("{}: --hours {:g} is not enough: take fewer --rows", cluster, options.hours);
  const JointFit fit =
      fit_jointly(parameters,
                  {.rows = rows.size(),
                   .folds = std::min(kFolds, rows.size()),
                   .seed = options.seed,
                   .known_within = options.known_within / 100,
                   .evaluations = enough_evaluations(parameters.size()),
                   .seconds = budget - seconds,
                   .ended = [out, &rows](const Fitted& fitted) { tell_fit(fitted, rows.size(), out); }},
                  errors);
  const std::size_t width = terminal_width(out);
  print_format(out, "\n{}\n{}\n{}", row_table(rows, fit, width), parameter_table(parameters, fit, width),
               error_table(fit, width));
  if (options.write) {
    const Json changed = with_values(profile, parameters, fit.all.values);
    replace_file(path, rewritten(text, parameters, changed, name.text(), path.string()));
    print_format(out, "written: {}\n", path.string());
  } else {
    print_format(out, "nothing was written: --write puts the new values into {}\n", path.string());
  }
  return 0;
}

}  // namespace verbscope
