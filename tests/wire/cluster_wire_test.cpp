// The wire section of a profile: the real ones, and every mistake a person can make in one.
#include "wire/cluster_wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/json.hpp"

namespace verbscope {
namespace {

const std::string kClusters = VERBSCOPE_SOURCE_DIR "/configs/clusters";

std::vector<std::string> profiles() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kClusters)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  return paths;
}

Json cib_profile() {
  return read_json_file(kClusters + "/cib.json");
}

std::string error_of(const Json& profile) {
  try {
    read_cluster_wire(profile, "x.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ClusterWire, CibMatchesThePaper) {
  const ClusterWire wire = read_cluster_wire(cib_profile(), "cib.json");
  EXPECT_EQ(wire.name, "cib");
  EXPECT_EQ(wire.family, NicFamily::mlx5);
  EXPECT_EQ(wire.ports, 2);
  EXPECT_NEAR(wire.pcie.bandwidth().value, 15753.6e6, 1);
  EXPECT_EQ(wire.pcie.request_header, Bytes(26));
  EXPECT_EQ(wire.pcie.completion_header, Bytes(22));
  EXPECT_EQ(wire.pcie.rcb, Bytes(128));
  EXPECT_EQ(wire.pcie.completion, Bytes(128));
  EXPECT_NEAR(wire.port_rate.value, 54.54e9 / 8, 1);
}

TEST(ClusterWire, EachProfileIsValid) {
  for (const std::string& path : profiles()) EXPECT_NO_THROW(read_cluster_wire(read_json_file(path), path)) << path;
}

// Whatever is not a parameter with value, source and cite is a section of such, or one of the file's own words.
void expect_sources(const Json& node, const std::string& where) {
  if (node.contains("value")) {
    EXPECT_THAT(node.value("source", ""), testing::AnyOf("documented", "calibrated", "assumed")) << where;
    EXPECT_FALSE(node.value("cite", "").empty()) << where;
    return;
  }
  for (const auto& [key, child] : node.items()) {
    EXPECT_TRUE(child.is_object()) << where << "." << key << " has no source";
    if (child.is_object()) expect_sources(child, where + "." + key);
  }
}

TEST(ClusterWire, EachParameterHasSourceAndCite) {
  for (const std::string& path : profiles()) {
    Json profile = read_json_file(path);
    for (const char* word : {"schema", "name", "description"}) profile.erase(word);
    expect_sources(profile, path);
  }
}

TEST(ClusterWire, ErrorNamesMissingOrUnknownKey) {
  Json profile = cib_profile();
  profile["wire"].erase("pcie_lanes");
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::StartsWith("x.json"), testing::HasSubstr("pcie_lanes")));
  profile = cib_profile();
  profile["wire"]["pcie_lane"] = profile["wire"]["pcie_lanes"];
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::StartsWith("x.json"), testing::HasSubstr("\"pcie_lane\"")));
  profile = cib_profile();
  profile.erase("wire");
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::StartsWith("x.json"), testing::HasSubstr("wire")));
}

TEST(ClusterWire, ErrorInARecordNamesAMissingKeyOnce) {
  Json json = to_json(read_cluster_wire(cib_profile(), "x.json"));
  json.erase("nic_family");
  try {
    wire_from_json(json, "record");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "record: key \"nic_family\" is missing");
  }
}

// All completions of older versions ended at the RCB.
TEST(ClusterWire, ReadsRecordsWithoutTheLargestCompletion) {
  Json json = to_json(read_cluster_wire(cib_profile(), "x.json"));
  json.erase("pcie_completion_bytes");
  json["pcie_rcb_bytes"] = 64;
  EXPECT_EQ(wire_from_json(json, "record").pcie.completion, Bytes(64));
}

TEST(ClusterWire, RefusesOtherSchema) {
  Json profile = cib_profile();
  profile["schema"] = "verbscope.cluster/2";
  EXPECT_THAT(error_of(profile), testing::HasSubstr("key \"schema\": \"verbscope.cluster/2\" is not supported"));
  profile.erase("schema");
  EXPECT_THAT(error_of(profile), testing::HasSubstr("key \"schema\" is missing"));
}

TEST(ClusterWire, ErrorNamesExpectedType) {
  Json profile = cib_profile();
  profile["wire"]["pcie_lanes"]["value"] = "16";
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::HasSubstr("pcie_lanes"), testing::HasSubstr("integer")));
  profile["wire"]["pcie_lanes"] = 16;
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::HasSubstr("pcie_lanes"), testing::HasSubstr("object")));
}

