#include "harness/sweep/formula.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <utility>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMaxLength = 200;  // bounds the depth of the recursion

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Recursive descent parser: sum = product {+|- product}, product = factor {*|/ factor}, factor = name | number | (sum).
// Without `value_of` it checks the syntax only.
class Formula {
 public:
  using ValueOf = std::function<std::int64_t(const std::string&)>;

  Formula(std::string_view text, const std::string& where, const ValueOf& value_of)
      : text_(text), rest_(text), where_(where), value_of_(value_of) {}

  std::int64_t value() {
    if (text_.size() > kMaxLength) refuse(fmt::format("longer than {} characters", kMaxLength));
    const std::int64_t value = sum();
    if (peek() != '\0') refuse(fmt::format("expected an operator at \"{}\"", rest_));
    return value;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const { fail("{}: \"{}\": {}", where_, text_, why); }

  // The next non-blank character; 0 at the end.
  char peek() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }

  std::int64_t sum() {
    std::int64_t value = product();
    for (char c = peek(); c == '+' || c == '-'; c = peek()) {
      rest_.remove_prefix(1);
      const std::int64_t other = product();
      const bool too_large =
          c == '+' ? __builtin_add_overflow(value, other, &value) : __builtin_sub_overflow(value, other, &value);
      if (too_large) refuse("the result is too large");
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    for (char c = peek(); c == '*' || c == '/'; c = peek()) {
      rest_.remove_prefix(1);
      const std::int64_t other = factor();
      if (c == '/') {
        value = quotient(value, other);
      } else if (__builtin_mul_overflow(value, other, &value)) {
        refuse("the result is too large");
      }
    }
    return value;
  }

  std::int64_t quotient(std::int64_t value, std::int64_t by) const {
    if (!value_of_) return 1;
    if (by == 0) refuse(fmt::format("division of {} by 0", value));
    if (by == -1) refuse("division by -1");  // the smallest integer would overflow
    if (value % by != 0) refuse(fmt::format("{} / {} leaves a remainder", value, by));
    return value / by;
  }

  std::int64_t factor() {
    const char c = peek();
    if (c == '(') {
      rest_.remove_prefix(1);
      const std::int64_t value = sum();
      if (peek() != ')') refuse("a parenthesis is not closed");
      rest_.remove_prefix(1);
      return value;
    }
    if (is_letter(c)) return option();
    if (is_digit(c)) return number();
    refuse(c == '\0' ? "it ends where a value is expected"
                     : fmt::format("expected an option, a whole number or ( at \"{}\"", rest_));
  }

  std::int64_t option() {
    const auto end = std::ranges::find_if_not(rest_, [](char c) { return is_letter(c) || is_digit(c); });
    const std::string name(rest_.begin(), end);
    rest_.remove_prefix(name.size());
    names_.push_back(name);
    return value_of_ ? value_of_(name) : 1;
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse("a number is too large");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view text_, rest_;
  const std::string& where_;
  const ValueOf& value_of_;
  std::vector<std::string> names_;
};

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
    const Formula::ValueOf other = [&](const std::string& name) {
      return value_of(name, fmt::format("{}: \"{}\"", what, text));
    };
    const std::int64_t value = Formula(text, what, other).value();
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
      fail("{}: \"{}\" has no value{}", what, name,
           name == "clients" ? "; on hardware, the hosts file gives the number of clients" : "");
    }
    return value.get<std::int64_t>();
  }

  const BenchmarkSpec& spec_;
  Json params_;
  const std::string& where_;    // of the sweep, for errors
  std::set<std::string> open_;  // options whose formulas are being computed
};

}  // namespace

bool is_formula(std::string_view text) {
  return !text.empty() && (is_letter(text.front()) || text.find_first_of(" +*/(") != std::string_view::npos ||
                           text.find('-', 1) != std::string_view::npos);
}

std::vector<std::string> formula_names(std::string_view text, const std::string& where) {
  const Formula::ValueOf form_only;
  Formula formula(text, where, form_only);
  formula.value();
  return formula.names();
}

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
