// The messages of the exchange: what bytes are accepted, and how two handshakes are compared.
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

Hello example_hello() {
  return {"send_rate", "0.1.0", Json{{"post_list", 16}, {"qps", 1}, {"transport", "UD"}}, "s3cret"};
}

TEST(Hello, RoundTrips) {
  const Hello got = parse_hello(to_json(example_hello()));
  EXPECT_EQ(got.benchmark, "send_rate");
  EXPECT_EQ(got.version, "0.1.0");
  EXPECT_EQ(got.parameters, example_hello().parameters);
  EXPECT_EQ(got.secret, "s3cret");
}

TEST(Hello, AnotherProtocolIsToldBeforeAnythingElse) {
  EXPECT_EQ(error_of([] {
              parse_hello(Json{{"protocol", 2}, {"colour", "red"}});
            }),
            "exchange protocols differ: here 1, there 2");
}

TEST(Hello, AMemberOfAWrongTypeIsRefused) {
  const auto with = [](const char* key, const Json& value) {
    Json json = to_json(example_hello());
    json[key] = value;
    return error_of([&] { parse_hello(json); });
  };
  EXPECT_THAT(with("benchmark", 1), HasSubstr("hello: key \"benchmark\": expected string"));
  EXPECT_THAT(with("parameters", 1), HasSubstr("hello: key \"parameters\": expected object"));
  EXPECT_THAT(with("colour", 1), HasSubstr("unknown key"));
  EXPECT_THAT(error_of([] { parse_hello(Json(3)); }), HasSubstr("expected object"));
}

TEST(Hello, ASecretIsNeverShown) {
  Json json = to_json(example_hello());
  json["secret"] = 424242;
  EXPECT_EQ(error_of([&] { parse_hello(json); }), "hello: key \"secret\": expected string");
}

TEST(Mismatch, EqualSidesHaveNone) {
  Hello other = example_hello();
  other.secret = "another";  // compared elsewhere
  EXPECT_EQ(describe_mismatch(example_hello(), other), "");
}

TEST(Mismatch, ShowsBothValuesOfEachDifference) {
  Hello other = example_hello();
  other.benchmark = "recv_rate";
  other.version = "0.2.0";
  other.parameters = Json{{"post_list", 4}, {"transport", "UD"}, {"clients", 2}};
  EXPECT_EQ(describe_mismatch(example_hello(), other),
            "benchmark (here \"send_rate\", there \"recv_rate\"), version (here \"0.1.0\", there \"0.2.0\"), "
            "post_list (here 16, there 4), qps (here 1, there absent), clients (here absent, there 2)");
}

TEST(Mismatch, StaysOneShortPrintableLine) {
  Hello other = example_hello();
  other.version = std::string(100000, 'x') + "\n\x1b[2J";
  const std::string line = describe_mismatch(example_hello(), other);
  EXPECT_LT(line.size(), 300u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Mismatch, ManyDifferencesAreCounted) {
  Hello other = example_hello();
  for (int i = 0; i < 30; ++i) other.parameters[fmt::format("p{}", i)] = i;
  const std::string line = describe_mismatch(example_hello(), other);
  EXPECT_THAT(line, HasSubstr("p19 (here absent, there 19), and 10 more"));
}

TEST(Secret, OnlyEqualSecretsAreTheSame) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{
           {"", "x"}, {"x", ""}, {"abc", "abd"}, {"abc", "ab"}, {"ab", "abab"}, {"a", "aa"}}) {
    EXPECT_FALSE(same_secret(a, b)) << a << " " << b;
  }
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(printable("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(printable(std::string(1000, 'a')).size(), 303u);
}

}  // namespace
}  // namespace verbscope
