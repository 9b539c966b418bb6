#include "microbench/bench/option_table.hpp"

#include <CLI/CLI.hpp>
#include <cmath>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"

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
void OptionTable::bounded(const std::string& names, T& value, const std::string& type,
                          typename detail::OptionalOf<T>::type low, typename detail::OptionalOf<T>::type high,
                          const std::string& help, bool keep) {
  CLI::Option* const option = app_.add_option(names, value, help);
  if (type == "bytes") {
    option->transform(bytes_between(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)));
  } else {
    option->transform(whole_number(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
  }
  add(option, type, Json{{"min", low}, {"max", high}}, help, [&value] { return Json(shown(value)); }).keep = keep;
}

template <class T>
void OptionTable::integer(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
                          typename detail::OptionalOf<T>::type high, const std::string& help, bool keep) {
  bounded(names, value, "integer", low, high, help, keep);
}

template <class T>
void OptionTable::bytes(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
                        typename detail::OptionalOf<T>::type high, const std::string& help) {
  bounded(names, value, "bytes", low, high, help, true);
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
template void OptionTable::bytes(const std::string&, std::uint32_t&, std::uint32_t, std::uint32_t, const std::string&);
template void OptionTable::bytes(const std::string&, std::uint64_t&, std::uint64_t, std::uint64_t, const std::string&);
template void OptionTable::bytes(const std::string&, std::optional<std::uint32_t>&, std::uint32_t, std::uint32_t,
                                 const std::string&);
template void OptionTable::bytes(const std::string&, std::optional<std::uint64_t>&, std::uint64_t, std::uint64_t,
                                 const std::string&);

OptionTable::Entry& OptionTable::add_choice(const std::string& names, const std::vector<std::string>& words,
                                            const std::function<void(const std::string&)>& set, const std::string& help,
                                            std::function<Json()> value) {
  CLI::Option* const option = app_.add_option_function<std::string>(names, set, help)->transform(one_of(words));
  return add(option, "string", words, help, std::move(value));
}

void OptionTable::unsupported(const std::string& option, const std::vector<std::string>& words) {
  const auto refuse = [option, words](std::string& text) {
    const auto same = [&text](const std::string& word) { return same_word(word, text); };
    if (std::ranges::any_of(words, same)) fail_usage("{} {}: not supported", option, text);
    return std::string();
  };
  app_.get_option(option)->transform(CLI::Validator(refuse, ""));
}

bool OptionTable::given(const std::string& option) const {
  return app_.get_option(option)->count() > 0;
}

void OptionTable::restate(const std::string& option, const Json& fallback, const std::string& help) {
  CLI::Option* const known = app_.get_option(option);
  const auto entry = std::ranges::find(entries_, known->get_lnames().front(), &Entry::name);
  entry->words.fallback = fallback;
  known->default_str(default_text(entry->words));
  if (help.empty()) return;
  entry->help = help;
  known->description(help);
}

void OptionTable::offer(const std::string& option, const std::vector<std::string>& words) {
  CLI::Option* const known = app_.get_option(option);
  OptionWords& own = std::ranges::find(entries_, known->get_lnames().front(), &Entry::name)->words;
  own.allowed = words;
  known->option_text(allowed_text(own));
}

void OptionTable::number(const std::string& names, std::optional<double>& value, const std::string& help) {
  const std::string option = names.substr(names.find("--"));
  const auto set = [&value, option](const std::string& text) {
    const std::optional<double> number = number_from<double>(text);
    if (!number || !std::isfinite(*number) || *number <= 0) {
      fail_usage("{}: expected a number above 0, got \"{}\"", option, text);
    }
    value = number;
  };
  add(app_.add_option_function<std::string>(names, set, help), "number", "above 0", help,
      [&value] { return shown(value); });
}

void OptionTable::flag(const std::string& names, bool& value, const std::string& help, bool keep) {
  add(app_.add_flag(names, value, help), "boolean", Json(), help, [&value] { return Json(value); }).keep = keep;
}

void OptionTable::text(const std::string& names, std::string& value, const std::string& allowed,
                       const std::string& help, bool keep) {
  add(app_.add_option(names, value, help), "string", allowed, help, [&value] { return Json(value); }).keep = keep;
}

void OptionTable::duration(const std::string& names, std::optional<Picos>& value, const std::string& help, Zero zero) {
  const std::string option = names.substr(names.find("--"));
  const auto set = [&value, option, zero](const std::string& text) {
    value = parse_duration(text, option);
    if (zero == Zero::refused && *value == Picos(0)) fail_usage("{} {}: expected a time above 0", option, text);
  };
  add(app_.add_option_function<std::string>(names, set, help), "duration", Json{{"zero", zero == Zero::allowed}}, help,
      [&value] { return value ? Json(to_seconds(*value)) : Json(); });
}

OptionTable::Entry& OptionTable::add(CLI::Option* option, const std::string& type, Json allowed,
                                     const std::string& help, std::function<Json()> value) {
  OptionWords words{type, value(), std::move(allowed)};
  option->group(group_)->type_name(value_name(words))->option_text(allowed_text(words));
  option->default_str(default_text(words));
  const std::string letter = option->get_snames().empty() ? "" : option->get_snames().front();
  entries_.push_back(
      Entry{option->get_lnames().front(), letter, group_, help, std::move(words), std::move(value), option});
  return entries_.back();
}

Json OptionTable::describe(const std::string& benchmark, const std::string& summary, const std::string& example) const {
  Json options = Json::array();
  for (const Entry& entry : entries_) {
    options.push_back(Json{{"name", entry.name},
                           {"letter", entry.letter},
                           {"group", entry.group},
                           {"type", entry.words.type},
                           {"default", entry.words.fallback},
                           {"allowed", entry.words.allowed},
                           {"help", entry.help}});
  }
  return Json{{"benchmark", benchmark}, {"summary", summary}, {"example", example}, {"options", options}};
}

Json OptionTable::changed() const {
  Json names = Json::array();
  for (const Entry& entry : entries_) {
    if (entry.keep && entry.option->count() > 0 && entry.value() != entry.words.fallback) names.push_back(entry.name);
  }
  return names;
}

Json OptionTable::values() const {
  Json values = Json::object();
  for (const Entry& entry : entries_) {
    if (entry.keep) values[entry.words.type == "duration" ? entry.name + "_s" : entry.name] = entry.value();
  }
  return values;
}

}  // namespace verbscope
