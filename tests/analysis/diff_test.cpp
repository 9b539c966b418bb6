// Differences between two results files: verdicts, environments and the gate.
#include "analysis/diff.hpp"

#include <CLI/CLI.hpp>

#include "tests/analysis/draw.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

std::vector<Record> runs(const std::vector<double>& rates, int post_list = 1, const std::string& fabric = "sim:cib") {
  std::vector<Record> out;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    out.push_back(sweep_record(Json{{"post_list", post_list}}, rates[i], static_cast<int>(i), fabric));
  }
  return out;
}

std::vector<Record> joined(std::vector<Record> a, const std::vector<Record>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Diff diff_at(const std::vector<Record>& base, const std::vector<Record>& other, double percent) {
  return diff_records(base, other, {.threshold_percent = percent});
}

ChangeVerdict verdict_at(const std::vector<Record>& base, const std::vector<Record>& other, double percent) {
  return diff_at(base, other, percent).rows.at(0).verdict;
}

// Runs of a deterministic cluster are bit-identical, but sums of 2 and of 7 of them round differently.
TEST(Diff, EqualValuesAreEquivalentForAnyCount) {
  for (int i = 1; i <= 100; ++i) {
    const double rate = 0.7 * i;
    for (const std::size_t many : {3, 7, 100}) {
      const auto few = runs({rate, rate}), more = runs(std::vector<double>(many, rate));
      EXPECT_EQ(verdict_at(few, more, 1), ChangeVerdict::equivalent) << rate << ", " << many << " runs";
      EXPECT_EQ(verdict_at(more, few, 1), ChangeVerdict::equivalent) << rate << ", " << many << " runs";
      EXPECT_EQ(verdict_at(more, few, 0), ChangeVerdict::inconclusive) << "nothing is nearer than a threshold of 0";
    }
  }
}

// A difference of a millionth in every run is not rounding.
TEST(Diff, SmallLossWithoutSpreadIsSlower) {
  const auto base = runs({80, 80}), other = runs({79.99992, 79.99992, 79.99992});
  EXPECT_EQ(verdict_at(base, other, 0), ChangeVerdict::slower);
  EXPECT_EQ(verdict_at(base, other, 1), ChangeVerdict::equivalent);
}

TEST(Diff, EachVerdictOccurs) {
  const auto base = joined(joined(runs({80, 80.4, 79.6, 80.2, 79.8}), runs({100, 110, 90, 105, 95}, 16)),
                           runs({50, 50.1, 49.9, 50.2, 49.8}, 4));
  const auto slowed = joined(joined(runs({76, 76.4, 75.6, 76.2, 75.8}), runs({95, 104, 86, 100, 90}, 16)),
                             runs({50.1, 50.2, 49.8, 50.1, 49.9}, 4));
  const auto rows = diff_at(base, slowed, 2).rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].verdict, ChangeVerdict::slower);
  EXPECT_NEAR(rows[0].ratio, 0.95, 1e-4);
  EXPECT_EQ(rows[1].verdict, ChangeVerdict::inconclusive);
  EXPECT_TRUE(rows[1].could_decide);
  EXPECT_GT(rows[1].repetitions, 5);
  EXPECT_EQ(rows[2].verdict, ChangeVerdict::equivalent);
  EXPECT_EQ(diff_at(slowed, base, 2).rows[0].verdict, ChangeVerdict::faster);
}

// 5 % less is a change, but it is neither significantly above nor below a threshold of 5 %.
TEST(Diff, ChangeEqualToTheThresholdIsInconclusive) {
  const auto base = runs({80, 80.4, 79.6, 80.2, 79.8}), other = runs({76, 76.4, 75.6, 76.2, 75.8});
  EXPECT_EQ(verdict_at(base, other, 5), ChangeVerdict::inconclusive);
  EXPECT_EQ(verdict_at(base, other, 10), ChangeVerdict::equivalent);
}

