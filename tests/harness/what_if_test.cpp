// Runs instead of the closed form: which resource is the limit, by a runner whose world is known; which points run
// again and how; and what is said where that is not possible.
#include "harness/what_if/what_if.hpp"

#include "analysis/explain.hpp"
#include "harness/what_if/limit_search.hpp"
#include "harness/what_if/point_again.hpp"
#include "harness/what_if/twice.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using Set = std::vector<Resource>;

const Set kAll{Resource::outstanding,      Resource::requester_unit,    Resource::responder_unit, Resource::cpu,
               Resource::pcie_to_nic,      Resource::wire_out,          Resource::wqe_cache,      Resource::wqe_fetch,
               Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads};

// A world in which each resource allows a rate, twice of it twice that, and the least of them is what comes.
class World {
 public:
  explicit World(std::map<Resource, double> allowed) : allowed_(std::move(allowed)) {}

  LimitSearch search(Set resources = kAll, Set apart = {}) {
    return {std::move(resources), std::move(apart), rate({}), [this](const std::vector<Trial>& trials) {
              std::vector<TrialOutcome> out;
              for (const Trial& trial : trials) out.push_back(outcome(trial.doubled));
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

  Set broken{};  // a run with twice of one of these fails
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

// The closed form takes latency for the limit, and runs show that it is the translations. Three runs tell that it is
// one of nine, and two each halve these: 5, 3, 2, 1 remain.
TEST(LimitSearch, FindsWhatTheClosedFormPutsLastWithFewRuns) {
  World world({{Resource::translation_cache, 10}, {Resource::cpu, 100}});
  LimitSearch search = world.search();
  const LimitSearch::Found found = search.find();
  ASSERT_TRUE(found.first.has_value());
  EXPECT_EQ(found.first->resource, Resource::translation_cache);
  EXPECT_NEAR(found.first->gain, 2, 1e-9);
  EXPECT_FALSE(found.second.has_value());
  EXPECT_NEAR(found.gain_of_all, 2, 1e-9);
  EXPECT_LE(world.runs, 3 + 2 * 4);
}

TEST(LimitSearch, AsksNoFurtherWhenAllOthersTogetherBringNothing) {
  World world({{Resource::outstanding, 10}, {Resource::cpu, 100}});
  EXPECT_EQ(world.search().find().first->resource, Resource::outstanding);
  EXPECT_EQ(world.runs, 3);
}

TEST(LimitSearch, TwoThatBringNothingAloneAreToldTogether) {
  World world({{Resource::requester_unit, 10}, {Resource::pcie_to_nic, 10}, {Resource::cpu, 15}});
  const LimitSearch::Found found =
      world.search({Resource::requester_unit, Resource::cpu, Resource::pcie_to_nic}).find();
  ASSERT_TRUE(found.first && found.second);
  EXPECT_EQ((std::set{found.first->resource, found.second->resource}),
            (std::set{Resource::requester_unit, Resource::pcie_to_nic}));
  EXPECT_NEAR(found.first->gain, 1, 1e-9);
  EXPECT_NEAR(found.gain_of_all, 1.5, 1e-9);
}

// Alone the wire brings a fifth, then the CPU is full; together they bring twice as much.
TEST(LimitSearch, ASecondThatTheFirstLeavesFullIsTold) {
  World world({{Resource::wire_out, 10}, {Resource::cpu, 12}});
  const LimitSearch::Found found = world.search({Resource::cpu, Resource::wire_out, Resource::dma_reads}).find();
  ASSERT_TRUE(found.first && found.second);
  EXPECT_EQ(found.first->resource, Resource::wire_out);
  EXPECT_NEAR(found.first->gain, 1.2, 1e-9);
  EXPECT_EQ(found.second->resource, Resource::cpu);
  EXPECT_NEAR(found.gain_of_all, 2, 1e-9);
}

TEST(LimitSearch, TwoThatBringAlikeAreBothTold) {
  LimitSearch search({Resource::cpu, Resource::wire_out}, {}, 10, [](const std::vector<Trial>& trials) {
    std::vector<TrialOutcome> out;
    for (const Trial& trial : trials)
      out.push_back({.mops = trial.doubled.size() == 2 ? 20.0 : trial.doubled[0] == Resource::cpu ? 14.0 : 13.0});
    return out;
  });
  const LimitSearch::Found found = search.find();
  ASSERT_TRUE(found.first && found.second);
  EXPECT_EQ(found.first->resource, Resource::cpu);
  EXPECT_NEAR(found.first->gain, 1.4, 1e-9);
  EXPECT_NEAR(found.second->gain, 1.3, 1e-9);
  EXPECT_NEAR(found.gain_of_all, 2, 1e-9);
}

TEST(LimitSearch, WhereNothingRaisesTheRateNothingIsNamed) {
  LimitSearch search(kAll, {}, 10, [](const std::vector<Trial>& trials) {
    return std::vector<TrialOutcome>(trials.size(), TrialOutcome{.mops = 10});
  });
  EXPECT_FALSE(search.find().first.has_value());
}

// A group with a run that fails is taken apart; who fails alone is told and takes no part.
TEST(LimitSearch, ARunThatFailsIsToldAndHidesNoOther) {
  World world({{Resource::dma_reads, 10}, {Resource::cpu, 100}});
  world.broken = {Resource::wire_out};
  LimitSearch search = world.search();
  const LimitSearch::Found found = search.find();
  ASSERT_TRUE(found.first.has_value());
  EXPECT_EQ(found.first->resource, Resource::dma_reads);
  EXPECT_THAT(search.failed(), testing::Contains(testing::HasSubstr("no steady rate")));
  world.broken = kAll;
  EXPECT_FALSE(world.search().find().first.has_value());
}

// Twice of everything is no group with others: it would hide that they bring nothing.
TEST(LimitSearch, WhatStandsApartIsDoubledWithNoOther) {
  bool mixed = false;
  LimitSearch search(kAll, {Resource::outstanding}, 10, [&mixed](const std::vector<Trial>& trials) {
    std::vector<TrialOutcome> out;
    for (const Trial& trial : trials) {
      const bool latency = std::ranges::find(trial.doubled, Resource::outstanding) != trial.doubled.end();
      mixed = mixed || (latency && trial.doubled.size() > 1);
      out.push_back({.mops = latency ? 12.0 : 10.4});
    }
    return out;
  });
  EXPECT_EQ(search.find().first->resource, Resource::outstanding);
  EXPECT_FALSE(mixed);
}

TEST(Twice, HalvesTimesDoublesSizesAndChangesASharedParameterOnce) {
  const Json profile = Json::parse(R"({"wire": {"pcie_lanes": {"value": 8}, "port_gbit_per_s": {"value": 56.5}},
    "link": {"mmio_gap_ns": {"value": 5}}, "host": {"doorbell_ns": {"value": 40}},
    "nic": {"next_packet_ns": {"value": 30}, "gather_ns": {"value": 0}, "wqe_cache_bytes": {"value": 100}}})");
  const auto twice = [&profile](const Set& resources, const char* section, const char* key) {
    return profile_with_twice(profile, resources)[section][key]["value"];
  };
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "wire", "pcie_lanes"), 16);
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "link", "mmio_gap_ns"), 2.5);
  EXPECT_EQ(twice({Resource::pcie_to_nic}, "host", "doorbell_ns"), 40);
  EXPECT_EQ(twice({Resource::wire_out}, "wire", "port_gbit_per_s"), 113.0);
  EXPECT_EQ(twice({Resource::requester_unit, Resource::responder_unit}, "nic", "next_packet_ns"), 15);
  EXPECT_EQ(twice({Resource::cpu, Resource::driver_lock}, "host", "doorbell_ns"), 20);
  EXPECT_EQ(twice_as_fast(profile)["host"]["doorbell_ns"]["value"], 20);
  EXPECT_TRUE(can_double(profile, Resource::wqe_cache));
  EXPECT_FALSE(can_double(profile, Resource::dma_reads));    // no such parameter here
  EXPECT_FALSE(can_double(profile, Resource::outstanding));  // options do
}

