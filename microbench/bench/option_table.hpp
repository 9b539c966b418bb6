// The list of a benchmark's options, used for the command line, for --describe (read by the harness), and for `config`
// in the record.
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

// An option has a name ("-s,--size", long names with `_`), the variable that it sets, the allowed values, and a help
// text. The value of the variable at registration is the default; with an empty std::optional the program chooses. The
// variables must outlive the table.
class OptionTable {
 public:
  explicit OptionTable(CLI::App& app) : app_(app) {}

  // Sets the --help group of the options that are registered next: "The operation".
  void group(const std::string& title) { group_ = title; }

  // A whole number from `low` to `high`. T is an integer or an optional of one; option_table.cpp lists the instances.
  // `keep` false: the option is not in the record.
  template <class T>
  void integer(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
               typename detail::OptionalOf<T>::type high, const std::string& help, bool keep = true);
  // A number of bytes, also with a unit: 4k, 2M or 1G (parse_bytes).
  template <class T>
  void bytes(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
             typename detail::OptionalOf<T>::type high, const std::string& help);

  // A number above 0.
  void number(const std::string& names, std::optional<double>& value, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help, bool keep = true);
  // `allowed`: a phrase about the allowed texts; `keep` as above.
  void text(const std::string& names, std::string& value, const std::string& allowed, const std::string& help,
            bool keep = true);
  enum class Zero { refused, allowed };
  // A time with a unit; in the record NAME_s, in seconds.
  void duration(const std::string& names, std::optional<Picos>& value, const std::string& help,
                Zero zero = Zero::refused);

  // One of a list of words, each with its value; upper or lower case.
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

  // Changes the default (null: the program chooses) and the help text (empty: unchanged) of a registered option, in
  // --help and describe().
  void restate(const std::string& option, const Json& fallback, const std::string& help = "");

  // Lists only these words of a registered choice in --help and describe(). The others are still accepted here; the
  // plan refuses them with a reason.
  void offer(const std::string& option, const std::vector<std::string>& words);
  // A choice that the program makes if the option is not given; it is not in the record.
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
  // Refuses these words of a registered option, with a message of its own: other tools have them.
  void unsupported(const std::string& option, const std::vector<std::string>& words);

  // True if the option ("--size") is on the command line, also with its default value.
  bool given(const std::string& option) const;

  // {"benchmark", "summary", "example", "options": [{"name", "group", "type", "default", "allowed", "help"}]};
  // `example`: the options of a typical command line.
  Json describe(const std::string& benchmark, const std::string& summary, const std::string& example) const;
  // {"size": 64, ...}: the values now, in the order of registration; null if the program chooses.
  Json values() const;
  // The names of the options that were given with a value that is not the default: ["size"].
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
  // Sets the group, type and default of `option` in --help, and adds it to the table.
  Entry& add(CLI::Option* option, const std::string& type, Json allowed, const std::string& help,
             std::function<Json()> value);

  CLI::App& app_;
  std::string group_ = "Options";
  std::vector<Entry> entries_;
};

}  // namespace verbscope
