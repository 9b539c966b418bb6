#include "harness/evidence/measured_rows.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/points.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

// The cells of a line of CSV (RFC 4180): a cell in quotes may contain commas, and two quotes for one.
std::vector<std::string> cells_of(std::string_view line, const std::string& where) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && line.substr(i + 1).starts_with('"')) {
      cells.back() += line[++i];
    } else if (line[i] == '"' && (quoted || cells.back().empty())) {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  if (quoted) fail("{}: a quote has no end", where);
  return cells;
}

// The cell as a number if it is one, else as text.
Json cell_value(const std::string& cell) {
  if (const auto whole = number_from<std::int64_t>(cell)) return *whole;
  if (const auto number = number_from<double>(cell)) return *number;
  return cell;
}

// The value of the column for "$column", that value divided by N for "$column/N", else the value itself.
Json resolved(const Json& value, const Json& cells, const std::string& where) {
  if (!value.is_string() || !value.get<std::string>().starts_with('$')) return value;
  const std::string text = value.get<std::string>().substr(1);
  const std::size_t slash = text.find('/');
  const std::string column = text.substr(0, slash);
  if (!cells.contains(column)) fail("{}: no column \"{}\"", where, column);
  if (slash == std::string::npos) return cells.at(column);
  const auto divisor = number_from<std::int64_t>(text.substr(slash + 1)).value_or(0);
  const Json& cell = cells.at(column);
  if (divisor <= 0 || !cell.is_number_integer() || cell.get<std::int64_t>() % divisor != 0) {
    fail("{}: {}: \"{}\" has no whole quotient for {}", where, column, plain_text(cell), value.get<std::string>());
  }
  return cell.get<std::int64_t>() / divisor;
}

bool meets(const Json& when, const Json& cells) {
  return std::ranges::all_of(when.items(), [&cells](const auto& condition) {
    if (!cells.contains(condition.key())) return false;
    const std::string cell = plain_text(cells.at(condition.key()));
    return std::ranges::any_of(condition.value(), [&cell](const Json& each) {
      const auto text = each.template get<std::string>();
      return text.starts_with('~') ? cell.find(text.substr(1)) != std::string::npos : cell == text;
    });
  });
}

}  // namespace

MeasuredForms::MeasuredForms()
    : MeasuredForms(read_json_file(find_config("measured", "forms")), "measured/forms.json") {
  folder_ = find_config("measured", "forms").parent_path();
}

MeasuredForms::MeasuredForms(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  fields.optional<std::string>("comment", "");
  if (fields.require<std::string>("schema") != kMeasuredSchema) {
    fields.fail_key("schema", fmt::format("expected \"{}\"", kMeasuredSchema));
  }
  for (const Json& each : fields.require<std::vector<Json>>("forms")) {
    forms_.push_back(read_form(each, fmt::format("{}: forms[{}]", where, forms_.size())));
  }
  fields.reject_unknown();
}

MeasuredForms::Form MeasuredForms::read_form(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  Form form{.set = fields.require<std::string>("set"),
            .file = fields.require<std::string>("file"),
            .cluster = fields.require<std::string>("cluster"),
            .value = fields.require<std::string>("value"),
            .columns = fields.require<std::vector<std::string>>("columns"),
            .ignored = fields.require<std::vector<std::string>>("ignored"),
            .curves = fields.require<Json>("curves"),
            .runs = {}};
  for (const std::string& needed : {form.value, std::string("source")}) {
    if (std::ranges::count(form.columns, needed) == 0) fail("{}: no column \"{}\"", where, needed);
  }
  for (const Json& each : fields.require<std::vector<Json>>("runs")) {
    JsonFields run(each, fmt::format("{}: runs[{}]", where, form.runs.size()));
    form.runs.push_back({.when = run.optional<Json>("when", Json::object()),
                         .options = run.optional<Json>("options", Json::object()),
                         .benchmark = run.optional<std::string>("benchmark", ""),
                         .metric = run.optional<std::string>("metric", ""),
                         .cluster = run.optional<std::string>("cluster", ""),
                         .profile = run.optional<Json>("profile", Json::object()),
                         .scale = run.optional<double>("scale", 1),
                         .by_shape = run.optional<bool>("by_shape", false),
                         .not_modelled = run.optional<std::string>("not_modelled", "")});
    run.reject_unknown();
  }
  fields.reject_unknown();
  return form;
}

