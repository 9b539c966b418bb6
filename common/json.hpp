// Reads JSON written by users: each mistake is reported in one line with its place. Objects keep their order, so that
// records are always written in the same form.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/error.hpp"

// Instantiated once, in json.cpp, instead of in each source.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace verbscope {

using Json = nlohmann::ordered_json;

// Limits of the reader. Files of benchmarks are far below each.
inline constexpr std::size_t kMaxJsonBytes = 16u << 20;
inline constexpr int kMaxJsonDepth = 64;  // the outermost object has depth 1
inline constexpr std::size_t kMaxJsonKeys =
    4096;  // maximum number of keys in one object: the lookup in an ordered object is linear

// Parses `text`. Errors are one line "where:LINE: what". Duplicate keys are an error. `first_line`: line number of the
// beginning, if `text` is a part of a file.
Json parse_json_text(std::string_view text, const std::string& where, std::size_t first_line = 1);
Json read_json_file(const std::filesystem::path& path);

// `value` on one line, without a newline. Bytes that are not UTF-8 become U+FFFD, non-finite numbers null. All control
// characters are escaped, including those that JSON allows.
std::string dump_json(const Json& value);
// The same, indented on several lines.
std::string pretty_json(const Json& value);

// null if empty.
inline Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

namespace detail {
// Describes `value` for the end of "expected ..., got": its type, and the value if it is a short scalar.
std::string got(const Json& value);
[[noreturn]] void fail_type(const std::string& where, const std::string& expected, const Json& value);

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <std::integral T>
T json_integer(const Json& value, const std::string& where, T min, T max) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (std::cmp_greater_equal(n, min) && std::cmp_less_equal(n, max)) return static_cast<T>(n);
  } else if (value.is_number_integer()) {
    const auto n = value.get<std::int64_t>();
    if (std::cmp_greater_equal(n, min) && std::cmp_less_equal(n, max)) return static_cast<T>(n);
  } else {
    fail_type(where, "integer", value);
  }
  fail_type(where, fmt::format("integer from {} to {}", min, max), value);
}
}  // namespace detail

// Converts `value` to T: bool, std::string, any integer (in the range of T), double (accepts an integer), Json
// (anything) or a vector of these. Throws "where: expected TYPE, got ...".
template <class T>
T json_value(const Json& value, const std::string& where) {
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::same_as<T, bool>) {
    if (!value.is_boolean()) detail::fail_type(where, "true or false", value);
    return value.get<bool>();
  } else if constexpr (std::integral<T>) {
    return detail::json_integer<T>(value, where, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) detail::fail_type(where, "number", value);
    return value.get<T>();
  } else if constexpr (detail::IsVector<T>::value) {
    if (!value.is_array()) detail::fail_type(where, "array", value);
    T out;
    for (std::size_t i = 0; i < value.size(); ++i) {
      out.push_back(json_value<typename T::value_type>(value[i], fmt::format("{}[{}]", where, i)));
    }
    return out;
  } else {
    static_assert(std::same_as<T, std::string>, "json_value: no such type");
    if (!value.is_string()) detail::fail_type(where, "string", value);
    return value.get<std::string>();
  }
}

// Reads the fields of one object, and records which keys were read, so that reject_unknown can report the others.
// Errors: `where: key "x": expected number, got string "abc"`. Keeps a reference to the object.
class JsonFields {
 public:
  // Throws if `object` is not an object.
  JsonFields(const Json& object, std::string where);

  // The key must exist, with this type (see json_value). The second form also checks min <= value <= max.
  template <class T>
  T require(const std::string& key) {
    return json_value<T>(at(key), where_key(key));
  }
  template <class T>
  requires std::is_arithmetic_v<T> T require(const std::string& key, T min, T max) {
    return in_range<T>(at(key), key, min, max);
  }

  // Returns `fallback` if the key is absent.
  template <class T>
  T optional(const std::string& key, T fallback) {
    return has(key) ? require<T>(key) : std::move(fallback);
  }
  template <class T>
  requires std::is_arithmetic_v<T> T optional(const std::string& key, T fallback, T min, T max) {
    return has(key) ? require<T>(key, min, max) : fallback;
  }

  // Converts the text of a required key. If `convert` throws Error, the message names the key.
  template <class Convert>
  auto parse(const std::string& key, Convert convert) {
    return convert_text(key, require<std::string>(key), convert);
  }
  // Likewise for a text that the caller read.
  template <class Convert>
  auto convert_text(const std::string& key, const std::string& text, Convert convert) const {
    try {
      return convert(text);
    } catch (const Error& error) {
      fail_key(key, error.what());
    }
  }

  // at: the value of a required key; has: true if the key exists. Both count as reading it.
  const Json& at(const std::string& key);
  bool has(const std::string& key);

  // The fields of the object in `key`. Its errors begin with `where: key "x"`.
  JsonFields object(const std::string& key);

  // Throws a line with all keys that were not read, and the known keys.
  void reject_unknown() const;

  // Throws `where: key "x": message`, for additional checks of the caller.
  [[noreturn]] void fail_key(const std::string& key, const std::string& message) const;

  const std::string& where() const { return where_; }

 private:
  std::string where_key(const std::string& key) const;

  template <class T>
  T in_range(const Json& value, const std::string& key, T min, T max) {
    if constexpr (std::integral<T>) {
      return detail::json_integer<T>(value, where_key(key), min, max);
    } else {
      const T number = json_value<T>(value, where_key(key));
      if (!(number >= min && number <= max)) {
        detail::fail_type(where_key(key), fmt::format("number from {} to {}", min, max), value);
      }
      return number;
    }
  }

  const Json* object_;
  std::string where_;
  std::vector<std::string> read_keys_;
};

}  // namespace verbscope
