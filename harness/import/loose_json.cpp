#include <string>

#include "common/text.hpp"
#include "harness/import/tool_output.hpp"

namespace verbscope {
namespace {

constexpr std::string_view kJsonBlank = " \t\r\n";

Json word(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (text == "null") return nullptr;
  if (const auto number = number_from<double>(text)) return *number;
  return std::string(text);
}

class LooseReader {
 public:
  explicit LooseReader(std::string_view text) : text_(text) {}

  std::size_t position() const { return at_; }

  bool object(Json& out, int depth) {
    out = Json::object();
    if (depth > kMaxJsonDepth || !skip('{')) return false;
    while (!skip('}')) {
      std::string name;
      if (!member_name(name) || !skip(':') || !value(out[name], depth)) return false;
      skip(',');
      if (out.size() > kMaxJsonKeys) return false;
    }
    return true;
  }

 private:
  char next() {
    at_ = std::min(text_.size(), text_.find_first_not_of(kJsonBlank, at_));
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool skip(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  // Returns the text up to one of `ends`, which stays unread.
  bool until(std::string_view ends, std::string_view& out) {
    const std::size_t end = text_.find_first_of(ends, at_);
    if (end == text_.npos) return false;
    out = trimmed(text_.substr(at_, end - at_), kJsonBlank);
    at_ = end;
    return true;
  }
  bool quoted(std::string& out) {
    ++at_;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    return at_++ < text_.size();
  }
  bool member_name(std::string& out) {
    if (next() == '"') return quoted(out);
    std::string_view name;
    if (!until(":{}\n", name) || name.empty()) return false;
    out = name;
    return true;
  }
  bool array(Json& out, int depth) {
    out = Json::array();
    if (depth > kMaxJsonDepth) return false;
    ++at_;
    while (!skip(']')) {
      Json element;
      if (!value(element, depth)) return false;
      out.push_back(std::move(element));
      skip(',');
    }
    return true;
  }
  bool value(Json& out, int depth) {
    switch (next()) {
      case '{':
        return object(out, depth + 1);
      case '[':
        return array(out, depth + 1);
      case '"': {
        std::string text;
        if (!quoted(text)) return false;
        out = std::move(text);
        return true;
      }
      default: {
        std::string_view text;
        const std::size_t before = at_;
        if (!until(",}]\n", text) || at_ == before) return false;
        out = word(text);
        return true;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<LooseJson> read_loose_json(std::string_view text) {
  LooseReader reader(text);
  Json value;
  if (!reader.object(value, 1)) return std::nullopt;
  return LooseJson{std::move(value), reader.position()};
}

}  // namespace verbscope
