// Options of the command line, and their description by --describe.
#include "microbench/bench/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "common/error.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Line {
  CLI::App app;
  Options options;
  OptionTable table{app};

  explicit Line(const std::string& text) {
    add_common_options(table, options);
    app.parse(text);
  }
};

std::string refusal(const std::string& text) {
  try {
    Line line(text);
    check_options(line.options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Options, HavePerftestsNamesAndDefaults) {
  const Line line("");
  EXPECT_EQ(line.options.tx_depth, 128u);
  EXPECT_FALSE(line.options.rx_depth);  // 512: the plan's
  EXPECT_EQ(line.options.port, 18515u);
  EXPECT_EQ(line.options.gid_index, -1);
  const Line given("-c UD -s 60 -l 16 -I 64 -Q 32 -q 2 -t 256 -r 1024 -D 2ms -d mlx5_0 -i 1 -x 3 -p 4000 -m 1024");
  EXPECT_EQ(given.options.connection, Transport::ud);
  EXPECT_EQ(given.options.size, 60u);
  EXPECT_EQ(given.options.post_list, 16u);
  EXPECT_EQ(given.options.inline_size, 64u);
  EXPECT_EQ(given.options.cq_mod, 32u);
  EXPECT_EQ(given.options.qp, 2u);
  EXPECT_EQ(given.options.duration, std::chrono::milliseconds(2));
  EXPECT_EQ(given.options.ib_dev, "mlx5_0");
  EXPECT_EQ(given.options.gid_index, 3);
  EXPECT_EQ(given.options.mtu, 1024u);
}

TEST(Options, ChangedListsOptionsWithAnotherValueThanTheirDefault) {
  EXPECT_EQ(Line("").table.changed(), Json::array());
  EXPECT_EQ(Line("-l 16 -D 2ms --header_only --out_json_file r.jsonl").table.changed(),
            (Json{"header_only", "post_list", "duration"}));
  EXPECT_EQ(Line("--post_list 1 --tx_depth 128").table.changed(), Json::array()) << "the defaults, given";
}

TEST(Options, RefuseInvalidValues) {
  EXPECT_EQ(refusal("--header_only"), "accepted");
  EXPECT_EQ(refusal("--header_only -s 0"), "accepted");
  EXPECT_THAT(refusal("--header_only -s 8"), HasSubstr("--header_only sends no payload: leave out --size 8"));
  EXPECT_THAT(refusal("-l 129"), HasSubstr("--post_list 129 is more than the send queue holds (--tx_depth 128)"));
  EXPECT_EQ(refusal("-l 64 -Q 65"), "accepted");
  EXPECT_THAT(refusal("-l 64 -Q 66"), HasSubstr("--cq_mod 66 with --post_list 64 can wait for ever"));
  EXPECT_THAT(refusal("-n 100 -D 1"), HasSubstr("exclude each other"));
  EXPECT_THAT(refusal("--fabric simulated"), HasSubstr("expected verbs, sim:NAME or null, got \"simulated\""));
  EXPECT_THAT(refusal("-m 1000"), HasSubstr("expected 256, 512, 1024, 2048 or 4096, got 1000"));
  EXPECT_THAT(refusal("-i some"), HasSubstr("expected a number from 1 to 255, got \"some\""));
  EXPECT_THAT(refusal("-D 0"), HasSubstr("--duration 0: expected a time above 0"));
  EXPECT_EQ(refusal("--warmup 0"), "accepted");
  EXPECT_THAT(refusal("-c XRC"), HasSubstr("XRC"));
  EXPECT_THAT(refusal("-q 0"), HasSubstr("--qp: expected a whole number, 1 to 1048576, got \"0\""));
  for (const char* uars : {"default", "exclusive", "8", "512"}) {
    EXPECT_EQ(refusal(std::string("--uars ") + uars), "accepted") << uars;
  }
  for (const char* uars : {"shared", "6", "9", "514", "16x"}) {
    EXPECT_THAT(refusal(std::string("--uars ") + uars), HasSubstr("--uars: expected default, exclusive or an even"));
  }
}

TEST(Options, AcceptBytesWithUnitsAndWordsInEitherCase) {
  const Line line("-s 4k -I 1K -m 4K -c ud");
  EXPECT_EQ(line.options.size, 4096u);
  EXPECT_EQ(line.options.inline_size, 1024u);
  EXPECT_EQ(line.options.mtu, 4096u);
  EXPECT_EQ(line.options.connection, Transport::ud);
  EXPECT_EQ(line.table.values().at("size"), 4096);
  EXPECT_EQ(line.table.values().at("connection"), "UD");
  EXPECT_THAT(refusal("-s 3G"), HasSubstr("--size: expected bytes, 0 to 2G"));
  EXPECT_THAT(refusal("-l 4k"), HasSubstr("--post_list: expected a whole number"));
  EXPECT_THAT(refusal("-c RD"), HasSubstr("--connection: expected RC, UC or UD, got \"RD\"; did you mean RC?"));
}

std::string one_sided_refusal(const std::string& text) {
  try {
    test::OneSidedBenchmark benchmark;
    const test::OptionSet set(text, &benchmark);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OneSidedOptions, AcceptAWindowPerThread) {
  for (const char* line :
       {"--verb read --wait oldest --window 8", "--wait all --window 128 -q 4",
        "--verb read --wait all --window 8 -l 4", "--wait all --window 8 -l 8 -Q 8",
        "--verb read --wait oldest --window 8 --seen_by memory -Q 16 -q 4",
        "--wait oldest --window 8 --cq_per_qp -q 4 --order random", "--addresses random --alignment 1"}) {
    EXPECT_EQ(one_sided_refusal(line), "accepted") << line;
  }
}

TEST(OneSidedOptions, RefuseImpossibleWindows) {
  const auto expect = [](const char* line, const char* reason) {
    EXPECT_THAT(one_sided_refusal(line), HasSubstr(reason)) << line;
  };
  expect("--wait oldest", "--wait oldest: --window must be at least 1");
  expect("--wait all --window 129", "--window 129 is more than a send queue holds (--tx_depth 128)");
  expect("--wait all --window 8 -l 3", "--window 8: with --wait all expected a multiple of --post_list 3");
  expect("--wait oldest --window 8 -Q 4 -q 2", "--cq_mod 4: with --wait oldest expected 1");
  expect("--wait oldest --window 6 -Q 4", "--cq_mod 4: with --wait oldest expected 1");
  expect("--verb send --wait oldest --window 8", "--wait oldest: not with --verb send");
  expect("--cq_per_qp", "--cq_per_qp: only with --wait oldest or all");
  expect("--wait oldest --window 8 --cq_per_qp -e", "--events: not with --cq_per_qp");
  expect("--addresses random --alignment 64 --validate", "--validate: not with --alignment 64");
  expect("--alignment 1 --region_size 5000000000", "more than 2^32 such places");
}

TEST(OneSidedOptions, RefuseInvalidSharingOfQps) {
  const auto expect = [](const std::string& line, const char* reason) {
    EXPECT_THAT(one_sided_refusal("--threads_per_qp 4 --threads 6 --verb read " + line),
                HasSubstr(std::string("--threads_per_qp 4: ") + reason))
        << line;
  };
  const std::string all = "--wait all --window 8 ";
  expect("", "only with --wait oldest or all");
  expect(all + "--direction in", "only if the server alone posts");
  expect(all + "--fabric null", "not with --fabric null");
  expect(all + "-e", "not with --events");
  expect(all + "--uars exclusive", "not with --uars exclusive");
  expect(all + "-n 100", "with --iters 100 expected --threads");
  expect("--wait all --window 33",
         "with --window 33 up to 132 requests are outstanding, more than a send queue holds (--tx_depth 128)");
}

TEST(OneSidedOptions, RefuseToPollMemoryWithoutReads) {
  const auto expect = [](const std::string& line, const char* reason) {
    EXPECT_THAT(one_sided_refusal("--seen_by memory " + line), HasSubstr(reason)) << line;
  };
  const std::string read = "--verb read --wait oldest --window 8 ";
  expect("--verb read", "--seen_by memory: only with --wait oldest or all");
  expect("--verb write --wait oldest --window 8", "--seen_by memory: only with READs");
  expect(read + "-s 0", "--size must be at least 1");
  expect(read + "--fabric null", "--fabric null moves no bytes");
  expect(read + "--validate", "--validate: not with --seen_by memory");
  expect(read + "-e", "--events: not with --seen_by memory");
  expect(read + "--inline_recv 64", "--inline_recv: not with --seen_by memory");
}

TEST(Options, RefuseAHostIfOneProcessHasAllRoles) {
  Options options;
  options.fabric = "sim:cib";
  options.host = "node1";
  EXPECT_THROW(check_options(options), UsageError);
}

TEST(Cores, AreAListWithRanges) {
  EXPECT_THAT(parse_cores("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cores(""), IsEmpty());
  EXPECT_THROW(parse_cores("3-1"), UsageError);
  EXPECT_THROW(parse_cores("a"), UsageError);
  EXPECT_THROW(parse_cores("1,,2"), UsageError);
}

TEST(Describe, NamesTypeDefaultAndAllowedOfEachOption) {
  const Line line("");
  const Json description = line.table.describe("send_rate", "Rate of SENDs.", "-s 4k");
  EXPECT_EQ(description.at("benchmark"), "send_rate");
  const auto option = [&](const std::string& name) {
    for (const Json& each : description.at("options")) {
      if (each.at("name") == name) return each;
    }
    return Json();
  };
  EXPECT_EQ(option("post_list").at("type"), "integer");
  EXPECT_EQ(option("post_list").at("default"), 1);
  EXPECT_EQ(option("gid_index").at("allowed"), (Json{{"min", -1}, {"max", 255}}));
  EXPECT_EQ(option("connection").at("allowed"), Json::array({"RC", "UC", "UD"}));
  EXPECT_EQ(option("connection").at("default"), "RC");
  EXPECT_EQ(option("header_only").at("type"), "boolean");
  EXPECT_EQ(option("duration").at("type"), "duration");
  EXPECT_EQ(option("duration").at("allowed"), (Json{{"zero", false}}));
  EXPECT_EQ(option("warmup").at("allowed"), (Json{{"zero", true}}));
  EXPECT_TRUE(option("size").at("default").is_null());
  EXPECT_EQ(option("size").at("type"), "bytes");
  EXPECT_EQ(option("size").at("group"), "The operation");
  EXPECT_EQ(description.at("example"), "-s 4k");
}

TEST(Values, AreTheOptionsWithTheirDefaultsButNoSecret) {
  const Line line("-s 8 --secret hidden --warmup 2ms");
  const Json values = line.table.values();
  EXPECT_EQ(values.at("size"), 8);
  EXPECT_EQ(values.at("connection"), "RC");
  EXPECT_EQ(values.at("warmup_s"), 0.002);
  EXPECT_TRUE(values.at("cq_mod").is_null());
  EXPECT_FALSE(values.contains("secret"));
}

}  // namespace
}  // namespace verbscope