TEST(Diff, OneRunPerSideIsInconclusive) {
  const auto diff = diff_at(runs({80}), runs({40, 41, 42}), 3);
  EXPECT_EQ(diff.rows[0].verdict, ChangeVerdict::inconclusive);
  EXPECT_FALSE(diff.rows[0].interval);
  const std::string text = diff_text(diff);
  const std::size_t said = text.find("no evidence");
  EXPECT_NE(said, std::string::npos) << text;
  EXPECT_EQ(text.find("no evidence", said + 1), std::string::npos) << text;
  EXPECT_THAT(text, testing::HasSubstr("-48.")) << "the change is shown all the same";
}

TEST(Diff, PointsOfOneSideAreListed) {
  const auto diff = diff_at(runs({80, 81}, 1), runs({80, 81}, 2), 0);
  ASSERT_EQ(diff.rows.size(), 2u);
  EXPECT_EQ(diff.rows[0].verdict, ChangeVerdict::only_base);
  EXPECT_EQ(diff.rows[1].verdict, ChangeVerdict::only_new);
  EXPECT_NE(gate_failure(diff, false), "") << "no point has a partner";
  const auto more = diff_at(runs({80, 81}, 1), joined(runs({80, 81}, 1), runs({80, 81}, 2)), 3);
  EXPECT_EQ(more.rows.at(1).verdict, ChangeVerdict::only_new);
  EXPECT_EQ(gate_failure(more, false), "");
  EXPECT_NE(gate_failure(more, true), "");
}

TEST(Diff, ChangedProfileMatchesButAnotherClusterDoesNot) {
  const auto base = runs({80, 81});
  EXPECT_EQ(diff_at(base, runs({80, 81}, 1, "sim:/tmp/slow/cib.json"), 3).rows.size(), 1u);
  EXPECT_EQ(diff_at(base, runs({80, 81}, 1, "sim:cx3"), 3).rows.size(), 2u);
}

TEST(Diff, GateFailsAboveTheThreshold) {
  const auto base = runs({100, 100.1, 99.9}), other = runs({96, 96.1, 95.9});
  EXPECT_EQ(gate_failure(diff_at(base, other, 5), true), "");
  EXPECT_NE(gate_failure(diff_at(base, other, 3), false), "");
  EXPECT_EQ(gate_failure(diff_at(other, base, 3), true), "") << "faster is no fault";
  const auto noisy = diff_at(runs({100, 130}), runs({90, 120}), 3);
  EXPECT_EQ(gate_failure(noisy, false), "");
  EXPECT_NE(gate_failure(noisy, true), "");
}

TEST(Diff, NewFailureFailsTheGate) {
  auto after = runs({80, 81});
  after[1].status = RecordStatus::failed;
  after[1].reason = "no end after 3 s";
  const auto diff = diff_at(runs({80, 81}), after, 50);
  EXPECT_EQ(diff.rows[0].verdict, ChangeVerdict::failed);
  EXPECT_NE(gate_failure(diff, false), "");
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("no end after 3 s"));
}

// A loss of 3 % at one of five points, 1 % of noise, ten repetitions, a threshold of 1 %. The difference beyond the
// margin is 4.56 standard errors of 0.447 %; Holm's first step asks for t(0.995; 18) = 2.88: 94 in 100 by the normal
// approximation to the noncentral t, and three deviations (2.4) less are 87.
TEST(Diff, OnlyThePlantedLossIsFound) {
  Draw draw(11);
  int found = 0, false_alarms = 0, wrong = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<Record> base, other;
    for (int point = 1; point <= 5; ++point) {
      base = joined(base, runs(draw.rates(10, 80, 0.01), point));
      other = joined(other, runs(draw.rates(10, point == 3 ? 80 * 0.97 : 80, 0.01), point));
    }
    const auto rows = diff_at(base, other, 1).rows;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const bool called = rows[k].verdict == ChangeVerdict::slower || rows[k].verdict == ChangeVerdict::faster;
      (k == 2 ? found : false_alarms) += called ? 1 : 0;
      wrong += k == 2 && rows[k].verdict == ChangeVerdict::equivalent ? 1 : 0;
    }
  }
  EXPECT_GE(found, 87);
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(false_alarms, 5);  // what does not change is far from the threshold
}

