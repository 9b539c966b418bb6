#include "harness/sweep/point_options.hpp"

#include <set>
#include <utility>

#include "harness/sweep/formula.hpp"

namespace verbscope {
namespace {

// Computes the formulas of one point's options.
class PointOptions {
 public:
  PointOptions(const BenchmarkSpec& spec, Json params, const std::string& where)
      : spec_(spec), params_(std::move(params)), where_(where) {}

  Json resolved() {
    const Json given = params_;
    for (const auto& [key, value] : given.items()) {
      const OptionSpec* option = spec_.find(key);
      if (option != nullptr && holds_formula(*option, value)) resolve(*option);
    }
    return params_;
  }

 private:
  std::int64_t resolve(const OptionSpec& option) {
    const std::string text = params_.at(option.name).get<std::string>();
    const std::string what = fmt::format("{}: \"{}\"", where_, option.name);
    if (!open_.insert(option.name).second) fail("{}: \"{}\" depends on itself", what, text);
    const std::int64_t value = formula_value(
        text, what, [&](const std::string& name) { return value_of(name, fmt::format("{}: \"{}\"", what, text)); });
    open_.erase(option.name);
    params_[option.name] = checked_value(option, value, fmt::format("{}: {}", where_, text));
    return value;
  }

  std::int64_t value_of(const std::string& name, const std::string& what) {
    const OptionSpec& option = spec_.require(name, what);
    const auto found = params_.find(name);
    if (found != params_.end() && holds_formula(option, *found)) return resolve(option);
    const Json& value = found != params_.end() ? *found : option.default_value;
    if (!value.is_number_integer()) {
      fail("{}: \"{}\" has no value{}", what, name, name == "clients" ? "; on hardware the hosts are the clients" : "");
    }
    return value.get<std::int64_t>();
  }

  const BenchmarkSpec& spec_;
  Json params_;
  const std::string& where_;    // of the sweep, for errors
  std::set<std::string> open_;  // options whose formulas are being computed
};

}  // namespace

bool takes_formulas(const OptionSpec& option) {
  return option.type == OptionType::integer || option.type == OptionType::bytes;
}

bool holds_formula(const OptionSpec& option, const Json& value) {
  return takes_formulas(option) && value.is_string() && is_formula(value.get<std::string>());
}

Json with_formulas_computed(const BenchmarkSpec& spec, Json params, const std::string& where) {
  return PointOptions(spec, std::move(params), where).resolved();
}

}  // namespace verbscope
