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

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/units.hpp"

namespace CLI {
class App;
}

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

  // A whole number from `low` to `high`. T is an integer or an optional of one; option_table.cpp lists those that there
  // are. `keep` false keeps it out of the record.
  template <class T>
  void integer(const std::string& names, T& value, typename detail::OptionalOf<T>::type low,
               typename detail::OptionalOf<T>::type high, const std::string& help, bool keep = true);

  // A number above 0.
  void number(const std::string& names, std::optional<double>& value, const std::string& help);
  void flag(const std::string& names, bool& value, const std::string& help);
  // `allowed` is a sentence about the text; `keep` as above.
  void text(const std::string& names, std::string& value, const std::string& allowed, const std::string& help,
            bool keep = true);
  enum class Zero { refused, allowed };
  // A time with a unit; the record has it in seconds under NAME_s.
  void duration(const std::string& names, std::optional<Picos>& value, const std::string& help,
                Zero zero = Zero::refused);

  // One of a list of words, each with its meaning.
  template <class E>
  void choice(const std::string& names, E& value, const std::vector<std::pair<std::string, E>>& words,
              const std::string& help) {
    Json allowed = Json::array();
    for (const auto& word : words) allowed.push_back(word.first);
    const std::string option = names.substr(names.find("--"));
    const auto set = [&value, words, option, allowed](const std::string& text) {
      const auto found = std::ranges::find(words, text, &std::pair<std::string, E>::first);
      if (found == words.end()) fail_usage("{}: expected one of {}, got \"{}\"", option, allowed.dump(), text);
      value = found->second;
    };
    set_by(names, set, help);
    add(names, "string", allowed, help, [&value, words] {
      for (const auto& [name, meaning] : words) {
        if (meaning == value) return Json(name);
      }
      return Json();
    });
  }

  // Whether the person gave it, be it with the default's value: "--size".
  bool given(const std::string& option) const;

  // {"benchmark", "options": [{"name", "type", "default", "allowed", "help"}]}.
  Json describe(const std::string& benchmark) const;
  // {"size": 64, ...}: the values now, in the order of registration; null where the program chooses.
  Json values() const;

 private:
  struct Entry {
    std::string name, type;
    Json fallback, allowed;
    std::string help;
    std::function<Json()> value;
    bool keep = true;
  };

  // `set` is called with the text that the person gave.
  void set_by(const std::string& names, const std::function<void(const std::string&)>& set, const std::string& help);
  Entry& add(const std::string& names, const std::string& type, Json allowed, const std::string& help,
             std::function<Json()> value);

  CLI::App& app_;
  std::vector<Entry> entries_;
};

}  // namespace verbscope
