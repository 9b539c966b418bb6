// Limits found by runs: searches with a runner whose limits are known, the points that run again,
// and the messages if no run is possible.
#include "harness/what_if/what_if.hpp"

#include <fstream>

#include "analysis/explain.hpp"
#include "harness/what_if/change_search.hpp"
#include "harness/what_if/limit_search.hpp"
#include "harness/what_if/point_options.hpp"
#include "harness/what_if/simulated_runs.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using Set = std::vector<Resource>;

const Set kAll{Resource::outstanding,      Resource::requester_unit,    Resource::responder_unit, Resource::cpu,
               Resource::pcie_to_nic,      Resource::wire_out,          Resource::wqe_cache,      Resource::wqe_fetch,
               Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads};

// Each resource allows a rate that doubles with it. The rate of a run is the lowest of them.
class World {
 public:
  explicit World(std::map<Resource, double> allowed) : allowed_(std::move(allowed)) {}

  LimitSearch search(Set resources = kAll, Set apart = {}) {
    return {std::move(resources), std::move(apart), rate({}), [this](const std::vector<Set>& sets) {
              std::vector<TrialOutcome> out;
              for (const Set& set : sets) out.push_back(outcome(set));
              return out;
            }};
  }
  double rate(const Set& doubled) const {
    double least = 1e9;
    for (const auto& [resource, allowed] : allowed_) {
      const bool twice = std::ranges::find(doubled, resource) != doubled.end();
      least = std::min(least, twice ? 2 * allowed : allowed);
    }
    return least;
  }

  Set broken{};  // a run with one of these doubled fails
  int runs = 0;

 private:
  TrialOutcome outcome(const Set& doubled) {
    ++runs;
    const auto fails = [this](Resource each) { return std::ranges::find(broken, each) != broken.end(); };
    if (std::ranges::any_of(doubled, fails)) return {.failure = "no steady rate"};
    return {.mops = rate(doubled)};
  }

  std::map<Resource, double> allowed_;
};

// The closed form names latency as the limit; runs show that it is the translation cache. Four runs narrow it down to
// one of eight, and two runs each halve these: 4, 2, 1 remain.
TEST(LimitSearch, FindsTheLastCandidateWithFewRuns) {
  World world({{Resource::translation_cache, 10}, {Resource::cpu, 100}});
  const LimitSearch::Found found = world.search().find();
  EXPECT_EQ(found.limits, Set{Resource::translation_cache});
  EXPECT_NEAR(found.gain, 2, 1e-9);
  EXPECT_LE(world.runs, 4 + 2 * 3);
}

TEST(LimitSearch, StopsIfTheOthersTogetherGainNothing) {
  World world({{Resource::outstanding, 10}, {Resource::cpu, 100}});
  EXPECT_EQ(world.search().find().limits, Set{Resource::outstanding});
  EXPECT_EQ(world.runs, 4);  // latency, the two likeliest, all others together
}

// If two resources help, the one with the larger gain is the limit, although the other is more likely.
TEST(LimitSearch, ReturnsTheResourceWithTheLargestGain) {
  LimitSearch search({Resource::cpu, Resource::wire_out}, {}, 10, [](const std::vector<Set>& sets) {
    std::vector<TrialOutcome> out;
    for (const Set& set : sets) out.push_back({.mops = set[0] == Resource::cpu ? 13.0 : 14.0});
    return out;
  });
  const LimitSearch::Found found = search.find();
  EXPECT_EQ(found.limits, Set{Resource::wire_out});
  EXPECT_NEAR(found.gain, 1.4, 1e-9);
}

TEST(LimitSearch, FindsAPairWithoutSingleGains) {
  World world({{Resource::requester_unit, 10}, {Resource::pcie_to_nic, 10}, {Resource::cpu, 15}});
  const LimitSearch::Found found =
      world.search({Resource::requester_unit, Resource::cpu, Resource::pcie_to_nic}).find();
  EXPECT_EQ(found.limits, (Set{Resource::requester_unit, Resource::pcie_to_nic}));
  EXPECT_NEAR(found.gain, 1.5, 1e-9);
}