Record with_p99(const Json& params, double p99_ns, int repetition) {
  Record record = sweep_record(params, 1000 / p99_ns, repetition);
  record.result["lat_p99_ns"] = p99_ns;
  return record;
}

TEST(Diff, HigherLatencyIsSlower) {
  const Json params{{"post_list", 1}};
  const std::vector<Record> base{with_p99(params, 1000, 0), with_p99(params, 1001, 1)},
      other{with_p99(params, 1100, 0), with_p99(params, 1101, 1)};
  const Diff diff = diff_records(base, other, {.metric = "lat_p99_ns"});
  EXPECT_EQ(diff.rows.at(0).verdict, ChangeVerdict::slower);
  EXPECT_THAT(diff_text(diff), testing::AllOf(testing::HasSubstr("ns"), testing::HasSubstr("+10.0")));
  EXPECT_THAT(gate_failure(diff, false), testing::HasSubstr("1 slower"));
  EXPECT_EQ(diff_records(other, base, {.metric = "lat_p99_ns"}).rows.at(0).verdict, ChangeVerdict::faster);
}

std::vector<Record> with_rereads(std::vector<Record> records, double lines) {
  for (Record& record : records) {
    CounterReport report{.source = "sim", .node = "server", .blind = "", .window_s = 0.001, .events = {}};
    report.extra["wqe_cache_reread_lines"] = lines;
    report.events.dma_read_lines = 1000 + static_cast<std::uint64_t>(lines);
    record.counters = {report};
  }
  return records;
}

// 700 of 1000 operations have a WQE re-read, so the lines read over PCIe rise by 70 %.
TEST(Diff, CauseComesFromTheCounters) {
  const auto base = with_rereads(runs({80, 80.1}), 0), other = with_rereads(runs({60, 60.1}), 700);
  const Diff diff = diff_at(base, other, 3);
  EXPECT_EQ(diff.rows.at(0).cause, "WQE cache, 0.7 re-reads per operation");
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("WQE cache"));
  EXPECT_EQ(diff_at(other, base, 3).rows.at(0).cause, "base: WQE cache, 0.7 re-reads per operation");
  EXPECT_EQ(diff_at(base, base, 3).rows.at(0).cause, "");
  const Diff counts = diff_records(base, other, {.metric = "dma_read_lines_per_op"});
  EXPECT_EQ(counts.rows.at(0).verdict, ChangeVerdict::more);
  EXPECT_NEAR(counts.rows.at(0).ratio, 1.7, 1e-9);
  EXPECT_EQ(gate_failure(counts, false), "") << "more is no fault by itself";
}

// Kernel counters are in `net`, under the driver's name, for the port and possibly for each QP.
TEST(Diff, CauseComesFromTheCountersOfEachDriver) {
  const auto counted = [](double mops, const std::string& name, int count) {
    std::vector<Record> records = runs({mops, mops + 0.1});
    for (Record& record : records) {
      for (const auto& [source, prefix] :
           {std::pair{"nic", "port1/hw_counters/"}, std::pair{"rdma-statistic", "port1/qp9/"}}) {
        CounterReport report{.source = source, .node = "client0", .blind = "", .window_s = 0.001, .events = {}};
        report.extra["net"] = Json{{prefix + name, count}, {"port1/counters/port_xmit_packets", 1000}};
        record.counters.push_back(report);
      }
    }
    return records;
  };
  for (const auto& [name, cause] : std::vector<std::pair<std::string, std::string>>{
           {"rnr_nak_retry_err", "too few RECVs, 0.05 RNR NAKs"},            // mlx5
           {"rp_cnp_handled", "rates limited by DCQCN, 0.05 CNPs handled"},  //
           {"packet_seq_err", "loss, 0.05 NAKs of a sequence error"},        //
           {"sq_num_rnr", "too few RECVs, 0.05 RNR NAKs"},                   // mlx4
           {"rq_num_oos", "loss, 0.05 packets out of sequence"},             //
           {"rnr_naks_rcvd", "too few RECVs, 0.05 RNR NAKs"},                // bnxt_re
           {"rx_cnp_pkts", "rates limited by DCQCN, 0.05 CNPs handled"},     //
           {"oos_drop_count", "loss, 0.05 packets out of sequence"},         //
           {"cnpHandled", "rates limited by DCQCN, 0.05 CNPs handled"},      // irdma
           {"RNR received", "too few RECVs, 0.05 RNR NAKs"},                 //
           {"Nak Sequence Error", "loss, 0.05 NAKs of a sequence error"},    //
           {"retrans_pkts", "loss, 0.05 packets sent again"}}) {             // efa
    const auto base = counted(80, name, 0), other = counted(60, name, 50);
    EXPECT_EQ(diff_at(base, other, 3).rows.at(0).cause, cause + " per operation") << name;
  }
  EXPECT_EQ(diff_at(counted(80, "rx_read_requests", 0), counted(60, "rx_read_requests", 50), 3).rows.at(0).cause, "");
}

