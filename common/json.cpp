#include "common/json.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "common/characters.hpp"
#include "common/input_file.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace verbscope {
namespace {

// An iterator that records how far the parser has read, because the parser's callbacks do not provide it.
class TrackingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  TrackingIterator& operator++() {
    *reached_ = at_++;  // not the next one: the parser ends a number only after the newline behind it
    return *this;
  }
  bool operator==(const TrackingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const TrackingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// nlohmann's text after "parse error at line 1, column 2: ", shortened and printable.
std::string plain_reason(std::string text) {
  const auto column = text.find("column ");
  const auto start = column == std::string::npos ? text.find("] ") : text.find(": ", column);
  if (start != std::string::npos) text.erase(0, start + 2);
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// Refuses what the parser accepts: duplicate keys, deep nesting, huge objects.
class StructureCheck {
 public:
  void operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxJsonDepth) {
      fail("nested deeper than {} levels", kMaxJsonDepth);
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event != Event::key) return;
    if (!keys_.back().insert(value.get<std::string>()).second) fail("duplicate key {}", detail::got(value));
    if (keys_.back().size() > kMaxJsonKeys) fail("more than {} keys in one object", kMaxJsonKeys);
  }

 private:
  std::vector<std::unordered_set<std::string>> keys_;  // keys of each open object
};

// Escapes characters that JSON allows but terminals obey: DEL, control characters from U+0080 to U+009f, and characters
// that are invisible or change the text direction.
std::string without_obeyed(std::string text) {
  const auto may_be = [](char c) { return c == '\x7f' || static_cast<unsigned char>(c) >= 0x80; };
  for (auto found = std::ranges::find_if(text, may_be); found != text.end();) {
    const auto at = static_cast<std::size_t>(found - text.begin());
    const auto [bytes, code] = first_character(std::string_view(text).substr(at));
    std::size_t past = at + std::max<std::size_t>(bytes, 1);
    if (bytes > 0 && (is_control(code) || is_unseen(code))) {
      const auto high = static_cast<std::uint32_t>(code - 0x10000);
      const std::string escaped =
          code < 0x10000 ? fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code))
                         : fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (high >> 10), 0xdc00 + (high & 0x3ff));
      text.replace(at, bytes, escaped);
      past = at + escaped.size();
    }
    found = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(past), text.end(), may_be);
  }
  return text;
}

}  // namespace

namespace detail {

std::string got(const Json& value) {
  if (value.is_structured() || value.is_null()) return value.type_name();
  constexpr std::size_t kLongest = 60;
  std::string text = dump_json(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return fmt::format("{} {}", value.type_name(), text);
}

void fail_type(const std::string& where, const std::string& expected, const Json& value) {
  fail("{}: expected {}, got {}", where, expected, got(value));
}

}  // namespace detail

Json parse_json_text(std::string_view text, const std::string& where, std::size_t first_line) {
  if (text.size() > kMaxJsonBytes) fail("{}:{}: longer than {} bytes", where, first_line, kMaxJsonBytes);
  const char* reached = text.data();
  const auto line = [&] { return first_line + static_cast<std::size_t>(std::count(text.data(), reached, '\n')); };
  try {
    StructureCheck structure;
    const auto callback = [&structure](int depth, Json::parse_event_t event, const Json& value) {
      structure(depth, event, value);
      return true;
    };
    return Json::parse(TrackingIterator(text.data(), &reached), TrackingIterator(text.data() + text.size(), &reached),
                       callback);
  } catch (const Json::exception& error) {
    fail("{}:{}: {}", where, line(), plain_reason(error.what()));
  } catch (const Error& error) {
    fail("{}:{}: {}", where, line(), error.what());
  }
}

Json read_json_file(const std::filesystem::path& path) {
  return parse_json_text(read_text_file(path), path.string());
}

std::string dump_json(const Json& value) {
  return without_obeyed(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string pretty_json(const Json& value) {
  return without_obeyed(value.dump(2, ' ', false, Json::error_handler_t::replace));
}

JsonFields::JsonFields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) detail::fail_type(where_, "object", object);
}

const Json& JsonFields::at(const std::string& key) {
  if (!has(key)) fail("{}: key \"{}\" is missing", where_, key);
  return *object_->find(key);
}

bool JsonFields::has(const std::string& key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.push_back(key);
  return object_->contains(key);
}

JsonFields JsonFields::object(const std::string& key) {
  return {at(key), where_key(key)};
}

void JsonFields::reject_unknown() const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object_->items()) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) unknown.push_back(dump_json(key));
  }
  if (unknown.empty()) return;
  fail("{}: unknown key{} {} (known: {})", where_, unknown.size() > 1 ? "s" : "", fmt::join(unknown, ", "),
       fmt::join(asked_, ", "));
}

void JsonFields::fail_key(const std::string& key, const std::string& message) const {
  fail("{}: {}", where_key(key), message);
}

std::string JsonFields::where_key(const std::string& key) const {
  return fmt::format("{}: key \"{}\"", where_, key);
}

}  // namespace verbscope