// Neither resource of the pair is among the likeliest: the set of all is reduced to the pair.
TEST(LimitSearch, FindsAPairAtAnyPosition) {
  World world({{Resource::wqe_fetch, 10}, {Resource::dma_reads, 10}, {Resource::cpu, 100}});
  const LimitSearch::Found found = world.search().find();
  EXPECT_EQ(found.limits, (Set{Resource::wqe_fetch, Resource::dma_reads}));
  EXPECT_NEAR(found.gain, 2, 1e-9);
}

// Doubling the wire alone gains a fifth, then the CPU is full: the wire alone is the limit.
TEST(LimitSearch, PrefersASingleResource) {
  World world({{Resource::wire_out, 10}, {Resource::cpu, 12}});
  const LimitSearch::Found found = world.search({Resource::cpu, Resource::wire_out, Resource::dma_reads}).find();
  EXPECT_EQ(found.limits, Set{Resource::wire_out});
  EXPECT_NEAR(found.gain, 1.2, 1e-9);
}

// 2 % is below the smallest gain, even for all resources together.
TEST(LimitSearch, FindsNothingIfNothingRaisesTheRate) {
  LimitSearch search(kAll, {}, 10, [](const std::vector<Set>& sets) {
    return std::vector<TrialOutcome>(sets.size(), TrialOutcome{.mops = 10.2});
  });
  EXPECT_TRUE(search.find().limits.empty());
}

// A group whose run fails is split; a resource that fails alone is reported and left out.
TEST(LimitSearch, ReportsAFailedRunAndContinues) {
  World world({{Resource::dma_reads, 10}, {Resource::cpu, 100}});
  world.broken = {Resource::wire_out};
  LimitSearch search = world.search();
  EXPECT_EQ(search.find().limits, Set{Resource::dma_reads});
  EXPECT_THAT(search.failed(), testing::Contains(testing::HasSubstr("no steady rate")));
  world.broken = kAll;
  EXPECT_TRUE(world.search().find().limits.empty());
}

// Doubling everything is never combined with others, because it would hide that they gain nothing.
TEST(LimitSearch, DoublesApartResourcesAlone) {
  bool mixed = false;
  LimitSearch search(kAll, {Resource::outstanding}, 10, [&mixed](const std::vector<Set>& sets) {
    std::vector<TrialOutcome> out;
    for (const Set& set : sets) {
      const bool latency = std::ranges::find(set, Resource::outstanding) != set.end();
      mixed = mixed || (latency && set.size() > 1);
      out.push_back({.mops = latency ? 12.0 : 10.2});
    }
    return out;
  });
  EXPECT_EQ(search.find().limits, Set{Resource::outstanding});
  EXPECT_FALSE(mixed);
}

// A program whose rate is known for all options. It rejects the values in `refused`.
class Program {
 public:
  explicit Program(std::function<double(const Json&)> rate) : rate_(std::move(rate)) {}

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
  Program program([](const Json& options) {
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
  Program program([](const Json& options) { return value(options, "window", 128) <= 8 ? 100.0 : 50.0; });
  const std::vector<TriedChange> found = program.search({numbers("window", 128, 4096)}).find();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].options, Json({{"window", 8}}));
}

// A peak at double the value, and a cliff before four times the value.
TEST(ChangeSearch, TriesNearerValuesAfterALoss) {
  Program program([](const Json& options) {
    const double qp = value(options, "qp", 4);
    return qp > 8 ? 1.0 : qp;
  });
  const std::vector<TriedChange> found = program.search({numbers("qp", 4, 4096)}).find();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].options, Json({{"qp", 8}}));
}