TEST(Diff, IgnoredOptionDoesNotPreventAMatch) {
  const auto base = runs({80, 81}, 1), other = runs({80, 81}, 2);
  DiffRequest request{.ignored = {"post_list"}};
  ASSERT_EQ(diff_records(base, other, request).rows.size(), 1u);
  EXPECT_TRUE(diff_records(base, other, request).rows[0].interval);
  EXPECT_THROW(diff_records(joined(base, other), other, request), UsageError) << "which of the two?";
  request.ignored = {"fabric"};
  EXPECT_EQ(diff_records(base, runs({80, 81}, 1, "sim:cx3"), request).rows.size(), 1u);
}

TEST(Diff, WithoutMatchesTheDifferingOptionIsNamed) {
  const Diff diff = diff_at(runs({80}, 1), runs({80}, 2), 3);
  EXPECT_EQ(diff.mismatched, std::vector<std::string>{"post_list (base 1, new 2)"});
  EXPECT_THAT(gate_failure(diff, false), testing::HasSubstr("post_list (base 1, new 2)"));
  EXPECT_TRUE(diff_at(joined(runs({80}, 1), runs({80}, 4)), runs({80}, 1), 3).mismatched.empty());
}

TEST(Diff, AcrossComparesValuesOfAnOptionInOneFile) {
  std::vector<Record> records;
  for (const int size : {16, 64}) {
    for (const auto& [connection, rate] : {std::pair{"RC", 80.0}, std::pair{"UC", 90.0}, std::pair{"UD", 70.0}}) {
      for (int i = 0; i < 3; ++i) {
        records.push_back(sweep_record(Json{{"connection", connection}, {"size", size}}, rate + 0.1 * i, i));
      }
    }
  }
  const Diff all = diff_across(records, "connection", {});
  std::vector<ChangeVerdict> verdicts;
  for (const DiffRow& row : all.rows) verdicts.push_back(row.verdict);
  EXPECT_EQ(verdicts,
            (std::vector{ChangeVerdict::faster, ChangeVerdict::faster, ChangeVerdict::slower, ChangeVerdict::slower}));
  const Diff two = diff_across(records, "connection=UD,RC", {});
  ASSERT_EQ(two.rows.size(), 2u);
  EXPECT_NEAR(two.rows[0].ratio, 80.1 / 70.1, 1e-4);
  EXPECT_THAT(diff_text(two), testing::HasSubstr("base: connection=UD"));
  EXPECT_THROW(diff_across(records, "qp", {}), UsageError);
  EXPECT_THROW(diff_across(records, "connection=RC,DC", {}), UsageError);
}

TEST(Diff, FileIsIdenticalToItself) {
  const auto records = joined(runs({80, 81}), runs({70}, 4));
  const Diff diff = diff_at(records, records, 3);
  EXPECT_THAT(diff_text(diff), testing::StartsWith("identical"));
  EXPECT_EQ(gate_failure(diff, true), "");
  EXPECT_THAT(diff_text(diff_at(records, runs({80, 81}), 3)), testing::Not(testing::HasSubstr("identical")));
}

