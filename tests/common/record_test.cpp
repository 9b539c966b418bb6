#include "common/record.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/common/sample_records.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

TEST(Record, MatchesTheDocumentedTextExceptTheEnvironment) {
  Json json = to_json(sample_record());
  json.erase("environment");
  EXPECT_EQ(dump_json(json),
            R"({"schema":"verbscope.record/1","benchmark":"send_rate","status":"ok","reason":"",)"
            R"("config":{"transport":"UD","size_bytes":60},"result":{"rate_mops":101.6},)"
            R"("counters":[{"source":"sim","node":"server","blind":"","window_s":0.002,"events":{"dma_read_lines":12,)"
            R"("dma_write_full_lines":0,"dma_write_partial_lines":0,"mmio_wc_lines":0,"mmio_doorbells":0,)"
            R"("tlps_to_nic":0,"tlps_to_host":0,"bytes_to_nic":0,"bytes_to_host":0,"payload_bytes_to_nic":0,)"
            R"("payload_bytes_to_host":18446744073709551615},"extra":{"wqe_cache_misses":3}}],)"
            R"("prediction":{"binding":"mmio","rate_mops":105.0}})");
}

TEST(Record, RoundTrips) {
  for (const Record& record : {sample_record(), failed_record()}) {
    const std::string text = dump_json(to_json(record));
    EXPECT_EQ(dump_json(to_json(record_from_json(parse_json_text(text, "t"), "t"))), text);
  }
}

TEST(Record, EnvironmentHasFabricAndSimulated) {
  EXPECT_EQ(to_json(sample_record())["environment"]["fabric"], "sim:cib");
  EXPECT_EQ(to_json(sample_record())["environment"]["simulated"], true);
  EXPECT_EQ(to_json(failed_record())["environment"]["simulated"], false);
}

TEST(Record, RejectsAnotherSchemaVersion) {
  Json json = to_json(sample_record());
  json["schema"] = "verbscope.record/2";
  EXPECT_EQ(message_of<UnknownSchema>([&] { record_from_json(json, "r.jsonl:4"); }),
            "r.jsonl:4: record schema \"verbscope.record/2\" is not known; this program reads \"verbscope.record/1\"");
}

struct Broken {
  const char* pointer;
  Json value;
  const char* message;
};

TEST(Record, ReaderNamesTheInvalidKey) {
  const Broken cases[] = {
      {"/status", "may\nbe", "key \"status\": expected ok, failed or imported, got \"may\\nbe\""},
      {"/reason", "late", "key \"reason\" is not empty in a record that did not fail"},
      {"/benchmark", "", "key \"benchmark\" is empty"},
      {"/config", 3, "key \"config\": expected object, got number 3"},
      {"/extra", 1, "unknown key \"extra\""},
      {"/counters/0/events/dma_read_lines", -1,
       "counters[0]: key \"events\": key \"dma_read_lines\": expected integer"},
      {"/counters/0/events/surprise", 1, "counters[0]: key \"events\": unknown key \"surprise\""},
      {"/counters/0/window_s", -0.5, "key \"window_s\" is not a length of time"},
      {"/prediction", "fast", "key \"prediction\": expected object"},
      {"/environment/fabric", "sim:", "key \"fabric\": expected verbs, sim:NAME, null or host, got \"sim:\""},
      {"/environment/simulated", false, "key \"simulated\": does not fit the fabric \"sim:cib\""},
  };
  for (const auto& broken : cases) {
    Json json = to_json(sample_record());
    json[Json::json_pointer(broken.pointer)] = broken.value;
    EXPECT_THAT(message_of<Error>([&] { record_from_json(json, "r"); }), HasSubstr(broken.message));
  }
}

TEST(Record, WriterRejectsInvalidRecords) {
  Record record = failed_record();
  record.reason.clear();
  EXPECT_EQ(message_of<Error>([&] { to_json(record); }), "record: key \"reason\" is empty in a failed record");
  record = sample_record();
  record.counters[0].window_s = std::nan("");
  EXPECT_THROW(to_json(record), Error);
  record = sample_record();
  record.environment = Json::object();
  EXPECT_THROW(to_json(record), Error);
}

TEST(PointKey, DoesNotDependOnTheOrderOfKeys) {
  const Json one = parse_json_text(R"({"seed": 1, "params": {"b": [{"y": 1, "x": 2}], "a": 1}})", "t");
  const Json two = parse_json_text(R"({"params": {"a": 1, "b": [{"x": 2, "y": 1}]}, "seed": 1})", "t");
  EXPECT_EQ(point_key(one), R"({"params":{"a":1,"b":[{"x":2,"y":1}]},"seed":1})");
  EXPECT_EQ(point_key(one), point_key(two));
  EXPECT_NE(point_key(one), point_key(Json{{"params", one["params"]}, {"seed", 2}}));
}

}  // namespace
}  // namespace verbscope
