#include "tools/calibrate/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "analysis/text_table.hpp"
#include "common/files.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "harness/evidence/calibration.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/process/stop.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/sweep/progress.hpp"
#include "tools/calibrate/joint_fit.hpp"
#include "tools/calibrate/parameters.hpp"

namespace verbscope {
namespace {

constexpr double kFailedLogError = 2.302585;  // ln 10

// The status of a record and the numbers of its result: all that an error needs.
Record without_details(const Record& record) {
  Record out;
  out.status = record.status;
  out.reason = record.reason;
  for (const auto& [key, value] : record.result.items()) {
    if (value.is_number()) out.result[key] = value;
  }
  return out;
}

double log_error(const EvidenceOutcome& outcome) {
  if (!outcome.failure.empty()) return kFailedLogError;
  return outcome.error_percent ? std::log(std::max(0.001, 1 + *outcome.error_percent / 100)) : 0;
}

constexpr std::size_t kFolds = 5;

std::vector<EvidenceRow> chosen_rows(const std::string& cluster, const JointFitName& name,
                                     const std::filesystem::path& folder) {
  std::vector<EvidenceRow> all = all_evidence(), rows;
  Programs programs(folder);
  set_not_run_reasons(all, programs);
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

// The error of each row in the fit that left it out.
std::vector<double> left_out_errors(const JointFit& fit) {
  std::vector<double> errors(fit.all.errors.size());
  for (const FitResult& fold : fit.left_out) {
    for (std::size_t i = 0; i < fold.tested.size(); ++i) errors[fold.tested[i]] = fold.errors[i];
  }
  return errors;
}

std::string parameter_table(const std::vector<FitParameter>& parameters, const JointFit& fit, std::size_t width) {
  TextTable table({{"", {{"parameter", true}}}, {"value", {{"before"}, {"fitted"}}}, {"folds", {{"least"}, {"most"}}}});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<double> values;
    for (const FitResult& fold : fit.left_out) values.push_back(fold.values[i]);
    const auto [least, most] = std::ranges::minmax(values);
    table.add_row({parameters[i].name, fmt::format("{:g}", parameters[i].start), fmt::format("{:g}", fit.all.values[i]),
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
      {{"", {{"error in %", true}}}, {"", {{"median"}, {"90 %"}, {"worst"}}}, {"", {{"RMS of logarithms"}}}});
  const auto add = [&table](const char* name, const std::vector<double>& errors) {
    const ErrorFigures figures = error_figures(percents(errors));
    table.add_row({name, fmt::format("{:.1f}", figures.median), fmt::format("{:.1f}", figures.percentile_90),
                   fmt::format("{:.1f}", figures.worst), fmt::format("{:.4f}", root_mean_square(errors))});
  };
  add("before", fit.start_errors);
  add("fit to all rows", fit.all.errors);
  add("rows left out of their fit", left_out_errors(fit));
  return table.text(width) + fmt::format("error of rows left out / error of fitted rows: {:.2f} (root mean squares)\n",
                                         root_mean_square(left_out_errors(fit)) / root_mean_square(fit.all.errors));
}

void print_fit(const FitResult& fit, std::size_t rows, std::FILE* out) {
  const bool all = fit.tested.size() == rows;
  print_format(out, "{}: {} evaluations, {} {:.4f} (root mean square of the logarithms)\n",
               all ? "fitted to all rows" : fmt::format("fitted without {} rows", fit.tested.size()), fit.evaluations,
               all ? "error" : "error of those rows", root_mean_square(fit.errors));
}

}  // namespace

FitMeasurer::FitMeasurer(std::vector<EvidenceRow> rows, Json profile, std::vector<FitParameter> parameters,
                         std::filesystem::path folder, std::size_t jobs, StopSource* stop)
    : rows_(std::move(rows)),
      profile_(std::move(profile)),
      parameters_(std::move(parameters)),
      folder_(std::move(folder)),
      jobs_(jobs),
      stop_(stop) {}

std::vector<double> FitMeasurer::log_errors(const std::vector<double>& values, const std::vector<std::size_t>& rows) {
  std::map<std::string, Record>& known = records_[values];
  std::vector<EvidenceRow> chosen, missing;
  for (const std::size_t i : rows) {
    chosen.push_back(rows_[i]);
    const auto runs = runs_of(rows_[i].point);
    const bool all_known =
        std::ranges::all_of(runs, [&known](const RowRun& run) { return known.contains(run.identity()); });
    if (!all_known) missing.push_back(rows_[i]);
  }
  if (!missing.empty()) {
    const std::string file =
        temp_.write(missing.front().point.cluster + ".json", with_values(profile_, parameters_, values).dump(2) + "\n");
    const auto records = run_evidence(missing, {.folder = folder_,
                                                .jobs = jobs_,
                                                .stop = stop_,
                                                .fabric = [&file](const std::string&) { return "sim:" + file; },
                                                .finished = {}});
    for (const auto& [identity, record] : records) known.insert_or_assign(identity, without_details(record));
  }
  std::vector<double> errors;
  for (const EvidenceOutcome& outcome : evidence_outcomes(chosen, known)) errors.push_back(log_error(outcome));
  return errors;
}

int calibrate(const CalibrateOptions& options, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  const std::filesystem::path path = find_config("clusters", options.cluster);
  const std::string text = read_text_file(path);
  const Json profile = parse_json_text(text, path.string());
  const auto cluster = json_value<std::string>(profile.value("name", Json()), path.string() + ": name");
  const std::vector<CalibratedParameter> calibrated = calibrated_parameters(profile, path.string());
  const std::vector<FitParameter> parameters = fit_parameters(calibrated);
  if (parameters.empty()) fail("{}: no parameter is calibrated", path.string());
  const JointFitName name{.rows = options.rows, .seed = options.seed};
  const std::vector<EvidenceRow> rows = chosen_rows(cluster, name, folder);
  if (rows.size() < 2) fail("{}: {} rows to fit, expected at least 2", cluster, rows.size());

  if (options.write) const OutputFile writable(path);  // fails now rather than after hours

  FitMeasurer measurer(rows, profile, parameters, folder, job_count(options.jobs), &interrupt);
  const LogErrors errors = [&measurer](const auto& values, const auto& indexes) {
    return measurer.log_errors(values, indexes);
  };
  std::vector<double> start;
  std::vector<std::size_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  for (const FitParameter& parameter : parameters) start.push_back(parameter.start);
  const auto begin = std::chrono::steady_clock::now();
  errors(start, all);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double budget = options.hours * 3600;
  const std::chrono::duration<double> least(seconds * first_evaluations(parameters.size()));
  print_format(
      out,
      "{}: {} parameters, {}, {} rows, seed {}; one fit to all rows and {} fits without one fold each: at most {}, at "
      "least about {}\n",
      cluster, parameters.size(),
      options.known_within > 0 ? fmt::format("known within {:g} %", options.known_within) : "no known values",
      rows.size(), options.seed, std::min(kFolds, rows.size()), duration_text(std::chrono::duration<double>(budget)),
      duration_text(least));
  if (least.count() > budget)
    fail_usage("{}: --hours {:g} is too short for a fit: use fewer --rows", cluster, options.hours);
  const JointFit fit =
      fit_jointly(parameters,
                  {.rows = rows.size(),
                   .folds = std::min(kFolds, rows.size()),
                   .seed = options.seed,
                   .known_within = options.known_within / 100,
                   .seconds = budget - seconds,
                   .ended = [out, &rows](const FitResult& fitted) { print_fit(fitted, rows.size(), out); }},
                  errors);
  const std::size_t width = terminal_width(out);
  print_format(out, "\n{}\n{}\n{}", row_table(rows, fit, width), parameter_table(parameters, fit, width),
               error_table(fit, width));
  if (options.write) {
    const Json changed = with_values(profile, parameters, fit.all.values);
    replace_file(path, replace_parameters(text, calibrated, changed, name.text(), path.string()));
    print_format(out, "written: {}\n", path.string());
  } else {
    print_format(out, "nothing written: use --write to store the new values in {}\n", path.string());
  }
  return 0;
}

}  // namespace verbscope
