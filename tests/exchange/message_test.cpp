// Messages of the exchange: accepted and rejected bytes, and the comparison of terms.
#include "exchange/message.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

// A message on the wire with `text` as its JSON, and this length in front of it.
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

TEST(Message, RejectsAGigabyteByItsLength) {
  EXPECT_EQ(refusal(wire("", 1 << 30)),
            "message length 1073741824 bytes (allowed 1-1048576): the peer is not a program of this exchange");
  // A web browser's first bytes, 'G' 'E' 'T' ' ', are the length 0x47455420.
  EXPECT_THAT(refusal(wire("GET / HTTP/1.1", 0x47455420)), HasSubstr("message length 1195725856 bytes"));
}

TEST(Message, LimitsAreExact) {
  const std::string text = R"({"type":"t","body":0})";
  EXPECT_EQ(parse_message(wire(text), text.size()).type, "t");
  EXPECT_THAT(refusal(wire(text), text.size() - 1), HasSubstr("allowed 1-20"));
  EXPECT_THAT(refusal(wire("")), HasSubstr("message length 0 bytes"));
  const Message message{"t", 0};
  EXPECT_EQ(encode_message(message, text.size()).size(), text.size() + kLengthBytes);
  EXPECT_THAT(error_of([&] { encode_message(message, 20); }), HasSubstr("message \"t\" has 21 bytes"));
}

TEST(Message, RejectsATruncatedMessage) {
  const std::vector<std::byte> whole = encode_message({"hello", Json{{"x", 1}}}, kMaxMessage);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), "(nothing thrown)") << size;
  }
}

TEST(Message, RejectsTrailingBytes) {
  std::vector<std::byte> bytes = encode_message({"hello", 1}, kMaxMessage);
  const std::size_t length = bytes.size() - kLengthBytes;
  bytes.push_back(std::byte{' '});
  EXPECT_EQ(refusal(bytes), fmt::format("the message has {} bytes instead of {}", length + 1, length));
}

TEST(Message, RejectsInvalidJsonAndMembers) {
  EXPECT_THAT(refusal(wire("{")), HasSubstr("message:1:"));
  EXPECT_THAT(refusal(wire("\xff\xfe\x00\x01")), HasSubstr("message:1:"));
  EXPECT_THAT(refusal(wire("[]")), HasSubstr("expected object"));
  EXPECT_THAT(refusal(wire(R"({"body":1})")), HasSubstr("\"type\" is missing"));
  EXPECT_THAT(refusal(wire(R"({"type":"a"})")), HasSubstr("\"body\" is missing"));
  EXPECT_THAT(refusal(wire(R"({"type":1,"body":1})")), HasSubstr("expected string"));
  EXPECT_THAT(refusal(wire(R"({"type":"a","body":1,"more":1})")), HasSubstr("unknown key"));
}

TEST(Message, RejectsDeepNesting) {
  EXPECT_NE(refusal(wire(std::string(1 << 20, '['))), "(nothing thrown)");
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_NE(refusal(wire(R"({"type":"a","body":)" + deep + "}")), "(nothing thrown)");
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(printable("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(printable(std::string(1000, 'a')).size(), 303u);
}

Terms example_terms() {
  return {.benchmark = "send_rate",
          .version = "0.1.0",
          .commit = "6cd2536",
          .any_build = false,
          .parameters = Json{{"post_list", 16}, {"qps", 1}, {"transport", "UD"}}};
}

TEST(Terms, RoundTrip) {
  const Terms got = parse_terms(to_json(example_terms()));
  EXPECT_EQ(got.benchmark, "send_rate");
  EXPECT_EQ(got.version, "0.1.0");
  EXPECT_EQ(got.commit, "6cd2536");
  EXPECT_FALSE(got.any_build);
  EXPECT_EQ(got.parameters, example_terms().parameters);
}

TEST(Terms, RejectsMembersOfAWrongType) {
  const auto with = [](const char* key, const Json& value) {
    Json json = to_json(example_terms());
    json[key] = value;
    return error_of([&] { parse_terms(json); });
  };
  EXPECT_THAT(with("benchmark", 1), HasSubstr("terms: key \"benchmark\": expected string"));
  EXPECT_THAT(with("any_build", "yes"), HasSubstr("terms: key \"any_build\": expected true or false"));
  EXPECT_THAT(with("parameters", 1), HasSubstr("terms: key \"parameters\": expected object"));
  EXPECT_THAT(with("colour", 1), HasSubstr("unknown key"));
  EXPECT_THAT(error_of([] { parse_terms(Json(3)); }), HasSubstr("expected object"));
}

TEST(Mismatch, IsEmptyForEqualTerms) {
  EXPECT_EQ(describe_mismatch(example_terms(), example_terms()), "");
}

TEST(Mismatch, ShowsBothValuesOfEachDifference) {
  Terms other = example_terms();
  other.benchmark = "recv_rate";
  other.parameters = Json{{"post_list", 4}, {"transport", "UD"}, {"clients", 2}};
  EXPECT_EQ(describe_mismatch(example_terms(), other),
            "benchmark (here \"send_rate\", there \"recv_rate\"), "
            "post_list (here 16, there 4), qps (here 1, there absent), clients (here absent, there 2)");
}

TEST(Mismatch, NamesAnyBuildIfTheBuildsDiffer) {
  Terms other = example_terms();
  other.version = "0.2.0";
  other.commit = "73c28d1";
  EXPECT_EQ(describe_mismatch(example_terms(), other),
            "version (here \"0.1.0\", there \"0.2.0\"), commit (here \"6cd2536\", there \"73c28d1\"); "
            "--any_build accepts another build");
}

TEST(Mismatch, AnyBuildAcceptsOnlyAnotherBuild) {
  Terms other = example_terms();
  other.commit = "73c28d1";
  other.any_build = true;
  EXPECT_EQ(describe_mismatch(example_terms(), other), "");
  EXPECT_EQ(describe_mismatch(other, example_terms()), "");
  other.parameters["qps"] = 2;
  EXPECT_EQ(describe_mismatch(example_terms(), other), "qps (here 1, there 2)");
}

TEST(Mismatch, StaysOneShortPrintableLine) {
  Terms other = example_terms();
  other.benchmark = std::string(100000, 'x') + "\n\x1b[2J";
  const std::string line = describe_mismatch(example_terms(), other);
  EXPECT_LT(line.size(), 300u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Mismatch, ListsTwentyDifferencesAndCountsTheRest) {
  Terms other = example_terms();
  for (int i = 0; i < 30; ++i) other.parameters[fmt::format("p{}", i)] = i;
  const std::string line = describe_mismatch(example_terms(), other);
  EXPECT_THAT(line, HasSubstr("p19 (here absent, there 19), and 10 more"));
}

}  // namespace
}  // namespace verbscope
