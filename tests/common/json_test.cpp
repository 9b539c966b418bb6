#include "common/json.hpp"

#include <gmock/gmock.h>

#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string parse_error(const std::string& text) {
  return message_of<Error>([&] { parse_json_text(text, "f.json"); });
}

TEST(JsonText, KeepsTheOrderOfKeys) {
  EXPECT_EQ(dump_json(parse_json_text(R"({"b": 1, "a": [true, null, 2.5]})", "t")), R"({"b":1,"a":[true,null,2.5]})");
}

TEST(JsonText, ErrorIsOneLineWithTheLineNumber) {
  const std::string error = parse_error("{\n  \"a\": 1,\n  \"b\": oops\n}\n");
  EXPECT_THAT(error, StartsWith("f.json:3: "));
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_THAT(parse_error(""), StartsWith("f.json:1: "));
  EXPECT_THAT(parse_error("{\n\"a\": 1\n"), HasSubstr("unexpected end of input"));
  EXPECT_THAT(parse_error("{} x"), StartsWith("f.json:1: "));
  EXPECT_THAT(parse_error("{\"a\": \"\xff\"}"), HasSubstr("UTF-8"));
}

TEST(JsonText, NamesTheLineOfANumberOutOfRange) {
  EXPECT_THAT(parse_error("{\n\"a\": 1e999\n}"), StartsWith("f.json:2: number overflow"));
}

TEST(JsonText, RejectsDuplicateKeys) {
  EXPECT_EQ(parse_error("{\"a\": 1,\n\"b\": {\"a\": 2},\n\"a\": 3}"), "f.json:3: duplicate key string \"a\"");
  EXPECT_NO_THROW(parse_json_text(R"([{"a": 1}, {"a": 1}])", "t"));
}

TEST(JsonText, LimitsNestingKeysAndSize) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json_text(nested(kMaxJsonDepth), "t"));
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth + 1)), "f.json:1: nested deeper than 64 levels");
  EXPECT_THAT(parse_error(std::string(1'000'000, '[')), HasSubstr("nested deeper"));

  std::string keys = "{\"k\": 0";
  for (std::size_t i = 0; i < kMaxJsonKeys; ++i) keys += fmt::format(", \"k{}\": 0", i);
  EXPECT_THAT(parse_error(keys + "}"), HasSubstr("more than 4096 keys"));
  EXPECT_THAT(parse_error(std::string(kMaxJsonBytes + 1, ' ')), HasSubstr("longer than"));
}

TEST(JsonText, CountsFromTheGivenFirstLine) {
  EXPECT_THAT(message_of<Error>([] { parse_json_text("{\n!", "r.jsonl", 41); }), StartsWith("r.jsonl:42: "));
}

TEST(JsonFile, ReadsAFileAndNamesAMissingOne) {
  TempDir dir;
  write_file(dir / "x.json", "{\n\"a\": }");
  EXPECT_THAT(message_of<Error>([&] { read_json_file(dir / "x.json"); }), HasSubstr("x.json:2: "));
  write_file(dir / "x.json", "{\"a\": 5}");
  EXPECT_EQ(read_json_file(dir / "x.json")["a"], 5);
  EXPECT_THAT(message_of<Error>([&] { read_json_file(dir / "y.json"); }),
              ::testing::EndsWith("y.json: No such file or directory"));
  EXPECT_THAT(message_of<Error>([&] { read_json_file(dir.path()); }), testing::HasSubstr("it is a folder"));
}

TEST(JsonDump, InvalidUtf8AndNonFiniteNumbersBecomeValidJson) {
  EXPECT_EQ(dump_json(Json{{"a", std::nan("")}, {"b", "x\xff"}}), "{\"a\":null,\"b\":\"x\xEF\xBF\xBD\"}");
}

TEST(JsonFields, ReturnsValuesOfTheRightType) {
  const Json json =
      parse_json_text(R"({"i": -5, "u": 18446744073709551615, "d": 3, "s": "x", "b": true, "v": [1, 2]})", "t");
  JsonFields fields(json, "t");
  EXPECT_EQ(fields.require<int>("i"), -5);
  EXPECT_EQ(fields.require<std::uint64_t>("u"), 18446744073709551615u);
  EXPECT_EQ(fields.require<double>("d"), 3.0);
  EXPECT_EQ(fields.require<std::string>("s"), "x");
  EXPECT_TRUE(fields.require<bool>("b"));
  EXPECT_EQ(fields.require<std::vector<int>>("v"), (std::vector<int>{1, 2}));
  EXPECT_EQ(fields.optional<int>("absent", 9), 9);
  EXPECT_NO_THROW(fields.reject_unknown());
}

