// Structs as JSON. A struct lists its fields once, in a static `each(self, visit)`; the writer and the reader here use
// that list.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

// A number, a text, a struct that lists its fields, or a vector of these, as JSON.
template <class T>
Json fields_to_json(const T& value);
// The value of such JSON. Throws Error that begins with `where` if a field is missing or has another type.
template <class T>
T fields_from_json(const Json& json, const std::string& where);

// Writes the fields of one struct into one object, in the order of the list.
class FieldWriter {
 public:
  explicit FieldWriter(Json& json) : json_(json) {}

  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = fields_to_json(value);
  }
  // A field that may be missing.
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value) json_[key] = fields_to_json(*value);
  }
  // A field that is null unless it is `known`.
  template <class T>
  void or_null(const char* key, bool known, const T& value) {
    json_[key] = known ? fields_to_json(value) : Json();
  }
  // A value that follows from the other fields: written, but not read back.
  void derived(const char* key, std::uint64_t value) { json_[key] = value; }
  // A struct whose fields are in the same object, if it is `present`; `first` is the first of them.
  template <class T>
  void part(const char* /*first*/, bool present, const T& value) {
    if (present) T::each(value, *this);
  }
  // Keys that are in no list.
  void rest(const Json& others) { json_.update(others); }

 private:
  Json& json_;
};

// Reads the output of FieldWriter.
class FieldReader {
 public:
  FieldReader(const Json& json, const std::string& where) : json_(json), fields_(json, where) {}

  template <class T>
  void operator()(const char* key, T& value) {
    value = fields_from_json<T>(at(key), fields_.where() + ": " + key);
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    if (has(key)) (*this)(key, value.emplace());
  }
  template <class T>
  void or_null(const char* key, bool& known, T& value) {
    known = !at(key).is_null();
    if (known) (*this)(key, value);
  }
  void derived(const char* key, std::uint64_t) { at(key); }
  template <class T>
  void part(const char* first, bool& present, T& value) {
    present = has(first);
    if (present) T::each(value, *this);
  }
  void rest(Json& others) { rest_ = &others; }

  // Call after the list: passes keys that are not in the list to rest(). Throws Error if the list has no rest().
  void end() {
    if (rest_ == nullptr) return fields_.reject_unknown();
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::find(known_, key) == known_.end()) (*rest_)[key] = value;
    }
  }

 private:
  bool has(const char* key) {
    known_.emplace_back(key);
    return fields_.has(key);
  }
  const Json& at(const char* key) {
    known_.emplace_back(key);
    return fields_.at(key);
  }

  const Json& json_;
  JsonFields fields_;
  std::vector<std::string> known_;
  Json* rest_ = nullptr;
};

template <class T>
Json fields_to_json(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return Json(value);
  } else if constexpr (detail::IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(fields_to_json(item));
    return array;
  } else {
    Json json = Json::object();
    FieldWriter writer(json);
    T::each(value, writer);
    return json;
  }
}

template <class T>
T fields_from_json(const Json& json, const std::string& where) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return json_value<T>(json, where);
  } else if constexpr (detail::IsVector<T>::value) {
    T out;
    for (const Json& item : json_value<std::vector<Json>>(json, where)) {
      out.push_back(fields_from_json<typename T::value_type>(item, where));
    }
    return out;
  } else {
    T value;
    FieldReader reader(json, where);
    T::each(value, reader);
    reader.end();
    return value;
  }
}

}  // namespace verbscope
