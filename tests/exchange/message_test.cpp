// The messages of the exchange: what bytes are accepted.
#include "exchange/message.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

// A message on the wire with `text` as its JSON, or with another announced length.
std::vector<std::byte> wire(std::string_view text, std::size_t announced) {
  std::vector<std::byte> bytes;
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::byte>(announced >> shift));
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}
std::vector<std::byte> wire(std::string_view text) {
  return wire(text, text.size());
}

std::string refusal(const std::vector<std::byte>& bytes, std::size_t limit = kMaxMessage) {
  return error_of([&] { parse_message(bytes, limit); });
}

TEST(Message, LengthIsBigEndian) {
  EXPECT_EQ(parse_length(std::vector{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}}, kMaxMessage), 0x010203u);
}

TEST(Message, RoundTrips) {
  const Message sent{"endpoints", Json{{"a", 1}, {"b", {1.5, "x\n\"\u00e4", nullptr}}}};
  const Message got = parse_message(encode_message(sent, kMaxMessage), kMaxMessage);
  EXPECT_EQ(got.type, "endpoints");
  EXPECT_EQ(got.body, sent.body);
}

TEST(Message, AGigabyteIsRefusedByItsFirstFourBytes) {
  EXPECT_EQ(refusal(wire("", 1 << 30)),
            "a message of 1073741824 bytes was announced, allowed are 1-1048576: not a peer of this exchange?");
  // A web browser's first bytes, 'G' 'E' 'T' ' ', are the length 0x47455420.
  EXPECT_THAT(refusal(wire("GET / HTTP/1.1", 0x47455420)), HasSubstr("1195725856 bytes was announced"));
}

TEST(Message, LimitsAreExact) {
  const std::string text = R"({"type":"t","body":0})";
  EXPECT_EQ(parse_message(wire(text), text.size()).type, "t");
  EXPECT_THAT(refusal(wire(text), text.size() - 1), HasSubstr("allowed are 1-20"));
  EXPECT_THAT(refusal(wire("")), HasSubstr("a message of 0 bytes"));
  const Message message{"t", 0};
  EXPECT_EQ(encode_message(message, text.size()).size(), text.size() + kLengthBytes);
  EXPECT_EQ(error_of([&] { encode_message(message, 20); }), "message \"t\" has 21 bytes, allowed are 20");
}

TEST(Message, CutAnywhereIsRefused) {
  const std::vector<std::byte> whole = encode_message({"hello", Json{{"x", 1}}}, kMaxMessage);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "(nothing thrown)") << size;
  }
}

TEST(Message, BytesAfterTheEndAreRefused) {
  std::vector<std::byte> bytes = encode_message({"hello", 1}, kMaxMessage);
  const std::size_t length = bytes.size() - kLengthBytes;
  bytes.push_back(std::byte{' '});
  EXPECT_EQ(refusal(bytes), fmt::format("a message of {} bytes was announced, {} are there", length, length + 1));
}

TEST(Message, WhatIsNotAMessage) {
  EXPECT_THAT(refusal(wire("{")), HasSubstr("message:1:"));
  EXPECT_THAT(refusal(wire("\xff\xfe\x00\x01")), HasSubstr("message:1:"));
  EXPECT_THAT(refusal(wire("[]")), HasSubstr("expected object"));
  EXPECT_THAT(refusal(wire(R"({"body":1})")), HasSubstr("\"type\" is missing"));
  EXPECT_THAT(refusal(wire(R"({"type":"a"})")), HasSubstr("\"body\" is missing"));
  EXPECT_THAT(refusal(wire(R"({"type":1,"body":1})")), HasSubstr("expected string"));
  EXPECT_THAT(refusal(wire(R"({"type":"a","body":1,"more":1})")), HasSubstr("unknown key"));
}

TEST(Message, DeepNestingIsRefused) {
  EXPECT_NE(refusal(wire(std::string(1 << 20, '['))), "(nothing thrown)");
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_NE(refusal(wire(R"({"type":"a","body":)" + deep + "}")), "(nothing thrown)");
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(printable("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(printable(std::string(1000, 'a')).size(), 303u);
}

}  // namespace
}  // namespace verbscope
