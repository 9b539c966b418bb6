#include "microbench/bench/option_table.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "common/cli.hpp"

namespace verbscope {
namespace {

template <class T>
Json shown(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
Json shown(const T& value) {
  return Json(value);
}

}  // namespace

template <class T>
void OptionTable::integer(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
                          typename detail::OptionalOf<T>::type high, const std::string& help, bool keep) {
  app_.add_option(names, value, help)->check(CLI::Range(low, high));
  add(names, "integer", Json{{"min", low}, {"max", high}}, help, [&value] { return Json(shown(value)); }).keep = keep;
}

template void OptionTable::integer(const std::string&, std::int32_t&, std::int32_t, std::int32_t, const std::string&,
                                   bool);
template void OptionTable::integer(const std::string&, std::uint32_t&, std::uint32_t, std::uint32_t, const std::string&,
                                   bool);
template void OptionTable::integer(const std::string&, std::uint64_t&, std::uint64_t, std::uint64_t, const std::string&,
                                   bool);
template void OptionTable::integer(const std::string&, std::optional<std::uint32_t>&, std::uint32_t, std::uint32_t,
                                   const std::string&, bool);
template void OptionTable::integer(const std::string&, std::optional<std::uint64_t>&, std::uint64_t, std::uint64_t,
                                   const std::string&, bool);

void OptionTable::set_by(const std::string& names, const std::function<void(const std::string&)>& set,
                         const std::string& help) {
  app_.add_option_function<std::string>(names, set, help);
}

bool OptionTable::given(const std::string& option) const {
  return app_.get_option(option)->count() > 0;
}

void OptionTable::number(const std::string& names, std::optional<double>& value, const std::string& help) {
  const std::string option = names.substr(names.find("--"));
  const auto set = [&value, option](const std::string& text) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number) || number <= 0) {
      fail_usage("{}: expected a number above 0, got \"{}\"", option, text);
    }
    value = number;
  };
  set_by(names, set, help);
  add(names, "number", "above 0", help, [&value] { return shown(value); });
}

void OptionTable::flag(const std::string& names, bool& value, const std::string& help) {
  app_.add_flag(names, value, help);
  add(names, "boolean", Json(), help, [&value] { return Json(value); });
}

void OptionTable::text(const std::string& names, std::string& value, const std::string& allowed,
                       const std::string& help, bool keep) {
  app_.add_option(names, value, help);
  add(names, "string", allowed, help, [&value] { return Json(value); }).keep = keep;
}

void OptionTable::duration(const std::string& names, std::optional<Picos>& value, const std::string& help, Zero zero) {
  const std::string option = names.substr(names.find("--"));
  const auto set = [&value, option, zero](const std::string& text) {
    value = parse_duration(text, option);
    if (zero == Zero::refused && *value == Picos(0)) fail_usage("{}: expected more than 0", option);
  };
  app_.add_option_function<std::string>(names, set, help)->type_name("TIME");
  add(names, "duration", Json{{"zero", zero == Zero::allowed}}, help,
      [&value] { return value ? Json(to_seconds(*value)) : Json(); });
}

OptionTable::Entry& OptionTable::add(const std::string& names, const std::string& type, Json allowed,
                                     const std::string& help, std::function<Json()> value) {
  Json fallback = value();
  entries_.push_back(
      Entry{names.substr(names.find("--") + 2), type, std::move(fallback), std::move(allowed), help, std::move(value)});
  return entries_.back();
}

Json OptionTable::describe(const std::string& benchmark) const {
  Json options = Json::array();
  for (const Entry& entry : entries_) {
    options.push_back(Json{{"name", entry.name},
                           {"type", entry.type},
                           {"default", entry.fallback},
                           {"allowed", entry.allowed},
                           {"help", entry.help}});
  }
  return Json{{"benchmark", benchmark}, {"options", options}};
}

Json OptionTable::values() const {
  Json values = Json::object();
  for (const Entry& entry : entries_) {
    if (entry.keep) values[entry.type == "duration" ? entry.name + "_s" : entry.name] = entry.value();
  }
  return values;
}

}  // namespace verbscope
