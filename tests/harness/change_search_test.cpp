// The search for options that raise a rate, with a program whose rates are known.
#include "harness/what_if/change_search.hpp"

#include <functional>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// A program whose rate is known for all options. It rejects the values in `refused`.
class KnownProgram {
 public:
  explicit KnownProgram(std::function<double(const Json&)> rate) : rate_(std::move(rate)) {}

  ChangeSearch search(std::vector<OptionChoices> choices, RunBudget budget = {}) {
    return {std::move(choices), run(Json::object()), budget, [this](const std::vector<Json>& changes) {
              std::vector<TrialOutcome> out;
              for (const Json& each : changes) out.push_back(run(each));
              return out;
            }};
  }

  std::size_t runs = 0;

 private:
  TrialOutcome run(const Json& options) {
    const double rate = rate_(options);
    if (rate <= 0) return {.failure = "the program refuses it"};
    ++runs;
    return {.mops = rate, .gbit_per_s = rate / 2, .latency_us = 10 / rate};
  }

  std::function<double(const Json&)> rate_;
};

OptionChoices numbers(const std::string& name, int now, int high) {
  return {.option = name, .now = now, .number = true, .high = static_cast<double>(high)};
}

double value(const Json& options, const char* name, double fallback) {
  return options.value(name, fallback);
}

// Eight threads give 8 Mops, and each thread up to 14 one more; 15 and more are rejected.
TEST(ChangeSearch, FindsTheLargestAcceptedValue) {
  KnownProgram program([](const Json& options) {
    const double threads = value(options, "threads", 8);
    return threads > 14 ? 0 : threads;
  });
  const std::vector<TriedChange> found = program.search({numbers("threads", 8, 14)}).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].options, Json({{"threads", 14}}));
  EXPECT_EQ(found[0].text, "--threads 14 (now 8)");
  EXPECT_NEAR(found[0].outcome.mops, 14, 1e-9);
}

// From 128 down to 16 nothing changes; at 8 and below everything fits into the cache.
TEST(ChangeSearch, TriesFartherValuesAfterNoChange) {
  KnownProgram program([](const Json& options) { return value(options, "window", 128) <= 8 ? 100.0 : 50.0; });
  const std::vector<TriedChange> found = program.search({numbers("window", 128, 4096)}).find();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].options, Json({{"window", 8}}));
}

// A peak at double the value, and a cliff before four times the value.
TEST(ChangeSearch, TriesNearerValuesAfterALoss) {
  KnownProgram program([](const Json& options) {
    const double qp = value(options, "qp", 4);
    return qp > 8 ? 1.0 : qp;
  });
  const std::vector<TriedChange> found = program.search({numbers("qp", 4, 4096)}).find();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].options, Json({{"qp", 8}}));
}

// Lists gain 50 %, inlining alone gains nothing, and both together triple the rate.
TEST(ChangeSearch, CombinesAChangeThatHelpsOnlyWithAnother) {
  KnownProgram program([](const Json& options) {
    const bool list = value(options, "post_list", 1) > 1, inlined = value(options, "inline_size", 0) > 0;
    return list && inlined ? 30.0 : list ? 15.0 : 10.0;
  });
  const std::vector<TriedChange> found =
      program.search({numbers("post_list", 1, 64), {.option = "inline_size", .now = 0, .values = {100}}}).find();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0].outcome.mops, 30, 1e-9);
  EXPECT_EQ(found[0].options.size(), 2u);
  EXPECT_NEAR(found[1].outcome.mops, 15, 1e-9);
}

// Neither lists nor more QPs help alone.
TEST(ChangeSearch, FindsAPairWithoutSingleGains) {
  KnownProgram program([](const Json& options) {
    return value(options, "post_list", 1) > 1 && value(options, "qp", 1) > 1 ? 20.0 : 10.0;
  });
  const std::vector<TriedChange> found = program.search({numbers("post_list", 1, 64), numbers("qp", 1, 64)}).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].options.size(), 2u);
}

// Inlining needs a lock that threads share; it helps if each has its own register.
TEST(ChangeSearch, CombinesAHarmfulWordWithOwnRegisters) {
  KnownProgram program([](const Json& options) {
    const bool inlined = value(options, "inline_size", 0) > 0, own = options.contains("uars");
    return inlined ? (own ? 25.0 : 3.0) : 20.0;
  });
  const std::vector<TriedChange> found = program
                                             .search({{.option = "inline_size", .now = 0, .values = {32}},
                                                      {.option = "uars", .now = "default", .values = {"exclusive"}}})
                                             .find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].outcome.mops, 25, 1e-9);
}

TEST(ChangeSearch, RunsAllSingleChangesIfNothingHelps) {
  KnownProgram program([](const Json&) { return 10.0; });
  ChangeSearch search = program.search({numbers("qp", 4, 4096), {.option = "pages", .now = "4k", .values = {"2m"}}});
  EXPECT_TRUE(search.find().empty());
  EXPECT_EQ(search.neighbours(), search.neighbours_run());
  // 1, 2, 8, 16 and 64 QPs (a sixteenth is 1 again), and the other page size; the base run is the seventh.
  EXPECT_EQ(search.neighbours(), 6u);
  EXPECT_EQ(program.runs, 7u);
}

TEST(ChangeSearch, ObeysAGivenBudgetAndCountsTheRest) {
  KnownProgram program([](const Json&) { return 10.0; });
  std::vector<OptionChoices> many;
  for (const char* name : {"a", "b", "c", "d"}) many.push_back(numbers(name, 16, 4096));
  ChangeSearch search = program.search(many, parse_budget("3"));
  search.find();
  EXPECT_EQ(search.neighbours_run(), 3u);
  EXPECT_GT(search.neighbours(), 3u);
}

// One change reaches 20 Mops at most, two reach 40.
TEST(ChangeSearch, ReachesATargetWithTheFewestChanges) {
  const auto rate = [](const Json& options) {
    return 10 * (value(options, "threads", 1) > 1 ? 2.0 : 1) * (value(options, "qp", 1) > 1 ? 2.0 : 1) *
           (value(options, "cq_mod", 1) > 1 ? 1.1 : 1);
  };
  const auto reach = [&](const std::string& target) {
    KnownProgram program(rate);
    return program.search({numbers("cq_mod", 1, 64), numbers("threads", 1, 4), numbers("qp", 1, 4)})
        .reach(parse_target_rate(target));
  };
  EXPECT_TRUE(reach("9 Mops").options.empty());
  EXPECT_EQ(reach("20 Mops").options.size(), 1u);
  EXPECT_EQ(reach("40").options.size(), 2u);
  EXPECT_EQ(reach("22 Gb/s").options.size(), 3u);
  EXPECT_EQ(reach("0.5 us").options.size(), 1u);
  EXPECT_FALSE(parse_target_rate("100").reached(reach("100").outcome));
}

TEST(ChangeSearch, RejectsBadBudgetsAndTargets) {
  for (const char* text : {"", "x", "-1", "10 apples", "0 Mops", "1e999"})
    EXPECT_THAT(error_of([&] { parse_target_rate(text); }), testing::HasSubstr("--target")) << text;
  for (const char* text : {"", "ten", "-1", "12345678"})
    EXPECT_THAT(error_of([&] { parse_budget(text); }), testing::HasSubstr("--budget")) << text;
  EXPECT_EQ(parse_budget("0").runs, 0u);
  EXPECT_EQ(parse_budget("10s").time, std::chrono::seconds(10));
}

}  // namespace
}  // namespace verbscope