// Every parameter that the table names is one of each profile that ships.
TEST(Twice, EveryResourceCanBeDoubledOnEveryClusterThatShips) {
  for (const std::string& name : list_configs("clusters")) {
    const Json profile = read_json_file(find_config("clusters", name));
    for (const Resource each : kAll) EXPECT_EQ(can_double(profile, each), each != Resource::outstanding) << name;
  }
}

BenchmarkSpec fake_spec() {
  return parse_benchmark_spec(kFakeDescription, "fake");
}

TEST(PointAgain, HasTheOptionsInForceAndNotThoseOfHardware) {
  Record record = fake_record("sim:cib");
  record.config =
      Json{{"connection", "UD"}, {"size", 64},          {"post_list", 16}, {"validate", false}, {"clients", 3},
           {"load", 1.0},        {"duration_s", 0.002}, {"seed", 7},       {"ports", 2}};
  const Point point = point_again(record, fake_spec());
  EXPECT_EQ(point.params, Json({{"connection", "UD"}, {"post_list", 16}, {"clients", 3}, {"duration", 0.002}}));
  EXPECT_EQ(point.seed, 7u);
  record.environment["simulated"] = false;
  EXPECT_FALSE(point_again(record, fake_spec()).params.contains("duration"));
  EXPECT_EQ(with_options(point, {{"post_list", 32.0}}).params["post_list"], Json(32));
  EXPECT_EQ(with_options(point, {{"header_only", true}, {"size", 0}}).params.contains("size"), false);
}

