#include "exchange/message.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxPrintedValue = 120;
constexpr std::size_t kMaxPrintedText = 300;
constexpr std::size_t kMaxPrintedDifferences = 20;

// Cuts a value of a peer that is too long to print.
std::string shown(const Json& value) {
  std::string text = printable(dump_json(value));
  if (text.size() > kMaxPrintedValue) text.replace(kMaxPrintedValue, std::string::npos, "...");
  return text;
}

std::string shown_member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? "absent" : shown(*found);
}

void note_difference(std::vector<std::string>& differences, std::string_view name, const std::string& here,
                     const std::string& there) {
  differences.push_back(fmt::format("{} (here {}, there {})", printable(name), here, there));
}

}  // namespace

std::size_t parse_length(std::span<const std::byte> bytes, std::size_t limit) {
  if (bytes.size() < kLengthBytes) fail("a message was cut after {} bytes of its length", bytes.size());
  std::size_t length = 0;
  for (const std::byte byte : bytes.first(kLengthBytes)) length = length << 8 | std::to_integer<std::size_t>(byte);
  if (length == 0 || length > limit) {
    fail("a message of {} bytes was announced, allowed are 1-{}: not a peer of this exchange?", length, limit);
  }
  return length;
}

Message parse_message(std::span<const std::byte> bytes, std::size_t limit) {
  const std::size_t length = parse_length(bytes, limit);
  const auto body = bytes.subspan(kLengthBytes);
  if (body.size() != length) fail("a message of {} bytes was announced, {} are there", length, body.size());
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  const Json json = parse_json_text(text, "message");
  JsonFields fields(json, "message");
  Message message{fields.require<std::string>("type"), fields.require<Json>("body")};
  fields.reject_unknown();
  return message;
}

std::vector<std::byte> encode_message(const Message& message, std::size_t limit) {
  const std::string text = dump_json(Json{{"type", message.type}, {"body", message.body}});
  if (text.size() > limit) fail("message \"{}\" has {} bytes, allowed are {}", message.type, text.size(), limit);
  std::vector<std::byte> bytes(kLengthBytes + text.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<std::byte>(text.size() >> 8 * (kLengthBytes - 1 - i));
  }
  std::memcpy(bytes.data() + kLengthBytes, text.data(), text.size());
  return bytes;
}

Json to_json(const Hello& hello) {
  return Json{{"protocol", kExchangeProtocol},
              {"benchmark", hello.benchmark},
              {"version", hello.version},
              {"parameters", hello.parameters},
              {"secret", hello.secret}};
}

Hello parse_hello(const Json& body) {
  JsonFields fields(body, "hello");
  const auto protocol = fields.require<std::int64_t>("protocol");
  if (protocol != kExchangeProtocol) {
    fail("exchange protocols differ: here {}, there {}", kExchangeProtocol, protocol);
  }
  Hello hello;
  hello.benchmark = fields.require<std::string>("benchmark");
  hello.version = fields.require<std::string>("version");
  hello.parameters = fields.require<Json>("parameters");
  // Not require<std::string>: its message would show the value.
  const Json& secret = fields.at("secret");
  if (!secret.is_string()) fields.fail_key("secret", "expected string");
  hello.secret = secret.get<std::string>();
  fields.reject_unknown();
  if (!hello.parameters.is_object()) fields.fail_key("parameters", "expected object");
  return hello;
}

std::string describe_mismatch(const Hello& here, const Hello& there) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* name, const Json& a, const Json& b) {
    if (a != b) note_difference(differences, name, shown(a), shown(b));
  };
  compare("benchmark", here.benchmark, there.benchmark);
  compare("version", here.version, there.version);
  for (const auto& [key, value] : here.parameters.items()) {
    const auto found = there.parameters.find(key);
    if (found == there.parameters.end() || *found != value) {
      note_difference(differences, key, shown(value), shown_member(there.parameters, key));
    }
  }
  for (const auto& [key, value] : there.parameters.items()) {
    if (!here.parameters.contains(key)) note_difference(differences, key, "absent", shown(value));
  }
  const std::size_t more = differences.size() - std::min(differences.size(), kMaxPrintedDifferences);
  differences.resize(differences.size() - more);
  if (more > 0) differences.push_back(fmt::format("and {} more", more));
  return fmt::format("{}", fmt::join(differences, ", "));
}

bool same_secret(std::string_view a, std::string_view b) {
  // Every byte of `b`, the stranger's, is looked at, whatever `a` is; only its length shows.
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const char of_a = a.empty() ? '\0' : a[i % a.size()];
    difference |= static_cast<unsigned>(of_a ^ b[i]);
  }
  return difference == 0;
}

std::string printable(std::string_view text) {
  const bool whole = text.size() <= kMaxPrintedText;
  return on_one_line(std::string(text.substr(0, kMaxPrintedText))) + (whole ? "" : "...");
}

}  // namespace verbscope