// Lists gain 50 %, inlining alone gains nothing, and both together triple the rate.
TEST(ChangeSearch, CombinesAChangeThatHelpsOnlyWithAnother) {
  Program program([](const Json& options) {
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
  Program program([](const Json& options) {
    return value(options, "post_list", 1) > 1 && value(options, "qp", 1) > 1 ? 20.0 : 10.0;
  });
  const std::vector<TriedChange> found = program.search({numbers("post_list", 1, 64), numbers("qp", 1, 64)}).find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].options.size(), 2u);
}

// Inlining needs a lock that threads share; it helps if each has its own register.
TEST(ChangeSearch, CombinesAHarmfulWordWithOwnRegisters) {
  Program program([](const Json& options) {
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
  Program program([](const Json&) { return 10.0; });
  ChangeSearch search = program.search({numbers("qp", 4, 4096), {.option = "pages", .now = "4k", .values = {"2m"}}});
  EXPECT_TRUE(search.find().empty());
  EXPECT_EQ(search.neighbours(), search.neighbours_run());
  // 1, 2, 8, 16 and 64 QPs (a sixteenth is 1 again), and the other page size; the base run is the seventh.
  EXPECT_EQ(search.neighbours(), 6u);
  EXPECT_EQ(program.runs, 7u);
}

TEST(ChangeSearch, ObeysAGivenBudgetAndCountsTheRest) {
  Program program([](const Json&) { return 10.0; });
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
    Program program(rate);
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

TEST(DoubleResources, HalvesTimesAndDoublesSizesOnce) {
  const Json profile = Json::parse(R"({"wire": {"pcie_lanes": {"value": 8}, "port_gbit_per_s": {"value": 56.5}},
    "link": {"mmio_gap_ns": {"value": 5}}, "host": {"doorbell_ns": {"value": 40}},
    "nic": {"next_packet_ns": {"value": 30}, "gather_ns": {"value": 0}, "wqe_cache_bytes": {"value": 100}}})");
  const auto twice = [&profile](const Set& resources, const char* section, const char* key) {
    return double_resources(profile, resources)[section][key]["value"];
  };
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "wire", "pcie_lanes"), 16);
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "link", "mmio_gap_ns"), 2.5);
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "host", "doorbell_ns"), 40);
  EXPECT_EQ(twice({Resource::wire_out}, "wire", "port_gbit_per_s"), 113.0);
  EXPECT_EQ(twice({Resource::requester_unit, Resource::responder_unit}, "nic", "next_packet_ns"), 15);
  EXPECT_EQ(twice({Resource::cpu, Resource::driver_lock}, "host", "doorbell_ns"), 20);
  EXPECT_EQ(double_speed(profile)["host"]["doorbell_ns"]["value"], 20);
  EXPECT_TRUE(can_double(profile, Resource::wqe_cache));
  EXPECT_FALSE(can_double(profile, Resource::dma_reads));    // no such parameter here
  EXPECT_FALSE(can_double(profile, Resource::outstanding));  // determined by options
}

// Every parameter in the table exists in each shipped profile.
TEST(DoubleResources, DoublesEveryResourceOfEveryShippedCluster) {
  for (const std::string& name : list_configs("clusters")) {
    const Json profile = read_json_file(find_config("clusters", name));
    for (const Resource each : kAll) EXPECT_EQ(can_double(profile, each), each != Resource::outstanding) << name;
  }
}

BenchmarkSpec fake_spec() {
  return parse_benchmark_spec(kFakeDescription, "fake");
}

