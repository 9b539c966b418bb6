#include "exchange/message.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxPrintedText = 300;

}  // namespace

std::size_t parse_length(std::span<const std::byte> bytes, std::size_t limit) {
  if (bytes.size() < kLengthBytes) fail("the message ends after {} of {} length bytes", bytes.size(), kLengthBytes);
  std::size_t length = 0;
  for (const std::byte byte : bytes.first(kLengthBytes)) length = length << 8 | std::to_integer<std::size_t>(byte);
  if (length == 0 || length > limit) {
    fail("message length {} bytes (allowed 1-{}): the peer is not a program of this exchange", length, limit);
  }
  return length;
}

Message parse_message(std::span<const std::byte> bytes, std::size_t limit) {
  const std::size_t length = parse_length(bytes, limit);
  const auto body = bytes.subspan(kLengthBytes);
  if (body.size() != length) fail("the message has {} bytes instead of {}", body.size(), length);
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  const Json json = parse_json_text(text, "message");
  JsonFields fields(json, "message");
  Message message{fields.require<std::string>("type"), fields.require<Json>("body")};
  fields.reject_unknown();
  return message;
}

std::vector<std::byte> encode_message(const Message& message, std::size_t limit) {
  const std::string text = dump_json(Json{{"type", message.type}, {"body", message.body}});
  if (text.size() > limit) fail("message \"{}\" has {} bytes (allowed: up to {})", message.type, text.size(), limit);
  std::vector<std::byte> bytes(kLengthBytes + text.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<std::byte>(text.size() >> 8 * (kLengthBytes - 1 - i));
  }
  std::memcpy(bytes.data() + kLengthBytes, text.data(), text.size());
  return bytes;
}

std::string printable(std::string_view text) {
  const bool whole = text.size() <= kMaxPrintedText;
  return on_one_line(std::string(text.substr(0, kMaxPrintedText))) + (whole ? "" : "...");
}

namespace {

constexpr std::size_t kMaxPrintedValue = 120;
constexpr std::size_t kMaxPrintedDifferences = 20;

std::string printable_value(const Json& value) {
  std::string text = printable(dump_json(value));
  if (text.size() > kMaxPrintedValue) text.replace(kMaxPrintedValue, std::string::npos, "...");
  return text;
}

std::string printable_member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? "absent" : printable_value(*found);
}

class Differences {
 public:
  void compare(std::string_view name, const Json& here, const Json& there) {
    if (here != there) add(name, printable_value(here), printable_value(there));
  }
  void add(std::string_view name, const std::string& here, const std::string& there) {
    texts_.push_back(fmt::format("{} (here {}, there {})", printable(name), here, there));
  }
  bool empty() const { return texts_.empty(); }
  std::string text() {
    const std::size_t more = texts_.size() - std::min(texts_.size(), kMaxPrintedDifferences);
    texts_.resize(texts_.size() - more);
    if (more > 0) texts_.push_back(fmt::format("and {} more", more));
    return fmt::format("{}", fmt::join(texts_, ", "));
  }

 private:
  std::vector<std::string> texts_;
};

}  // namespace

Json to_json(const Terms& terms) {
  return Json{{"benchmark", terms.benchmark},
              {"version", terms.version},
              {"commit", terms.commit},
              {"any_build", terms.any_build},
              {"parameters", terms.parameters}};
}

Terms parse_terms(const Json& body) {
  JsonFields fields(body, "terms");
  Terms terms;
  terms.benchmark = fields.require<std::string>("benchmark");
  terms.version = fields.require<std::string>("version");
  terms.commit = fields.require<std::string>("commit");
  terms.any_build = fields.require<bool>("any_build");
  terms.parameters = fields.require<Json>("parameters");
  fields.reject_unknown();
  if (!terms.parameters.is_object()) fields.fail_key("parameters", "expected object");
  return terms;
}

std::string describe_mismatch(const Terms& here, const Terms& there) {
  Differences differences;
  if (!here.any_build && !there.any_build) {
    differences.compare("version", here.version, there.version);
    differences.compare("commit", here.commit, there.commit);
  }
  const bool other_build = !differences.empty();
  differences.compare("benchmark", here.benchmark, there.benchmark);
  for (const auto& [key, value] : here.parameters.items()) {
    const auto found = there.parameters.find(key);
    if (found == there.parameters.end() || *found != value) {
      differences.add(key, printable_value(value), printable_member(there.parameters, key));
    }
  }
  for (const auto& [key, value] : there.parameters.items()) {
    if (!here.parameters.contains(key)) differences.add(key, "absent", printable_value(value));
  }
  return differences.text() + (other_build ? "; --any_build accepts another build" : "");
}

}  // namespace verbscope
