// Limits found by runs: doubled profiles, the points that run again, and the messages if no run is possible.
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
    for (const Resource each :
         {Resource::outstanding, Resource::requester_unit, Resource::responder_unit, Resource::cpu,
          Resource::pcie_to_nic, Resource::wire_out, Resource::wqe_cache, Resource::wqe_fetch,
          Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads})
      EXPECT_EQ(can_double(profile, each), each != Resource::outstanding) << name;
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

// Twice the credits need twice the RECVs. A queue that the command line gives is a limit of its own.
TEST(PointOptions, DoublesCreditsOfRpcs) {
  Record record = fake_record("sim:cx4");
  record.benchmark = "rpc_rate";
  record.config = Json{{"credits", 8}, {"rx_depth", 512}, {"cc", "none"}};
  record.result = Json{{"sessions", 10}, {"recvs", 481}};
  const auto twice = [&record](Resource of) { return doubling_options(record, of); };
  EXPECT_EQ(twice(Resource::credits), Json({{"credits", 16}}));
  EXPECT_TRUE(twice(Resource::recv_queue).is_null());
  EXPECT_TRUE(twice(Resource::rate_limiter).is_null());
  record.result["sessions"] = 40;
  EXPECT_EQ(twice(Resource::credits), Json({{"credits", 16}, {"rx_depth", 1024}}));
  record.environment["options_set"] = Json{"rx_depth"};
  EXPECT_TRUE(twice(Resource::credits).is_null());
  EXPECT_EQ(twice(Resource::recv_queue), Json({{"credits", 16}, {"rx_depth", 1024}}));
  record.config["cc"] = "timely";
  EXPECT_EQ(twice(Resource::rate_limiter), Json({{"cc", "none"}}));
  record.config["rto_s"] = 0.005;
  EXPECT_TRUE(twice(Resource::timeouts).is_null());
  record.result["timeouts"] = 3;
  EXPECT_EQ(twice(Resource::timeouts), Json({{"rto", "2500us"}}));
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
  Record of_programs = Simulated::record(16);
  of_programs.benchmark = "simulate";
  EXPECT_THAT(simulated.of(of_programs).not_run, testing::HasSubstr("not run again"));
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
