// Reading JSON that people write: every mistake ends in one line that says where and what. Objects keep their order, so
// that a record is written the same way each time.
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

// Its members are compiled once, in json.cpp, and not again in each source that uses them.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace verbscope {

using Json = nlohmann::ordered_json;

// Limits of what the reader accepts: a file of a benchmark is far below each.
inline constexpr std::size_t kMaxJsonBytes = 16u << 20;
inline constexpr int kMaxJsonDepth = 64;  // the outermost object has depth 1
inline constexpr std::size_t kMaxJsonKeys =
    4096;  // the most keys in one object: an ordered object looks a key up linearly

// The value in `text`. Errors are one line "where:LINE: what"; a duplicate key is an error. `first_line` is the number
// of the first line of `text`, for a text that is a part of a file.
Json parse_json_text(std::string_view text, const std::string& where, std::size_t first_line = 1);
Json read_json_file(const std::filesystem::path& path);

// `value` on one line, without a newline. Bytes that are not UTF-8 become U+FFFD; a number that is not finite becomes
// null; control characters are escaped, those that JSON would let stand as well.
std::string dump_json(const Json& value);
// The same on several lines, as a person reads it.
std::string pretty_json(const Json& value);

// null where there is none.
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

// `value` as T: bool, std::string, any integer (in the range of T), double (an integer will do), Json (anything) or a
// vector of these. Throws "where: expected TYPE, got ...".
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

// The fields of one object. It remembers which keys were asked for, so that reject_unknown can name the others.
// Errors: `where: key "x": expected number, got string "abc"`. Keeps a reference to the object.
class JsonFields {
 public:
  // Throws when `object` is not an object.
  JsonFields(const Json& object, std::string where);

  // The key must be there, with this type (see json_value); the second form also checks min <= value <= max.
  template <class T>
  T require(const std::string& key) {
    return json_value<T>(at(key), where_key(key));
  }
  template <class T>
  requires std::is_arithmetic_v<T> T require(const std::string& key, T min, T max) {
    return in_range<T>(at(key), key, min, max);
  }

  // `fallback` when the key is absent.
  template <class T>
  T optional(const std::string& key, T fallback) {
    return has(key) ? require<T>(key) : std::move(fallback);
  }
  template <class T>
  requires std::is_arithmetic_v<T> T optional(const std::string& key, T fallback, T min, T max) {
    return has(key) ? require<T>(key, min, max) : fallback;
  }

  // The value of a key that must be there; whether the key is there. Both count as asked for.
  const Json& at(const std::string& key);
  bool has(const std::string& key);

  // The fields of the object under `key`; its errors begin with `where: key "x"`.
  JsonFields object(const std::string& key);

  // Throws a line with every key that nobody asked for and the keys that are known.
  void reject_unknown() const;

  // Throws `where: key "x": message`, for a check of the caller's own.
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
  std::vector<std::string> asked_;
};

}  // namespace verbscope
