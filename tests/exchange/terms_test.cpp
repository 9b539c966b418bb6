// What both sides of a run tell of themselves, and how it is compared.
#include "exchange/terms.hpp"

#include <gtest/gtest.h>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

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

TEST(Terms, AMemberOfAWrongTypeIsRefused) {
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

TEST(Mismatch, EqualSidesHaveNone) {
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

TEST(Mismatch, AnotherBuildIsToldWithTheWayOut) {
  Terms other = example_terms();
  other.version = "0.2.0";
  other.commit = "73c28d1";
  EXPECT_EQ(describe_mismatch(example_terms(), other),
            "version (here \"0.1.0\", there \"0.2.0\"), commit (here \"6cd2536\", there \"73c28d1\"); "
            "--any_build runs with another build");
}

TEST(Mismatch, AnyBuildOfEitherSideAllowsAnotherBuildAndNothingElse) {
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

TEST(Mismatch, ManyDifferencesAreCounted) {
  Terms other = example_terms();
  for (int i = 0; i < 30; ++i) other.parameters[fmt::format("p{}", i)] = i;
  const std::string line = describe_mismatch(example_terms(), other);
  EXPECT_THAT(line, HasSubstr("p19 (here absent, there 19), and 10 more"));
}

}  // namespace
}  // namespace verbscope