TEST(ClusterWire, ParameterRequiresSourceAndCite) {
  Json profile = cib_profile();
  profile["wire"]["ports"].erase("source");
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::HasSubstr("ports"), testing::HasSubstr("source")));
  profile = cib_profile();
  profile["wire"]["ports"]["source"] = "guess";
  EXPECT_THAT(error_of(profile),
              testing::HasSubstr("'guess' is not a source; allowed are documented, measured, calibrated, "
                                 "learned, assumed"));
  profile = cib_profile();
  profile["wire"]["ports"]["cite"] = "";
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::HasSubstr("ports"), testing::HasSubstr("cite")));
  profile = cib_profile();
  profile["wire"]["ports"]["comment"] = "x";
  EXPECT_THAT(error_of(profile), testing::AllOf(testing::HasSubstr("ports"), testing::HasSubstr("comment")));
}

TEST(ClusterWire, LearnedParameterRequiresRecordsAndInterval) {
  const auto with = [](const Json& more) {
    Json profile = cib_profile();
    Json& ports = profile["wire"]["ports"];
    ports["source"] = "learned";
    ports.update(more);
    return error_of(profile);
  };
  EXPECT_EQ(with({{"row", "mine.jsonl"}, {"interval", {1.5, 2.5}}}), "");
  EXPECT_THAT(with({{"row", ""}, {"interval", {1, 2}}}), testing::HasSubstr("row"));
  EXPECT_THAT(with({{"row", "mine.jsonl"}}), testing::HasSubstr("interval"));
  EXPECT_THAT(with({{"row", "mine.jsonl"}, {"interval", {2, 1}}}), testing::HasSubstr("the smaller one first"));
}

TEST(ClusterWire, AssumedParameterMayHaveAnInterval) {
  const auto with = [](const char* source, const Json& interval) {
    Json profile = cib_profile();
    Json& ports = profile["wire"]["ports"];
    ports["source"] = source;
    ports["interval"] = interval;
    return error_of(profile);
  };
  EXPECT_EQ(with("assumed", {1, 2}), "");
  EXPECT_THAT(with("assumed", {2, 1}), testing::HasSubstr("the smaller one first"));
  EXPECT_THAT(with("documented", {1, 2}), testing::HasSubstr("interval"));
}

TEST(ClusterWire, RefusesValuesOutOfRange) {
  const auto with = [](const char* key, const Json& value) {
    Json profile = cib_profile();
    profile["wire"][key]["value"] = value;
    return error_of(profile);
  };
  EXPECT_THAT(with("ports", 0), testing::HasSubstr("0 is outside 1 to 8"));
  EXPECT_THAT(with("pcie_generation", 7), testing::HasSubstr("7 is outside 1 to 6"));
  EXPECT_THAT(with("pcie_mrrs_bytes", 500), testing::HasSubstr("500 is not a power of two"));
  EXPECT_THAT(with("pcie_rcb_bytes", 512), testing::HasSubstr("512 is outside 64 to 256"));
  EXPECT_THAT(with("pcie_completion_bytes", 64), testing::HasSubstr("64 is outside 128 to 256"));
  EXPECT_THAT(with("port_gbit_per_s", -1), testing::HasSubstr("-1 is outside 0.1 to 10000"));
  EXPECT_THAT(with("port_gbit_per_s", 1e300), testing::HasSubstr("is outside 0.1 to 10000"));
  EXPECT_THAT(with("nic_family", "mlx6"), testing::HasSubstr("NIC family 'mlx6' is unknown: one of mlx4, mlx5"));
}

// 16 GT/s, the rate of generation 4, on a link of generation 3.
TEST(ClusterWire, RefusesLaneRateOfOtherGeneration) {
  Json profile = cib_profile();
  profile["wire"]["pcie_lane_mb_per_s"]["value"] = 1969.2;
  EXPECT_THAT(error_of(profile), testing::HasSubstr("1969.2 contradicts pcie_generation 3, which has 984.6"));
  profile["wire"]["pcie_generation"]["value"] = 4;
  EXPECT_EQ(read_cluster_wire(profile, "x.json").pcie.lane_mb_per_s, 1969.2);
}

TEST(Names, ConvertInBothDirections) {
  for (const VerbFacts& verb : kVerbs) EXPECT_EQ(verb_from(verb.name), verb.value);
  for (const TransportFacts& transport : kBenchmarkTransports)
    EXPECT_EQ(transport_from(transport.name), transport.value);
  for (const FamilyFacts& family : kFamilies) EXPECT_EQ(nic_family_from(family.name), family.value);
  EXPECT_THROW(transport_from("ud"), Error);
  EXPECT_THROW(verb_from("SEND"), Error);
}

// InfiniBand Architecture Specification 1.3, volume 1, section 9.4, table of operations by transport.
TEST(Verbs, OfATransport) {
  EXPECT_TRUE(facts(Transport::ud).verbs.has(Verb::send));
  EXPECT_TRUE(facts(Transport::uc).verbs.has(Verb::write));
  EXPECT_TRUE(facts(Transport::rc).verbs.has(Verb::fetch_add));
  EXPECT_FALSE(facts(Transport::uc).verbs.has(Verb::read));
  EXPECT_FALSE(facts(Transport::ud).verbs.has(Verb::write));
}

}  // namespace
}  // namespace verbscope
