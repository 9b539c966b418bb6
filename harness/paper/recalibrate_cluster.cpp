#include "harness/paper/recalibrate_cluster.hpp"

#include <algorithm>

#include "analysis/text_table.hpp"
#include "common/paths.hpp"
#include "harness/paper/recalibrate.hpp"
#include "harness/paper/row_runner.hpp"
#include "harness/process/text_file.hpp"

namespace verbscope {
namespace {

// Measures rows with the real benchmarks, on a copy of the profile that carries its name.
class RowMeasurer {
 public:
  RowMeasurer(std::filesystem::path folder, std::string cluster, Interrupt& interrupt)
      : folder_(std::move(folder)), profile_(temp_.file(cluster + ".json")), interrupt_(interrupt) {}

  double operator()(const Json& profile, const PublishedPoint& row) {
    replace_text_file(profile_, profile.dump(2) + "\n");
    const std::optional<Record> record = run_row(row, "sim:" + profile_, folder_, &interrupt_);
    if (!record) throw InterruptedError("interrupted: nothing was written");
    const double value = row_value(row, *record);
    fmt::print(stderr, "  {}: {:.2f} (published {:g})\n", row.id, value, row.value);
    return value;
  }

 private:
  std::filesystem::path folder_;
  TempFolder temp_;
  std::string profile_;
  Interrupt& interrupt_;
};

std::string fit_table(const std::vector<FittedRow>& fits) {
  TextTable table({{"published row", {{"", true}}},
                   {"rate", {{"published"}, {"before"}, {"after"}, {"off by %"}}},
                   {"parameter", {{"", true}, {"old"}, {"new"}}}});
  for (const FittedRow& fit : fits) {
    std::vector<std::string> cells{fit.row->id, fmt::format("{:g}", fit.row->value), fmt::format("{:.2f}", fit.before),
                                   fmt::format("{:.2f}", fit.after),
                                   percent_text(deviation_percent(fit.after, fit.row->value))};
    if (fit.parameter.empty()) {
      table.add_note(std::move(cells), "none: the row only checks");
      continue;
    }
    cells.push_back(fit.parameter);
    cells.push_back(fmt::format("{:g}", fit.old_value));
    cells.push_back(fmt::format("{:g}{}", fit.new_value, fit.note.empty() ? "" : "  " + fit.note));
    table.add_row(std::move(cells));
  }
  return table.text();
}

void print_unreproducible(const std::vector<PublishedPoint>& rows, std::FILE* out) {
  for (const PublishedPoint& row : rows) {
    if (!row.reproducible()) fmt::print(out, "not reproducible yet: {}: needs {}\n", row.id, row.needs);
  }
}

}  // namespace

int recalibrate_cluster(const std::string& cluster, bool write, const std::filesystem::path& folder, std::FILE* out) {
  Interrupt interrupt;
  const std::filesystem::path path = find_config("clusters", cluster);
  const std::string text = read_text_file(path);
  Json profile = parse_json_text(text, path.string());
  const std::string name = json_value<std::string>(profile.value("name", Json()), path.string() + ": name");
  const std::vector<CalibratedParameter> all = calibrated_parameters(profile, path.string());
  std::vector<PublishedPoint> rows = load_published();
  std::erase_if(rows, [&name](const PublishedPoint& row) { return row.cluster != name; });
  std::vector<CalibratedParameter> fitted;
  for (const CalibratedParameter& parameter : all) {
    const auto row = std::ranges::find(rows, parameter.row, &PublishedPoint::id);
    if (row == rows.end())
      fail("{}: {}: no published row of {} is called \"{}\"", path.string(), parameter.name, name, parameter.row);
    if (row->reproducible() && !row->benchmark.empty()) fitted.push_back(parameter);
  }
  RowMeasurer measurer(folder, name, interrupt);
  const auto fits = recalibrate(profile, fitted, rows, std::ref(measurer), FitOptions{});
  fmt::print(out, "{}", fit_table(fits));
  print_unreproducible(rows, out);
  if (write) {
    replace_text_file(path, with_values(text, fitted, profile, path.string()));
    fmt::print(out, "written: {}\n", path.string());
  } else {
    fmt::print(out, "nothing was written: --write puts the new values into {}\n", path.string());
  }
  return 0;
}

}  // namespace verbscope