TEST(Diff, ExplicitDefaultMatchesAnUnsetOption) {
  const auto by_hand = [](const Json& set, int clients) {
    Record record = fake_record("sim:cib");
    record.config = Json{{"size", 64}, {"clients", clients}};
    record.environment["options_set"] = set;
    return record;
  };
  const Diff diff = diff_at({by_hand(Json::array(), 4)}, {by_hand(Json{"size"}, 8)}, 3);
  EXPECT_EQ(diff.rows.size(), 1u);
  EXPECT_EQ(diff.unset, std::vector<std::string>{"clients 4 -> 8"});
}

TEST(Diff, CsvHasOneLinePerPointAndQuotesCells) {
  auto record = sweep_record(Json{{"cores", "0,1"}, {"label", "=1+1"}}, 80);
  const std::string csv = diff_csv(diff_at({record}, {record}, 3));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 2);
  EXPECT_THAT(csv, testing::StartsWith("id,fabric,title,verdict,"));
}

TEST(EnvironmentDiff, FactsThatExplainMostComeFirst) {
  auto base = runs({80, 81}), other = runs({80, 81});
  const auto on_host = [](std::vector<Record>& records, const char* firmware, const char* kernel, const char* commit) {
    for (Record& record : records) {
      record.environment["hosts"]["n1"]["devices"] =
          Json{{{"name", "mlx5_0"}, {"driver", "mlx5"}, {"firmware", firmware}}};
      record.environment["hosts"]["n1"]["governors"] = Json{firmware};
      record.environment["kernel"] = kernel;
      record.environment["git_revision"] = commit;
      record.environment["cluster_profile"] = commit;
      record.environment["time_utc"] = firmware;
    }
  };
  on_host(base, "20.31", "Linux 6.1", "aaaa");
  on_host(other, "20.35", "Linux 6.5", "bbbb");
  std::vector<std::string> facts;
  for (const auto& one : environment_differences(base, other)) facts.push_back(one.fact);
  EXPECT_EQ(facts, (std::vector<std::string>{"hosts.n1.devices.mlx5_0.firmware", "kernel", "git_revision",
                                             "cluster_profile", "hosts.n1.governors.0"}));
  const std::string text = diff_text(diff_at(base, other, 3));
  EXPECT_THAT(text, testing::StartsWith("environments differ (base -> new):\n"
                                        "  hosts.n1.devices.mlx5_0.firmware: \"20.31\" -> \"20.35\"\n"
                                        "  kernel: \"Linux 6.1\" -> \"Linux 6.5\"\n"));
}

TEST(EnvironmentDiff, EqualSidesHaveNoDifference) {
  auto base = runs({80, 81}), other = runs({80, 81});
  base[0].environment["kernel"] = other[1].environment["kernel"] = "another";
  EXPECT_TRUE(environment_differences(base, other).empty()) << "the same two kernels on both sides";
  other[1].environment["kernel"] = other[0].environment["kernel"];
  ASSERT_EQ(environment_differences(base, other).size(), 1u);
  EXPECT_EQ(environment_differences(base, other)[0].base.size(), 2u);
}

TEST(EnvironmentDiff, FactOfOneSideIsListed) {
  const auto base = runs({80, 81});
  auto other = base;
  other[0].environment["hosts"]["n1"]["turbo"] = true;
  EXPECT_THAT(environment_text(environment_differences(base, other)),
              testing::HasSubstr("  hosts.n1.turbo: not recorded -> true\n"));
  EXPECT_THAT(environment_text(environment_differences(other, base)),
              testing::HasSubstr("  hosts.n1.turbo: true -> not recorded\n"));
}

TEST(EnvironmentDiff, ControlCharactersAreEscaped) {
  auto base = runs({80}), other = runs({80});
  other[0].environment["kernel"] = "\x1b[31mred";
  other[0].environment["a\x1b[2J"] = 1;
  const std::string text = environment_text(environment_differences(base, other));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, testing::HasSubstr("\\u001b[31mred"));
}

}  // namespace
}  // namespace verbscope