EvidenceRow MeasuredForms::make_row(const Form& form, const Json& cells, const std::string& where) const {
  EvidenceRow row;
  PublishedPoint& point = row.point;
  point.paper = form.set;
  point.where = plain_text(cells.at("source"));
  point.cluster = plain_text(resolved(form.cluster, cells, where));
  point.metric = form.value;
  if (!cells.at(form.value).is_number() || !(cells.at(form.value).get<double>() > 0)) {
    fail("{}: {}: expected a number above 0, got \"{}\"", where, form.value, plain_text(cells.at(form.value)));
  }
  point.value = cells.at(form.value).get<double>();
  Json options = Json::object();
  for (const Run& run : form.runs) {
    if (!meets(run.when, cells)) continue;
    if (!run.benchmark.empty()) point.run.benchmark = run.benchmark;
    if (!run.metric.empty()) point.run.result_key = run.metric;
    if (!run.cluster.empty()) point.cluster = run.cluster;
    if (!run.not_modelled.empty()) row.not_run = run.not_modelled;
    point.value *= run.scale;
    row.by_shape = row.by_shape || run.by_shape;
    for (const auto& [key, value] : run.options.items()) options[key] = resolved(value, cells, where);
    for (const auto& [key, value] : run.profile.items()) point.profile[key] = resolved(value, cells, where);
  }
  for (const auto& [key, value] : options.items()) point.run.keys.push_back({.key = key, .run = value});
  std::vector<std::string> words;
  for (const auto& [column, value] : cells.items()) {
    if (column == form.value || column == "source" || std::ranges::count(form.ignored, column) > 0) continue;
    row.columns[column] = value;
    if ("$" + column != form.cluster) words.push_back(fmt::format("{}={}", column, plain_text(value)));
  }
  point.what = fmt::format("{}", fmt::join(words, " "));
  point.id = fmt::format("{}: {}", point.where, point.what);
  row.curves = form.curves;
  return row;
}

std::vector<EvidenceRow> MeasuredForms::rows(std::string_view text, const std::string& where) const {
  std::vector<EvidenceRow> out;
  const Form* form = nullptr;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = fmt::format("{}:{}", where, ++number);
    const std::vector<std::string> cells = cells_of(text.substr(begin, end - begin), line);
    begin = end + 1;
    if (form == nullptr) {
      const auto found = std::ranges::find(forms_, cells, &Form::columns);
      if (found == forms_.end()) {
        std::vector<std::string> known;
        for (const Form& each : forms_) known.push_back(fmt::format("{} ({})", each.set, fmt::join(each.columns, ",")));
        fail("{}: unknown columns; known sets: {}", line, fmt::join(known, "; "));
      }
      form = &*found;
      continue;
    }
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != form->columns.size()) {
      fail("{}: expected {} cells, got {}", line, form->columns.size(), cells.size());
    }
    Json named = Json::object();
    for (std::size_t i = 0; i < cells.size(); ++i) named[form->columns[i]] = cell_value(cells[i]);
    out.push_back(make_row(*form, named, line));
  }
  if (form == nullptr) fail("{}: expected a line with the names of columns", where);
  return out;
}

std::vector<std::filesystem::path> MeasuredForms::files() const {
  std::vector<std::filesystem::path> out;
  for (const Form& form : forms_) out.push_back(folder_ / form.file);
  return out;
}

}  // namespace verbscope