TEST(PointOptions, EffectivePointLeavesOutOptionsOfHardware) {
  Record record = fake_record("sim:cib");
  record.config =
      Json{{"connection", "UD"}, {"size", 64},          {"post_list", 16}, {"validate", false}, {"clients", 3},
           {"load", 1.0},        {"duration_s", 0.002}, {"seed", 7},       {"ports", 2}};
  const Point point = effective_point(record, fake_spec());
  EXPECT_EQ(point.params, Json({{"connection", "UD"}, {"post_list", 16}, {"clients", 3}, {"duration", 0.002}}));
  EXPECT_EQ(point.seed, 7u);
  record.environment["simulated"] = false;
  EXPECT_FALSE(effective_point(record, fake_spec()).params.contains("duration"));
  EXPECT_EQ(with_options(point, {{"post_list", 32.0}}).params["post_list"], Json(32));
  EXPECT_EQ(with_options(point, {{"header_only", true}, {"size", 0}}).params.contains("size"), false);
}

TEST(PointOptions, DoublesQueuesAndOutstandingOperationsByOptions) {
  Record record = fake_record("sim:cib");
  const auto twice = [&record](Resource of) { return doubling_options(record, of); };
  record.config = Json{{"window", 16}, {"tx_depth", 128}, {"rx_depth", 8}, {"outs", 1}};
  EXPECT_EQ(twice(Resource::outstanding), Json({{"window", 32}}));
  EXPECT_EQ(twice(Resource::recv_queue), Json({{"rx_depth", 16}}));
  EXPECT_EQ(twice(Resource::reads_outstanding), Json({{"outs", 2}}));
  EXPECT_TRUE(twice(Resource::cpu).is_null());
  record.config["window"] = 128;
  EXPECT_EQ(twice(Resource::outstanding), Json({{"window", 256}, {"tx_depth", 256}}));
  record.config["window"] = 0;
  EXPECT_EQ(twice(Resource::outstanding), Json({{"tx_depth", 256}}));
  record.benchmark = "verb_latency";
  EXPECT_TRUE(twice(Resource::outstanding).is_null());
}

// The program chooses the options again that the command line does not give; `-l16` and `--post-list=16` give one.
TEST(PointOptions, PointAsGivenHasTheOptionsOfTheCommandLine) {
  Record record = fake_record("sim:cib");
  record.config = Json{{"connection", "UD"}, {"post_list", 16}, {"clients", 3}};
  record.environment["command_line"] = Json{"send_rate", "-l16"};
  BenchmarkSpec spec = fake_spec();
  for (OptionSpec& each : spec.options) {
    if (each.name == "post_list") each.letter = "l";
  }
  EXPECT_EQ(point_as_given(record, spec).params, Json({{"post_list", 16}}));
  record.environment["command_line"] = Json{"send_rate", "--post-list=16", "--connection", "UD"};
  EXPECT_EQ(point_as_given(record, spec).params, Json({{"connection", "UD"}, {"post_list", 16}}));
  record.environment.erase("command_line");
  EXPECT_EQ(point_as_given(record, spec).params.value("clients", 0), 3);
  EXPECT_EQ(command_text({.benchmark = "send_rate", .params = {{"events", true}, {"size", 60}}}, "sim:a b"),
            "send_rate --fabric 'sim:a b' --events --size 60");
}

// A program whose rate in Mops is the number of PCIe lanes of its profile (16 on cib). `body` runs
// before it writes the record.
struct Simulated {
  explicit Simulated(const std::string& body = "")
      : fake(
            "for a in \"$@\"; do case \"$a\" in --fabric=sim:*) p=${a#*sim:};; esac; done\n"
            "v=$(sed 's/.*\"pcie_lanes\":{\"value\":\\([0-9]*\\).*/\\1/' \"$p\")\n" +
                body + "\nsed \"s/\\\"rate_mops\\\":10.0/\\\"rate_mops\\\":$v/\" \"$record\" >> \"$out\"",
            "sim:cib") {}

  Explanation of(const Record& record, const std::string& cluster = "") {
    return explain_by_runs(record, {.folder = fake.folder(), .cluster = cluster, .jobs = 2}, cache);
  }
  static Record record(double rate, const std::string& fabric = "sim:cib") {
    Record out = fake_record(fabric);
    out.result["rate_mops"] = rate;
    out.config["window"] = 16;
    return out;
  }

