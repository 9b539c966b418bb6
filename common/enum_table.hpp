// Tables with one row per enumerator, in the order of the enumerators, so that a lookup is an index. The length follows
// from the enum and the order is checked, so that a missing row is a compile error. A row has the members `value` (its
// enumerator) and, if it is named in options or records, `name`.
#pragma once

#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/text.hpp"

namespace verbscope {

// True if `value` is a named enumerator. As a template argument, GCC and clang print a named enumerator by its name,
// "verbscope::Side::client", and any other value as a number after a cast, "(verbscope::Side)2".
template <auto value>
constexpr bool is_enumerator() {
  constexpr std::string_view kText = __PRETTY_FUNCTION__;
  const char first = kText[kText.find_last_of(":)") + 1];
  return first < '0' || first > '9';
}

// The number of enumerators of E, an enum class with the values 0, 1, 2, ...
template <class E, std::size_t known = 0>
constexpr std::size_t enum_count() {
  if constexpr (is_enumerator<static_cast<E>(known)>()) {
    return enum_count<E, known + 1>();
  } else {
    return known;
  }
}

template <class E, class Row>
using EnumTable = std::array<Row, enum_count<E>()>;

// Each table asserts this about itself. With a missing row the last row is empty, which is out of order too.
template <class Row, std::size_t count>
constexpr bool in_order(const std::array<Row, count>& table) {
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<std::size_t>(table[i].value) != i) return false;
  }
  return true;
}

// The table whose rows are make(enumerator).
template <class E, class Make>
constexpr auto make_enum_table(const Make& make) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make(static_cast<E>(i))...};
  }
  (std::make_index_sequence<enum_count<E>()>());
}

template <class Row, std::size_t count, class E>
constexpr const Row& row_of(const std::array<Row, count>& table, E value) {
  return table[static_cast<std::size_t>(value)];
}

// The enumerator named `text`. Throws Error with `what`, the text and the existing names.
template <class Row, std::size_t count>
auto value_named(const std::array<Row, count>& table, std::string_view what, std::string_view text) {
  std::vector<std::string> names;
  for (const Row& row : table) {
    if (row.name == text) return row.value;
    names.emplace_back(row.name);
  }
  fail("{} '{}' is unknown: one of {}{}", what, text, fmt::join(names, ", "), did_you_mean(text, names));
}

// All names with their enumerators, for the choices of an option.
template <class Row, std::size_t count>
auto names_and_values(const std::array<Row, count>& table) {
  std::vector<std::pair<std::string, decltype(Row::value)>> pairs;
  for (const Row& row : table) pairs.emplace_back(row.name, row.value);
  return pairs;
}

}  // namespace verbscope
