#include "exchange/message.hpp"

#include <fmt/format.h>

#include <cstring>

#include "common/error.hpp"

namespace verbscope {

namespace {

constexpr std::size_t kMaxPrintedText = 300;

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

std::string printable(std::string_view text) {
  const bool whole = text.size() <= kMaxPrintedText;
  return on_one_line(std::string(text.substr(0, kMaxPrintedText))) + (whole ? "" : "...");
}

}  // namespace verbscope
