// Written records against results/record.schema.json, checked by an independent validator (python3-jsonschema).
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>

#include "common/record.hpp"
#include "tests/common/sample_records.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

struct Verdict {
  int exit_code;
  std::string output;
};

Verdict validate(const std::filesystem::path& results) {
  const std::string command =
      fmt::format("/usr/bin/python3 '{0}/tests/common/validate_records.py' '{0}/results/record.schema.json' '{1}' 2>&1",
                  VERBSCOPE_SOURCE_DIR, results.string());
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw_errno("popen", errno);
  Verdict verdict{};
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) verdict.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  verdict.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return verdict;
}

constexpr int kNoValidator = 77;
constexpr int kNoPython = 127;

class Schema : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(dir / "probe", dump_json(to_json(sample_record())) + "\n");
    const Verdict verdict = validate(dir / "probe");
    if (verdict.exit_code != kNoValidator && verdict.exit_code != kNoPython) return;
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string(ci) == "true") FAIL() << verdict.output;
    GTEST_SKIP() << "cannot validate: " << verdict.output;
  }
  TempDir dir;
};

TEST_F(Schema, AcceptsWrittenRecords) {
  ResultsWriter writer(dir / "r.jsonl");
  writer.append(sample_record());
  writer.append(failed_record());
  Record partly_blind = sample_record();
  partly_blind.counters.at(0).unseen = {"mmio_wc_lines"};
  writer.append(partly_blind);
  Record on_null = sample_record();
  on_null.environment = make_environment("null", {});
  on_null.prediction = nullptr;
  on_null.counters.clear();
  writer.append(on_null);
  const Verdict verdict = validate(dir / "r.jsonl");
  EXPECT_EQ(verdict.exit_code, 0) << verdict.output;
}

TEST_F(Schema, AcceptsTheExampleOfTheDocumentation) {
  const std::string page = read_file(VERBSCOPE_SOURCE_DIR "/docs/records.md");
  const std::string fence = "```json\n";
  const std::size_t start = page.find(fence) + fence.size();
  const Json example = parse_json_text(page.substr(start, page.find("```", start) - start), "docs/records.md");
  EXPECT_NO_THROW(record_from_json(example, "docs/records.md"));
  write_file(dir / "r.jsonl", dump_json(example) + "\n");
  const Verdict verdict = validate(dir / "r.jsonl");
  EXPECT_EQ(verdict.exit_code, 0) << verdict.output;
}

TEST_F(Schema, RejectsBrokenRecordsWithTheirPlace) {
  const std::pair<const char*, Json> changes[] = {
      {"/schema", "verbscope.record/2"},
      {"/benchmark", "Send Rate"},
      {"/status", "fine"},
      {"/status", "failed"},
      {"/reason", "but it is ok"},
      {"/surprise", 1},
      {"/result", Json::object()},
      {"/counters/0/events/dma_read_lines", 1.5},
      {"/counters/0/events/surprise", 1},
      {"/counters/0/surprise", 1},
      {"/counters/0/window_s", -1},
      {"/prediction", 105},
      {"/environment/fabric", "simcib"},
      {"/environment/simulated", false},
      {"/environment/cores", 0},
      {"/environment/time_utc", "20.11.2026"},
  };
  std::string lines;
  int number = 0;
  for (const auto& [pointer, value] : changes) {
    Json json = to_json(sample_record());
    json[Json::json_pointer(pointer)] = value;
    lines += dump_json(json) + "\n";
    ++number;
  }
  for (const char* key : {"schema", "reason", "counters", "prediction", "environment"}) {
    Json json = to_json(sample_record());
    json.erase(key);
    lines += dump_json(json) + "\n";
    ++number;
  }
  write_file(dir / "r.jsonl", lines);
  const Verdict verdict = validate(dir / "r.jsonl");
  EXPECT_EQ(verdict.exit_code, 1);
  for (int line = 1; line <= number; ++line) {
    EXPECT_THAT(verdict.output, HasSubstr(fmt::format("r.jsonl:{}: ", line)));
  }
}

}  // namespace
}  // namespace verbscope
