#include "harness/paper/recalibrate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace verbscope {
namespace {

using Pointer = nlohmann::json_pointer<std::string>;

// The largest change of a parameter in one step, and the smallest change of the logarithm of a rate that counts.
constexpr double kLargestStep = 1.4;  // in the logarithm: a factor of 4
constexpr double kInsensitive = 1e-5;

void collect(const Json& node, const Pointer& at, const std::string& name, const std::string& where,
             std::vector<CalibratedParameter>& out) {
  if (!node.is_object()) return;
  if (node.contains("value") && node.value("source", Json()) == "calibrated") {
    const std::string what = where + ": " + name;
    JsonFields fields(node, what);
    const Json& value = fields.at("value");
    if (!value.is_number() || !(value.get<double>() > 0)) fields.fail_key("value", "expected a number above 0 to fit");
    out.push_back({.pointer = at / "value",
                   .name = name,
                   .row = fields.require<std::string>("row"),
                   .integer = value.is_number_integer()});
    return;
  }
  for (const auto& [key, child] : node.items()) {
    collect(child, at / key, name.empty() ? key : name + "." + key, where, out);
  }
}

// Rounds a value as it is written, so that the rounded value is the one measured: whole numbers, or five digits.
double rounded(double value, bool integer) {
  return integer ? std::max(1.0, std::round(value)) : std::stod(fmt::format("{:.5g}", value));
}

Json parameter_json(double value, bool integer) {
  return integer ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

// Fits one parameter to one row. x is the logarithm of the parameter, g(x) that of measured over published.
class Solver {
 public:
  Solver(const std::function<double(double)>& rate, double target, bool integer, const FitOptions& options)
      : rate_(rate), target_(target), integer_(integer), options_(options) {}

  // The best value found from `start` on, and in `note` why it is not good enough, if so.
  double solve(double start, std::string& note) {
    Sample a = sample(std::log(start));
    if (good(a)) return std::exp(a.x);
    std::optional<Sample> b = find_slope(a);
    if (!b) {
      note = "the rate does not depend on the parameter here";
      return start;
    }
    Sample c = *b;
    for (int step = 0; step < options_.steps && !good(best_); ++step) {
      const double x = next(a, c);
      if (std::ranges::any_of(samples_, [&](const auto& s) { return s.first == quantised(x); })) break;
      a = std::exchange(c, sample(x));
    }
    if (!good(best_)) note = "no better value found";
    return std::exp(best_.x);
  }

 private:
  struct Sample {
    double x = 0, g = 0;
  };

  bool good(const Sample& s) const { return std::abs(s.g) <= options_.tolerance; }
  double quantised(double x) const { return rounded(std::exp(x), integer_); }

  Sample sample(double x) {
    const double value = quantised(x);
    const auto known = samples_.find(value);
    const double g = known != samples_.end() ? known->second : std::log(rate_(value) / target_);
    const bool first = samples_.empty();
    samples_[value] = g;
    const Sample out{.x = std::log(value), .g = g};
    if (first || std::abs(g) < std::abs(best_.g)) best_ = out;
    if (g > 0 && (!above_ || std::abs(g) < above_->g)) above_ = out;
    if (g < 0 && (!below_ || std::abs(g) < -below_->g)) below_ = out;
    return out;
  }

  // A second sample where the rate differs from the first's: close by, or on either side of a plateau.
  std::optional<Sample> find_slope(const Sample& a) {
    for (const double step : {0.05, 0.4, -0.4, 1.1, -1.1}) {
      const Sample b = sample(a.x + step);
      if (std::abs(b.g - a.g) > kInsensitive) return b;
    }
    return std::nullopt;
  }

  // The secant's zero, no further than kLargestStep; the middle of the bracket when it falls outside.
  double next(const Sample& a, const Sample& c) const {
    const double slope = (c.g - a.g) / (c.x - a.x);
    double x = std::abs(c.g - a.g) > kInsensitive ? c.x - c.g / slope : c.x;
    x = std::clamp(x, best_.x - kLargestStep, best_.x + kLargestStep);
    if (!above_ || !below_) return x;
    const auto [low, high] = std::minmax(above_->x, below_->x);
    return x > low && x < high ? x : (low + high) / 2;
  }

  const std::function<double(double)>& rate_;
  double target_;
  bool integer_;
  const FitOptions& options_;
  std::map<double, double> samples_;  // by parameter value
  Sample best_;
  std::optional<Sample> above_, below_;
};

// The place in `text` of the parameter's number, found behind the keys of its path, one after the other.
std::pair<std::size_t, std::size_t> find_value(const std::string& text, const std::string& name,
                                               const std::string& where) {
  std::size_t at = 0;
  std::string rest = name + ".value";
  while (!rest.empty()) {
    const std::string key = '"' + rest.substr(0, rest.find('.')) + '"';
    rest.erase(0, std::min(rest.find('.'), rest.size() - 1) + 1);
    while (true) {
      at = text.find(key, at);
      if (at == std::string::npos) fail("{}: cannot find {} in the text", where, name);
      at += key.size();
      const std::size_t colon = text.find_first_not_of(" \t\r\n", at);
      if (colon != std::string::npos && text[colon] == ':') {
        at = colon + 1;
        break;
      }
    }
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n", at);
  return {begin, std::min(text.find_first_of(",} \t\r\n", begin), text.size())};
}

}  // namespace

std::vector<CalibratedParameter> calibrated_parameters(const Json& profile, const std::string& where) {
  std::vector<CalibratedParameter> out;
  collect(profile, Pointer(), "", where, out);
  return out;
}

std::vector<FittedRow> recalibrate(Json& profile, const std::vector<CalibratedParameter>& parameters,
                                   const std::vector<PublishedPoint>& rows, const MeasureRow& measure,
                                   const FitOptions& options) {
  std::set<std::string> named;
  for (const CalibratedParameter& parameter : parameters) {
    if (!named.insert(parameter.row).second)
      fail("{}: another parameter is fitted to {} already", parameter.name, parameter.row);
  }
  std::vector<FittedRow> fits;
  std::vector<const CalibratedParameter*> fitted_by;
  for (const PublishedPoint& row : rows) {
    if (!row.reproducible() || row.benchmark.empty()) continue;
    const auto parameter = std::ranges::find(parameters, row.id, &CalibratedParameter::row);
    FittedRow fit;
    fit.row = &row;
    fit.before = fit.after = measure(profile, row);
    fitted_by.push_back(parameter == parameters.end() ? nullptr : &*parameter);
    if (fitted_by.back() != nullptr) {
      if (!row.calibration) fail("{} is fitted to {}, which is a prediction", parameter->name, row.id);
      fit.parameter = parameter->name;
      fit.old_value = fit.new_value = profile.at(parameter->pointer).get<double>();
    }
    fits.push_back(fit);
  }
  const auto off = [&options](const FittedRow& fit) {
    return !fit.parameter.empty() && std::abs(std::log(fit.after / fit.row->value)) > options.tolerance;
  };
  for (int round = 0; round < options.rounds && std::ranges::any_of(fits, off); ++round) {
    for (std::size_t i = 0; i < fits.size(); ++i) {
      if (fitted_by[i] == nullptr) continue;
      const CalibratedParameter& parameter = *fitted_by[i];
      const std::function<double(double)> rate = [&](double value) {
        Json changed = profile;
        changed[parameter.pointer] = parameter_json(value, parameter.integer);
        return measure(changed, *fits[i].row);
      };
      fits[i].note.clear();
      const double start = profile.at(parameter.pointer).get<double>();
      try {
        Solver solver(rate, fits[i].row->value, parameter.integer, options);
        fits[i].new_value = rounded(solver.solve(start, fits[i].note), parameter.integer);
      } catch (const Error& error) {  // a value that the profile may not have: the old one worked
        fits[i].new_value = start;
        fits[i].note = error.what();
      }
      profile[parameter.pointer] = parameter_json(fits[i].new_value, parameter.integer);
    }
    for (FittedRow& fit : fits) fit.after = measure(profile, *fit.row);
  }
  return fits;
}

std::string with_values(std::string text, const std::vector<CalibratedParameter>& parameters, const Json& profile,
                        const std::string& where) {
  for (const CalibratedParameter& parameter : parameters) {
    const auto [begin, end] = find_value(text, parameter.name, where);
    text.replace(begin, end - begin, dump_json(profile.at(parameter.pointer)));
  }
  if (parse_json_text(text, where) != profile) fail("{}: cannot place the new values in the text", where);
  return text;
}

}  // namespace verbscope