std::string field_error(const std::string& text, const std::function<void(JsonFields&)>& read) {
  const Json json = parse_json_text(text, "t");
  JsonFields fields(json, "f.json");
  return message_of<Error>([&] { read(fields); });
}

TEST(JsonFields, WrongTypeErrorNamesBothTypes) {
  EXPECT_EQ(field_error(R"({"x": "7"})", [](JsonFields& f) { f.require<double>("x"); }),
            "f.json: key \"x\": expected number, got string \"7\"");
  EXPECT_EQ(field_error(R"({"x": 1.5})", [](JsonFields& f) { f.require<int>("x"); }),
            "f.json: key \"x\": expected integer, got number 1.5");
  EXPECT_EQ(field_error(R"({"x": 1})", [](JsonFields& f) { f.require<bool>("x"); }),
            "f.json: key \"x\": expected true or false, got number 1");
  EXPECT_EQ(field_error(R"({"x": [1, "a"]})", [](JsonFields& f) { f.require<std::vector<int>>("x"); }),
            "f.json: key \"x\"[1]: expected integer, got string \"a\"");
  EXPECT_EQ(field_error(R"({"x": {}})", [](JsonFields& f) { f.optional<std::string>("x", ""); }),
            "f.json: key \"x\": expected string, got object");
  EXPECT_EQ(message_of<Error>([] { JsonFields(Json::array(), "f.json"); }), "f.json: expected object, got array");
}

TEST(JsonFields, ChecksTypeAndRangeOfIntegers) {
  EXPECT_EQ(field_error(R"({"x": 300})", [](JsonFields& f) { f.require<std::uint8_t>("x"); }),
            "f.json: key \"x\": expected integer from 0 to 255, got number 300");
  EXPECT_EQ(field_error(R"({"x": -1})", [](JsonFields& f) { f.require<std::uint64_t>("x"); }),
            "f.json: key \"x\": expected integer from 0 to 18446744073709551615, got number -1");
  EXPECT_EQ(field_error(R"({"x": 0})", [](JsonFields& f) { f.require<int>("x", 1, 16); }),
            "f.json: key \"x\": expected integer from 1 to 16, got number 0");
  EXPECT_EQ(field_error(R"({"x": 2.5})", [](JsonFields& f) { f.optional<double>("x", 0, 0, 1); }),
            "f.json: key \"x\": expected number from 0 to 1, got number 2.5");
}

TEST(JsonFields, NamesMissingAndUnknownKeys) {
  EXPECT_EQ(field_error("{}", [](JsonFields& f) { f.require<int>("x"); }), "f.json: key \"x\" is missing");
  EXPECT_EQ(field_error(R"({"a": 1, "sise": 2})",
                        [](JsonFields& f) {
                          f.require<int>("a");
                          f.has("size");
                          f.reject_unknown();
                        }),
            "f.json: unknown key \"sise\" (known: a, size)");
  EXPECT_EQ(field_error(R"({"wire": {"lanes": true}})", [](JsonFields& f) { f.object("wire").require<int>("lanes"); }),
            "f.json: key \"wire\": key \"lanes\": expected integer, got boolean true");
}

TEST(JsonFields, NamesTheKeyOfATextThatCannotBeConverted) {
  const auto parse = [](JsonFields& f) {
    f.parse("x", [](const std::string& text) -> int { fail("{} is bad", text); });
  };
  EXPECT_EQ(field_error(R"({"x": "abc"})", parse), "f.json: key \"x\": abc is bad");
  EXPECT_EQ(field_error(R"({"x": 1})", parse), "f.json: key \"x\": expected string, got number 1");
  EXPECT_EQ(field_error("{}", parse), "f.json: key \"x\" is missing");
  const Json json{{"x", "7"}};
  EXPECT_EQ(JsonFields(json, "f.json").parse("x", [](const std::string& text) { return std::stoi(text); }), 7);
}

}  // namespace
}  // namespace verbscope