  FakeBenchmark fake;
  RunCache cache;
};

TEST(WhatIf, RunsOverrideTheClosedForm) {
  Simulated simulated;
  const Record record = Simulated::record(16);  // no counters: the closed form cannot decide
  const Explanation it = simulated.of(record);
  EXPECT_EQ(it.not_run, "");
  ASSERT_TRUE(it.runs.has_value());
  EXPECT_EQ(it.runs->base_mops, 16);
  const Json json = explain_json(it);
  EXPECT_EQ(json.at("limits").size(), 1u) << json;
  EXPECT_EQ(json.at("limit").at("resource"), "pcie_to_nic");
  EXPECT_EQ(json.at("limit").at("gain"), 2);
  EXPECT_EQ(json.at("limit").at("by"), "run");
  EXPECT_EQ(json.at("no_change_helps"), true);  // its rate depends on no option
  EXPECT_THAT(explain_text(it), testing::AllOf(testing::HasSubstr("Doubling it: +100 % (simulated)"),
                                               testing::HasSubstr("Unchanged: 16.00 simulated Mops"),
                                               testing::HasSubstr("No change helps")));
}

TEST(WhatIf, RequiresAClusterAndASimilarRateForHardware) {
  Simulated simulated;
  const Record near = Simulated::record(14, "verbs"), far = Simulated::record(10, "verbs");
  EXPECT_THAT(simulated.of(near).not_run, testing::HasSubstr("--cluster"));
  EXPECT_EQ(simulated.of(near, "cib").not_run, "");
  const Explanation other = simulated.of(far, "cib");
  EXPECT_THAT(other.not_run, testing::HasSubstr("+60 %"));
  EXPECT_THAT(explain_text(other), testing::HasSubstr("Closed form only"));
  EXPECT_EQ(explain_json(other).at("limit"), Json());
}

TEST(WhatIf, ReportsWhyNoRunIsPossible) {
  EXPECT_THAT(Simulated("exit 3").of(Simulated::record(16)).not_run, testing::HasSubstr("exit status 3"));
  Simulated simulated;
  EXPECT_THAT(simulated.of(Simulated::record(16, "null")).not_run, testing::HasSubstr("\"null\""));
  EXPECT_THAT(simulated.of(Simulated::record(16, "sim:/none/x.json")).not_run, testing::HasSubstr("/none/x.json"));
  Record foreign = Simulated::record(16);
  foreign.benchmark = "own_rate";
  EXPECT_THAT(simulated.of(foreign).not_run, testing::HasSubstr("own_rate"));
}

TEST(WhatIf, ContinuesAfterAFailedRunOfOneResource) {
  const Record record = Simulated::record(16);
  const Explanation it = Simulated("grep -q '\"port_gbit_per_s\":{\"value\":109' \"$p\" && exit 3").of(record);
  EXPECT_EQ(it.not_run, "");
  ASSERT_EQ(it.limits.size(), 1u);
  EXPECT_EQ(capacity(it.limits[0].load.resource), Resource::pcie_to_nic);
}

// The second explanation repeats only the base run, because it needs its record.
TEST(WhatIf, CachesRunsBesideTheResults) {
  const TempFolder folder;
  const std::string file = folder.file("runs");
  {
    RunCache cache(file);
    cache.add("a", {.mops = 3, .gbit_per_s = 2, .latency_us = 1});
    cache.add("b", {.failure = "no rate"});
  }
  std::ofstream(file, std::ios::app) << "cut off {";
  const RunCache again(file);
  ASSERT_TRUE(again.find("a") && again.find("b"));
  EXPECT_EQ(again.find("a")->gbit_per_s, 2);
  EXPECT_EQ(again.find("b")->failure, "no rate");
  EXPECT_FALSE(again.find("c").has_value());
  EXPECT_EQ(run_cache_of("x/y.jsonl"), "x/y.jsonl.explain");
}

}  // namespace
}  // namespace verbscope
