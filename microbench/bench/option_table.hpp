// The one list of a benchmark's options: it feeds the command line, --describe for the harness, and the record's
// config.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/help.hpp"
#include "common/json.hpp"
#include "common/units.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace verbscope {

namespace detail {
template <class T>
struct OptionalOf {
  using type = T;
};
template <class T>
struct OptionalOf<std::optional<T>> {
  using type = T;
};
}  // namespace detail

// Options register a name ("-s,--size", long names with `_`), the variable they set, what is allowed, and a help text.
// The variable's value at that time is the default; an empty std::optional says that the program chooses. The variables
// must outlive the table.
class OptionTable {
 public:
  explicit OptionTable(CLI::App& app) : app_(app) {}

  // Options that are registered from here on stand under this title in --help: "The operation".
  void group(const std::string& title) { group_ = title; }

  // A whole number from `low` to `high`. T is an integer or an optional of one; option_table.cpp lists those that there
  // are. `keep` false keeps it out of the record.
  template <class T>
  void integer(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
               typename detail::OptionalOf<T>::type high, const std::string& help, bool keep = true);
  // The same for a number of bytes, which may be given as 4k, 2M or 1G (parse_bytes).
  template <class T>
  void bytes(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
             typename detail::OptionalOf<T>::type high, const std::string& help);

  // A number above 0.
  void number(const std::string& names, std::optional<double>& value, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help, bool keep = true);
  // `allowed` is a sentence about the text; `keep` as above.
  void text(const std::string& names, std::string& value, const std::string& allowed, const std::string& help,
            bool keep = true);
  enum class Zero { refused, allowed };
  // A time with a unit; the record has it in seconds under NAME_s.
  void duration(const std::string& names, std::optional<Picos>& value, const std::string& help,
                Zero zero = Zero::refused);

  // One of a list of words, each with its meaning; it is taken in either case.
  template <class E>
  void choice(const std::string& names, E& value, const std::vector<std::pair<std::string, E>>& words,
              const std::string& help) {
    std::vector<std::string> allowed;
    for (const auto& word : words) allowed.push_back(word.first);
    const auto set = [&value, words](const std::string& text) {
      value = std::ranges::find(words, text, &std::pair<std::string, E>::first)->second;
    };
    add_choice(names, allowed, set, help, [&value, words] {
      for (const auto& [name, meaning] : words) {
        if (meaning == value) return Json(name);
      }
      return Json();
    });
  }

  // Says of an option that is registered, in --help and describe(), what this benchmark makes of it: `fallback` is its
  // default, null where the program chooses. `help` empty: as it was.
  void restate(const std::string& option, const Json& fallback, const std::string& help = "");

  // Of a choice that is registered: the words that make sense in this benchmark. Others are accepted, for the plan to
  // refuse with its reason.
  void offer(const std::string& option, const std::vector<std::string>& words);
  // The same where the program chooses when it is not given; it stays out of the record.
  template <class E>
  void optional_choice(const std::string& names, std::optional<E>& value,
                       const std::vector<std::pair<std::string, E>>& words, const std::string& help) {
    std::vector<std::string> allowed;
    for (const auto& word : words) allowed.push_back(word.first);
    const auto set = [&value, words](const std::string& text) {
      value = std::ranges::find(words, text, &std::pair<std::string, E>::first)->second;
    };
    add_choice(names, allowed, set, help, [] { return Json(); }).keep = false;
  }
  // Words of other tools for an option that was registered: they are refused by name.
  void unsupported(const std::string& option, const std::vector<std::string>& words);

  // Whether the person gave it, be it with the default's value: "--size".
  bool given(const std::string& option) const;

  // {"benchmark", "summary", "example", "options": [{"name", "group", "type", "default", "allowed", "help"}]};
  // `example` are the options of a command line that shows what the benchmark is for.
  Json describe(const std::string& benchmark, const std::string& summary, const std::string& example) const;
  // {"size": 64, ...}: the values now, in the order of registration; null where the program chooses.
  Json values() const;
  // The names of the options that were given with another value than their default: ["size"].
  Json changed() const;

 private:
  struct Entry {
    std::string name, letter, group, help;
    OptionWords words;
    std::function<Json()> value;
    const CLI::Option* option = nullptr;
    bool keep = true;
  };

  template <class T>
  void bounded(const std::string& names, T& value, const std::string& type, typename detail::OptionalOf<T>::type low,
               typename detail::OptionalOf<T>::type high, const std::string& help, bool keep);
  // `set` is called with the one of `words` that was given.
  Entry& add_choice(const std::string& names, const std::vector<std::string>& words,
                    const std::function<void(const std::string&)>& set, const std::string& help,
                    std::function<Json()> value);
  // Gives `option` its place and its words in --help, and the table its entry.
  Entry& add(CLI::Option* option, const std::string& type, Json allowed, const std::string& help,
             std::function<Json()> value);

  CLI::App& app_;
  std::string group_ = "Options";
  std::vector<Entry> entries_;
};

}  // namespace verbscope