TEST(PointAgain, TwiceAsManyUnderWayIsAnOptionButForThoseThatKeepOne) {
  Record record = fake_record("sim:cib");
  record.config = Json{{"window", 16}, {"tx_depth", 128}};
  EXPECT_EQ(twice_outstanding(record), Json({{"window", 32}}));
  record.config["window"] = 128;
  EXPECT_EQ(twice_outstanding(record), Json({{"window", 256}, {"tx_depth", 256}}));
  record.config["window"] = 0;
  EXPECT_EQ(twice_outstanding(record), Json({{"tx_depth", 256}}));
  record.benchmark = "verb_latency";
  EXPECT_TRUE(twice_outstanding(record).is_null());
}

// A program whose rate in Mops is the number of PCIe lanes of the profile that it is given, 16 on cib; `body` runs
// before it writes that.
struct Simulated {
  explicit Simulated(const std::string& body = "")
      : fake(
            "for a in \"$@\"; do case \"$a\" in --fabric=sim:*) p=${a#*sim:};; esac; done\n"
            "v=$(sed 's/.*\"pcie_lanes\":{\"value\":\\([0-9]*\\).*/\\1/' \"$p\")\n" +
                body + "\nsed \"s/\\\"rate_mops\\\":10.0/\\\"rate_mops\\\":$v/\" \"$record\" >> \"$out\"",
            "sim:cib") {}

  WhatIf of(const Record& record, const std::string& cluster = "") const {
    return what_if(record, {.folder = fake.folder(), .cluster = cluster, .jobs = 2});
  }
  static Record record(double rate, const std::string& fabric = "sim:cib") {
    Record out = fake_record(fabric);
    out.result["rate_mops"] = rate;
    out.config["window"] = 16;
    return out;
  }

  FakeBenchmark fake;
};

TEST(WhatIf, RunsNameTheLimitWhateverTheClosedFormSays) {
  const Simulated simulated;
  const Record record = Simulated::record(16);  // nothing was counted: the closed form does not decide
  const WhatIf runs = simulated.of(record);
  EXPECT_EQ(runs.not_run, "");
  EXPECT_EQ(runs.base_mops, 16);
  const Json json = explain_json(record, &runs);
  EXPECT_EQ(json.at("limits").size(), 1u) << json;
  EXPECT_EQ(json.at("limit").at("resource"), "pcie_to_nic");
  EXPECT_EQ(json.at("limit").at("gain"), 2);
  EXPECT_EQ(json.at("limit").at("by"), "run");
  EXPECT_EQ(json.at("what_if").at("runs"), runs.runs);
  EXPECT_THAT(explain_text(record, 0, &runs), testing::AllOf(testing::HasSubstr("Twice of it gives +100 %, simulated"),
                                                             testing::HasSubstr("as it is 16.00 simulated Mops")));
}

TEST(WhatIf, ARecordOfHardwareNeedsItsClusterAndARateThatIsAlike) {
  const Simulated simulated;
  const Record near = Simulated::record(14, "verbs"), far = Simulated::record(10, "verbs");
  EXPECT_THAT(simulated.of(near).not_run, testing::HasSubstr("--cluster"));
  EXPECT_EQ(simulated.of(near, "cib").not_run, "");
  const WhatIf other = simulated.of(far, "cib");
  EXPECT_THAT(other.not_run, testing::HasSubstr("+60 % off"));
  EXPECT_EQ(other.base_mops, 16);
  const std::string text = explain_text(far, 0, &other);
  EXPECT_THAT(text,
              testing::HasSubstr("Limits and gains are those of the closed form: the simulated rate is +60 % off"));
  EXPECT_EQ(explain_json(far, &other).at("limit"), Json());
}

TEST(WhatIf, WhereTheBaseRunFailsOrNothingCanRunTheReasonIsTold) {
  EXPECT_THAT(Simulated("exit 3").of(Simulated::record(16)).not_run, testing::HasSubstr("exit status 3"));
  const Simulated simulated;
  EXPECT_THAT(simulated.of(Simulated::record(16, "null")).not_run, testing::HasSubstr("\"null\""));
  EXPECT_THAT(simulated.of(Simulated::record(16, "sim:/none/x.json")).not_run, testing::HasSubstr("/none/x.json"));
  Record foreign = Simulated::record(16);
  foreign.benchmark = "own_rate";
  EXPECT_THAT(simulated.of(foreign).not_run, testing::HasSubstr("own_rate"));
}

TEST(WhatIf, AFailingRunOfOneResourceLeavesTheOthers) {
  const WhatIf runs =
      Simulated("grep -q '\"port_gbit_per_s\":{\"value\":109' \"$p\" && exit 3").of(Simulated::record(16));
  EXPECT_EQ(runs.not_run, "");
  EXPECT_EQ(runs.diagnosis.binding->load.resource, Resource::pcie_to_nic);
}

}  // namespace
}  // namespace verbscope
