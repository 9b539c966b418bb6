// Meanings of extra and missing PCIe events, from hand-made records in which only one option grows.
#include "analysis/compare.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

// A point whose NIC read `extra` more lines per operation than modelled.
Record with_extra_reads(const Json& options, double extra) {
  Record record = sweep_record(options, 50);
  VerbShape shape{.verb = Verb::read, .transport = Transport::rc, .payload = Bytes(32)};
  const Prediction prediction = predict_requester(cib(), shape);
  record.prediction = to_json(prediction);
  CounterReport report{.source = "pcm", .node = "server", .blind = "", .window_s = 1e-3, .events = {}};
  const auto times = [](double per_op) { return static_cast<std::uint64_t>(per_op * 1000 + 0.5); };
  report.events.dma_read_lines = times(prediction.pcie.dma_read_lines + extra);
  report.events.dma_write_full_lines = times(prediction.pcie.dma_write_full_lines);
  report.events.dma_write_partial_lines = times(prediction.pcie.dma_write_partial_lines);
  report.events.mmio_wc_lines = times(prediction.pcie.mmio_wc_lines);
  report.events.mmio_doorbells = times(prediction.pcie.mmio_doorbells);
  record.counters = {report};
  return record;
}

std::vector<Residual> of_last(const std::vector<Record>& records) {
  return Residuals(pointers(records)).of(records.back());
}

TEST(Residuals, EqualCountsHaveNoResidual) {
  EXPECT_TRUE(of_last({with_extra_reads({{"window", 1}}, 0)}).empty());
}

TEST(Residuals, ReadsThatGrowWithTheWindowAreWqeRereads) {
  const auto found =
      of_last({with_extra_reads({{"window", 1}, {"qp", 8}}, 0), with_extra_reads({{"window", 64}, {"qp", 8}}, 0.6)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::HasSubstr("WQEs that were evicted"));
  EXPECT_NEAR(found[0].per_op, 0.6, 1e-9);
  EXPECT_NEAR(found[0].per_second, 0.6 * 50e6, 1);
}

TEST(Residuals, ReadsThatGrowOnlyWithQpsAreContexts) {
  const auto found = of_last({with_extra_reads({{"window", 1}, {"connections", 10}}, 0),
                              with_extra_reads({{"window", 4}, {"connections", 1000}}, 3),
                              with_extra_reads({{"window", 1}, {"connections", 1000}}, 3)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::HasSubstr("contexts of QPs"));
}

TEST(Residuals, ReadsThatGrowWithTheRegionAreTranslations) {
  const auto found = of_last({with_extra_reads({{"region_size", 65536}, {"window", 4}}, 0),
                              with_extra_reads({{"region_size", 1 << 30}, {"window", 4}}, 1)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::HasSubstr("address translations"));
}

// More QPs also mean more WQEs. Only points that vary the window alone separate the two.
TEST(Residuals, GrowthWithQpsAloneDoesNotSeparateContextsFromWqes) {
  const auto found =
      of_last({with_extra_reads({{"qp", 1}, {"window", 8}}, 0), with_extra_reads({{"qp", 64}, {"window", 8}}, 2)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::AllOf(testing::HasSubstr("does not decide"), testing::HasSubstr("QPs")));
}

TEST(Residuals, OnePointDecidesNothing) {
  const auto found = of_last({with_extra_reads({{"window", 64}}, 0.5)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].decided);
}

TEST(Residuals, AdapterCountersDecide) {
  Record record = with_extra_reads({{"qp", 64}}, 0.5);
  record.counters[0].extra = Json{{"translation_misses", 500}};
  const auto found = of_last({record});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::HasSubstr("address translations"));
}

// A cause with a count of zero is excluded, even if the extra reads grow with its option.
TEST(Residuals, CauseWithZeroCountIsExcluded) {
  const Json none{{"wqe_cache_reread_lines", 0}, {"qp_context_read_lines", 0}, {"translation_misses", 0}};
  Record small = with_extra_reads({{"region_size", 65536}}, 0);
  Record large = with_extra_reads({{"region_size", 1 << 30}}, 1);
  small.counters[0].extra = large.counters[0].extra = none;
  const auto found = of_last({small, large});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::AllOf(testing::Not(testing::HasSubstr("address translations")),
                                               testing::HasSubstr("counters name no cause")));
}

TEST(Residuals, PartiallyCountedCauseLeavesTheRestOpen) {
  Record record = with_extra_reads({{"qp", 64}}, 4.68);
  record.counters[0].extra =
      Json{{"wqe_cache_reread_lines", 1680}, {"qp_context_read_lines", 0}, {"translation_misses", 0}};
  const auto found = of_last({record});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].decided);
  EXPECT_THAT(
      found[0].meaning,
      testing::AllOf(testing::HasSubstr("WQEs that were evicted"), testing::HasSubstr("1.68 lines"),
                     testing::HasSubstr("what else is read"), testing::Not(testing::HasSubstr("translations"))));
}

// Connected clients need their own QPs; on UD all clients use the same ones.
TEST(Residuals, ClientsMeanMoreQpsExceptOnUd) {
  const auto meaning = [](const char* connection) {
    return of_last({with_extra_reads({{"clients", 1}, {"connection", connection}}, 0.5),
                    with_extra_reads({{"clients", 4}, {"connection", connection}}, 0.5)})
        .at(0)
        .meaning;
  };
  EXPECT_THAT(meaning("RC"), testing::HasSubstr("do not grow with the number of QPs"));
  EXPECT_THAT(meaning("UD"), testing::Not(testing::HasSubstr("grow with the number of QPs")));
}

TEST(Residuals, MissingPayloadLineIsAnInlineReceive) {
  Record record = with_extra_reads({{"inline_recv", 0}}, 0);
  record.counters[0].events.dma_write_full_lines = 1000;  // the CQE: 64 B; the payload's line is missing
  record.counters[0].events.dma_write_partial_lines = 0;
  const auto found = of_last({record});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].event, "writes");
  EXPECT_TRUE(found[0].decided);
  EXPECT_THAT(found[0].meaning, testing::HasSubstr("inline receive"));
}

TEST(Residuals, DoorbellsInsteadOfBlueFlameAreRecognised) {
  Record record = with_extra_reads({{"post_list", 1}}, 0);
  record.counters[0].events.mmio_doorbells = record.counters[0].events.mmio_wc_lines;
  record.counters[0].events.mmio_wc_lines = 0;
  const auto found = of_last({record});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].event, "MMIO lines");
  EXPECT_TRUE(found[0].decided);
}

}  // namespace
}  // namespace verbscope
