// A benchmark's description of itself, and values for its options.
#include "harness/sweep/benchmarks.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

TEST(BenchmarkSpec, ReadsNamesTypesAndDefaults) {
  const BenchmarkSpec spec = parse_benchmark_spec(kFakeDescription, "d");
  EXPECT_EQ(spec.name, "send_rate");
  ASSERT_EQ(spec.options.size(), 8u);
  EXPECT_EQ(spec.require("load", "x").type, OptionType::number);
  EXPECT_EQ(spec.require("size", "x").default_value, 64);
  EXPECT_EQ(spec.find("nothing"), nullptr);
}

TEST(BenchmarkSpec, RejectsMalformedDescriptions) {
  EXPECT_THAT(error_of([] { parse_benchmark_spec("usage: send_rate", "send_rate --describe"); }),
              testing::StartsWith("send_rate --describe:1: "));
  EXPECT_EQ(error_of([] {
              parse_benchmark_spec(R"({"benchmark": "b", "options": [{"name": "n", "type": "colour"}]})", "d");
            }),
            R"(d: options[0]: type: expected integer, bytes, number, string, boolean or duration, got "colour")");
  EXPECT_THAT(error_of([] {
                parse_benchmark_spec(
                    R"({"benchmark": "b", "options": [{"name": "n", "type": "integer", "allowed": {"least": 1}}]})",
                    "d");
              }),
              testing::HasSubstr("d: options[0]: allowed: "));
}

TEST(BenchmarkSpec, ConvertsTextToTheTypeOfTheOption) {
  const BenchmarkSpec spec = parse_benchmark_spec(kFakeDescription, "d");
  const auto value = [&spec](const char* option, const char* text) {
    return dump_json(option_value_from_text(spec.require(option, "--set"), text, "--set"));
  };
  EXPECT_EQ(value("size", "60"), "60");
  EXPECT_EQ(value("load", "0.5"), "0.5");
  EXPECT_EQ(value("validate", "true"), "true");
  EXPECT_EQ(value("connection", "UD"), "\"UD\"");
  EXPECT_EQ(value("duration", "2ms"), "\"2ms\"");
  EXPECT_EQ(value("duration", "3"), "\"3\"");
  EXPECT_EQ(error_of([&] { value("size", "many"); }), R"(--set: "size": expected an integer, got "many")");
  EXPECT_EQ(error_of([&] { value("validate", "yes"); }), R"(--set: "validate": expected a boolean, got "yes")");
}

TEST(BenchmarkSpec, FormatsAValueAsOneArgument) {
  EXPECT_EQ(option_argument("size", 60), "--size=60");
  EXPECT_EQ(option_argument("validate", false), "--validate=false");
  EXPECT_EQ(option_argument("connection", "UD; rm -rf /"), "--connection=UD; rm -rf /");
}

}  // namespace
}  // namespace verbscope
