// Limit and advice for hand-made records with known loads.
#include "analysis/explain.hpp"

#include "analysis/results_files.hpp"
#include "pcie_model/predict.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

// A simulated run with these busy times, in picoseconds of a 1 us interval.
Record with_loads(const VerbShape& shape, double rate, const Json& shares) {
  Record record = sweep_record(Json{{"connection", to_string(shape.transport)}, {"qp", 1}, {"threads", 2}}, rate);
  record.prediction = to_json(predict_requester(cib(), shape));
  CounterReport report{.source = "sim", .node = "server", .blind = "", .window_s = 1e-6, .events = {}};
  report.extra = Json{{"pcie_to_nic_busy_ps", 0}, {"requester_units", 16}, {"responder_units", 16}, {"read_tags", 64}};
  for (const auto& [key, share] : shares.items()) report.extra[key] = share.get<double>() * 1e6;
  record.counters = {report};
  return record;
}

VerbShape inline_send() {
  return {.verb = Verb::send,
          .transport = Transport::ud,
          .payload = Bytes(60),
          .inlined = true,
          .max_inline_cap = Bytes(60)};
}

Resource limit_of(const Record& record) {
  return explain(record).limits.front().load.resource;
}

// The change with this first option.
const Advice* advice_with(const Explanation& it, const std::string& option) {
  for (const Advice& advice : it.advice) {
    if (!advice.options.empty() && advice.options.begin().key() == option) return &advice;
  }
  return nullptr;
}

TEST(Explain, LinkToTheNicIsNamedByItsMainTraffic) {
  EXPECT_EQ(limit_of(with_loads(inline_send(), 80, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 0.99}})),
            Resource::mmio);
  EXPECT_EQ(limit_of(with_loads(inline_send(), 80, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 0.1}})),
            Resource::pcie_to_nic);
}

// A thousand operations with a few stalls that no load shows.
TEST(Explain, StallsOfQpsComeFromTheAdapterCounters) {
  Record record = with_loads(inline_send(), 5, {});
  record.counters[0] = {.source = "nic", .node = "server", .blind = "", .window_s = 1e-6, .events = {}};
  record.counters[0].extra["net"] =
      Json{{"port1/hw_counters/np_cnp_sent", 20}, {"port1/hw_counters/out_of_sequence", 2}};
  EXPECT_THAT(explain_text(explain(record)), testing::Not(testing::HasSubstr("stalls of QPs"))) << "simulated";
  record.environment["simulated"] = false;
  EXPECT_THAT(explain_text(explain(record)),
              testing::HasSubstr(
                  "loss (0.002 packets out of sequence per operation, out_of_sequence); congestion (0.02 CNPs sent "
                  "per operation, np_cnp_sent)"));
  const Json stalls = explain_json(explain(record)).at("counted_stalls");
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[0].at("cause"), "loss");
  record.counters[0].extra["net"] = Json{{"port1/hw_counters/np_cnp_sent", 0}};
  EXPECT_THAT(explain_text(explain(record)), testing::Not(testing::HasSubstr("stalls of QPs")));
}

TEST(Explain, OneBusyUnitBelongsToAQpAllBusyUnitsToTheNic) {
  const Record one = with_loads(inline_send(), 8, {{"requester_busy_ps", 1.0}, {"requester_busiest_unit_ps", 1.0}});
  EXPECT_EQ(limit_of(one), Resource::requester_unit);
  // Two QPs have two units.
  const Explanation it = explain(one);
  ASSERT_NE(advice_with(it, "qp"), nullptr);
  EXPECT_NEAR(advice_with(it, "qp")->factor, 2, 1e-6);
  const Record all = with_loads(inline_send(), 157, {{"requester_busy_ps", 16.0}, {"requester_busiest_unit_ps", 1.0}});
  EXPECT_EQ(limit_of(all), Resource::requester_units);
}

// A ping-pong has one outstanding operation, whatever the depth of its queue.
TEST(Explain, MoreOutstandingIsAdvisedOnlyForAFullQueue) {
  Record record = with_loads(inline_send(), 0.5, {{"requester_busy_ps", 0.1}, {"requester_busiest_unit_ps", 0.1}});
  record.config.merge_patch({{"tx_depth", 128}, {"qp", 1}, {"threads", 1}});
  EXPECT_NE(advice_with(explain(record), "tx_depth"), nullptr);
  record.result["lat_mean_ns"] = 2000;  // one of 2 us at 0.5 Mops
  EXPECT_EQ(advice_with(explain(record), "tx_depth"), nullptr);
  record.result["lat_mean_ns"] = 256'000;
  EXPECT_NE(advice_with(explain(record), "tx_depth"), nullptr);
}

TEST(Explain, MoreOutstandingIsNotAdvisedIfItChangesNothing) {
  const Record send = with_loads(inline_send(), 0.5, {{"requester_busy_ps", 0.1}, {"requester_busiest_unit_ps", 0.1}});
  Record latency = send, visibility = send, puts = send;
  latency.benchmark = "verb_latency";  // these have one operation under way, whatever the depth of the queue
  visibility.benchmark = "write_visibility";
  puts.result["put_mops"] = 0.5;  // and these wait for locks
  for (Record record : {latency, visibility, puts}) {
    record.config["tx_depth"] = 128;
    EXPECT_EQ(advice_with(explain(record), "tx_depth"), nullptr) << record.benchmark;
  }
}

// A unit that waits half of the time doubles its rate without the waits.
TEST(Explain, AdapterCountersDecideWhatAUnitWaitsFor) {
  Record record = with_loads(inline_send(), 3,
                             {{"responder_busy_ps", 0.5},
                              {"responder_waited_ps", 0.5},
                              {"responder_busiest_unit_ps", 1.0},
                              {"responder_busiest_waited_ps", 0.5}});
  const auto gain = [](const Record& of, const std::string& what) {
    for (const Advice& advice : explain(of).advice) {
      if (advice.change.find(what) != std::string::npos) return advice.factor;
    }
    return 1.0;
  };
  Record misses = record;
  record.counters[0].extra["recv_waits"] = 400;
  EXPECT_NEAR(gain(record, "more RECVs"), 2, 1e-6);
  EXPECT_EQ(gain(record, "caches"), 1);
  misses.counters[0].extra["qp_context_misses"] = 400;
  EXPECT_EQ(gain(misses, "more RECVs"), 1);
  EXPECT_NEAR(gain(misses, "caches"), 2, 1e-6);
}

// Fewer QPs use the same memory, so the translations of its pages still miss.
TEST(Explain, LargerPagesAreAdvisedForTranslationMisses) {
  Record record = with_loads(inline_send(), 3,
                             {{"responder_busy_ps", 0.5},
                              {"responder_waited_ps", 0.5},
                              {"responder_busiest_unit_ps", 1.0},
                              {"responder_busiest_waited_ps", 0.5}});
  record.counters[0].extra["translation_misses"] = 900;
  record.config["pages"] = "4k";
  const Explanation small = explain(record);
  ASSERT_NE(advice_with(small, "pages"), nullptr);
  EXPECT_NEAR(advice_with(small, "pages")->factor, 2, 1e-6);
  record.config["pages"] = "2m";
  EXPECT_EQ(advice_with(explain(record), "pages"), nullptr);
  EXPECT_THAT(explain_text(explain(record)), testing::HasSubstr("less memory"));
}

// WQEs are re-read because more are outstanding than fit into the adapter's cache. More would make it worse.
TEST(Explain, FewerOutstandingAreAdvisedForWqeRereads) {
  Record record = with_loads(inline_send(), 5, {{"requester_busy_ps", 0.5}, {"requester_busiest_unit_ps", 0.5}});
  record.config["window"] = 128;
  EXPECT_NE(advice_with(explain(record), "window"), nullptr);
  record.counters[0].extra["wqe_cache_reread_lines"] = 700;  // 0.7 for each of the 1000 operations
  record.counters[0].extra["wqe_cache_misses"] = 700;
  record.counters[0].extra["wqe_cache_hits"] = 300;  // of 128 on a QP 38 have room
  const Explanation it = explain(record);
  EXPECT_EQ(it.limits.front().load.resource, Resource::wqe_cache);
  ASSERT_EQ(it.advice.size(), 1u);
  EXPECT_EQ(it.advice[0].options, Json({{"window", 32}}));
  EXPECT_NEAR(it.advice[0].factor, 2, 1e-3);  // the unit that works half of the time would be the limit
}

TEST(Explain, MoreQpsAreNotAdvisedForWqeRereads) {
  Record record = with_loads(inline_send(), 8, {{"requester_busy_ps", 1.0}, {"requester_busiest_unit_ps", 1.0}});
  EXPECT_NE(advice_with(explain(record), "qp"), nullptr);
  record.counters[0].extra["wqe_cache_reread_lines"] = 700;
  EXPECT_EQ(advice_with(explain(record), "qp"), nullptr);
}

// The 64-byte WQE of a READ waits for its response; a cache of 4 KB holds 64 of them.
TEST(Explain, MoreQpsAreNotAdvisedIfTheyWouldCauseRereads) {
  const VerbShape read{.verb = Verb::read, .transport = Transport::rc, .payload = Bytes(8)};
  Record record = with_loads(read, 5, {{"requester_busy_ps", 1.0}, {"requester_busiest_unit_ps", 1.0}});
  record.benchmark = "read_rate";
  record.config.merge_patch({{"window", 16}, {"qp", 1}, {"threads", 2}});
  record.counters[0].extra["sent_wqe_cache_bytes"] = 4096;
  EXPECT_NE(advice_with(explain(record), "qp"), nullptr);  // 32 outstanding now
  record.config["threads"] = 3;
  EXPECT_EQ(advice_with(explain(record), "qp"), nullptr);  // 96 then
}

// Two clients with three threads and 4 outstanding echoes each: 24 in all, each takes at least 2 us.
TEST(Explain, OutstandingEchoesCountThreadsOfClients) {
  Record record = with_loads(inline_send(), 4, {{"cpu_worked_most_ps", 1.0}});
  record.benchmark = "echo_rate";
  record.config.merge_patch({{"window", 4}, {"qp", 2}, {"threads", 1}});
  const Json client{{"result", {{"threads", Json::array({Json::object(), Json::object(), Json::object()})}}}};
  record.result["clients"] = Json::array({client, client});
  const Explanation it = explain(record);
  EXPECT_NEAR(it.loads.trip.load, 4 * 2.0 / 24, 1e-9);
  EXPECT_EQ(it.limits.front().load.resource, Resource::cpu);
}

// Three of four messages find no RECV: the senders are not the limit, and the adapter has time for four times
// as many messages with a RECV.
TEST(Explain, SendersFasterThanReceiversAreNoLimit) {
  Record record =
      with_loads(inline_send(), 10,
                 {{"cpu_worked_most_ps", 1.0}, {"responder_busy_ps", 16.0}, {"responder_busiest_unit_ps", 1.0}});
  record.benchmark = "recv_rate";
  CounterReport sender = record.counters[0];
  sender.node = "client0";
  sender.extra["requester_busy_ps"] = 16e6;
  sender.extra["requester_busiest_unit_ps"] = 1e6;
  record.counters.push_back(sender);
  EXPECT_TRUE(explain(record).limits.empty());  // three are full: no two of them help
  record.counters[0].extra["messages_received"] = 10;
  record.counters[0].extra["dropped_no_recv"] = 30;
  const Explanation it = explain(record);
  EXPECT_EQ(it.limits.front().load.resource, Resource::cpu);
  EXPECT_NEAR(it.limits.front().gain, 2, 1e-6);
}

// Twice as many messages are sent as received: the rest is in network buffers.
TEST(Explain, SendersThatFillNetworkBuffersAreNoLimit) {
  Record record = with_loads(inline_send(), 5, {{"responder_busy_ps", 1.0}, {"responder_busiest_unit_ps", 1.0}});
  record.benchmark = "recv_rate";
  CounterReport sender = record.counters[0];
  sender.node = "client0";
  sender.extra = Json{{"pcie_to_nic_busy_ps", 0}, {"requester_busiest_unit_ps", 0.98e6}, {"messages_sent", 10}};
  record.counters.push_back(sender);
  record.counters[0].extra["messages_received"] = 10;
  EXPECT_NEAR(explain(record).limits.front().gain, 1 / 0.98, 0.01);
  record.counters[0].extra["messages_received"] = 5;
  EXPECT_NEAR(explain(record).limits.front().gain, 2, 0.01);
}

// Locks and tags are held during PCIe transfers, so a full link fills them.
TEST(Explain, HeldResourceIsTheLimitOnlyIfNothingElseIsFull) {
  EXPECT_EQ(limit_of(with_loads(inline_send(), 80, {{"pcie_to_nic_busy_ps", 0.99}, {"read_tags_held_ps", 64.0}})),
            Resource::pcie_to_nic);
  EXPECT_EQ(limit_of(with_loads(inline_send(), 80, {{"pcie_to_nic_busy_ps", 0.5}, {"read_tags_held_ps", 64.0}})),
            Resource::dma_reads);
}

TEST(Explain, WithoutAFullResourceTheLimitIsOutstandingOperations) {
  const Record record = with_loads(inline_send(), 1, {{"pcie_to_nic_busy_ps", 0.02}, {"cpu_worked_most_ps", 0.1}});
  EXPECT_EQ(limit_of(record), Resource::outstanding);
}

// Doubling one of two full resources has no gain; doubling both reaches the limit of a third.
TEST(Explain, TwoResourcesThatHelpOnlyTogetherAreBothNamed) {
  const Explanation it = explain(with_loads(
      inline_send(), 80, {{"wire_out_busy_most_ps", 1.0}, {"cpu_worked_most_ps", 0.99}, {"pcie_to_nic_busy_ps", 0.6}}));
  ASSERT_EQ(it.limits.size(), 2u);
  EXPECT_EQ(it.limits[0].load.resource, Resource::wire_out);
  EXPECT_EQ(it.limits[1].load.resource, Resource::cpu);
  EXPECT_NEAR(it.limits[1].gain, 1, 1e-6);
  EXPECT_NEAR(it.gain_of_all, 1 / 0.6, 1e-6);
}

// Doubling the wire gains 4 %, doubling the CPU nothing, so only the wire is the limit.
TEST(Explain, ResourceWithoutGainIsNoLimitNextToOneWithGain) {
  const Explanation it = explain(with_loads(
      inline_send(), 80, {{"wire_out_busy_most_ps", 1.0}, {"cpu_worked_most_ps", 0.96}, {"pcie_to_nic_busy_ps", 0.6}}));
  ASSERT_EQ(it.limits.size(), 1u);
  EXPECT_EQ(it.limits[0].load.resource, Resource::wire_out);
  EXPECT_NEAR(it.gain_of_all, 1 / 0.96, 1e-6);
}

// Tags held for 63.5 of 64 on an idle link: they remain the limit on a link of twice the width.
TEST(Explain, ReadsInFlightLimitAFasterLinkByTheirIdleTime) {
  const Explanation it = explain(
      with_loads(inline_send(), 80,
                 {{"pcie_to_nic_busy_ps", 1.0}, {"read_tags_held_ps", 64.0}, {"read_tags_held_idle_ps", 63.5}}));
  ASSERT_EQ(it.limits.size(), 2u);
  EXPECT_EQ(it.limits[0].load.resource, Resource::pcie_to_nic);
  EXPECT_EQ(it.limits[1].load.resource, Resource::dma_reads);
  EXPECT_NEAR(it.gain_of_all, 2, 0.03);
}

// The unit waits for a full link: the link is the limit, and only the unit's own work counts as its load.
TEST(Explain, UnitThatWaitsForAFullLinkIsNotBusy) {
  const Explanation it = explain(with_loads(inline_send(), 80,
                                            {{"pcie_to_nic_busy_ps", 1.0},
                                             {"requester_busy_ps", 4.8},
                                             {"requester_waited_ps", 11.2},
                                             {"requester_busiest_unit_ps", 1.0},
                                             {"requester_busiest_waited_ps", 0.7}}));
  EXPECT_EQ(it.limits.front().load.resource, Resource::pcie_to_nic);
  EXPECT_NEAR(it.limits.front().gain, 2, 1e-6);
  EXPECT_EQ(it.limits.size(), 1u);
}

TEST(Explain, SharedCounterLineIsAResource) {
  const Explanation it =
      explain(with_loads(inline_send(), 16, {{"shared_lines_busy_most_ps", 0.99}, {"cpu_worked_most_ps", 0.6}}));
  EXPECT_EQ(it.limits.front().load.resource, Resource::shared_line);
  EXPECT_NEAR(it.limits.front().gain, 0.99 / 0.6, 1e-6);
}

TEST(Explain, PeerCanBeTheLimit) {
  Record record = with_loads(inline_send(), 40, {{"pcie_to_nic_busy_ps", 0.4}});
  record.config["clients"] = 1;
  CounterReport peer = record.counters[0];
  peer.node = "client0";
  peer.extra["responder_busy_ps"] = 16e6;
  peer.extra["responder_busiest_unit_ps"] = 1e6;
  record.counters.push_back(peer);
  const Explanation it = explain(record);
  EXPECT_TRUE(it.limits.front().of_peer);
  EXPECT_THAT(it.limit_sentence(), testing::HasSubstr("responder units of client0"));
  EXPECT_NEAR(advice_with(it, "clients")->factor, 2, 1e-6);
}

// 80.15 Mops of 128-byte WQEs by MMIO fill the link: 180 B each. In lists of 16 a WQE takes one read completion, 150 B
// (128 and a header of 22), and a sixteenth of a doorbell of 34 B: 152.1 B, whose MMIO part keeps its gap. The link
// carries 15.75 GB/s: 103.6 Mops at most.
TEST(Explain, BatchingIsAdvisedWithTheModelledGain) {
  const Record record = with_loads(inline_send(), 80.15, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 1.0}});
  const Explanation it = explain(record);
  const Advice* advice = advice_with(it, "post_list");
  ASSERT_NE(advice, nullptr);
  EXPECT_NEAR(advice->factor * 80.15, 103, 1.5);
}

// A core that takes 190 ns for a call, 10 for a WQE and 40 for its doorbell posts one in 240 ns, and 16 in a list in
// 10 + 230 / 16 each; it asks for a completion every 128.
TEST(Explain, GainOfBatchingDependsOnTheCostOfACall) {
  const VerbShape read{.verb = Verb::read, .transport = Transport::rc, .payload = Bytes(8), .signal_every = 128};
  Record record = with_loads(read, 4, {{"cpu_worked_most_ps", 1.0}});
  record.counters[0].extra["cpu_costs_ps"] = {{"post_call", 190'000}, {"post_wqe", 10'000},  {"wc_line", 40'000},
                                              {"doorbell", 40'000},   {"poll_call", 15'000}, {"poll_cqe", 10'000}};
  const Explanation it = explain(record);
  const Advice* advice = advice_with(it, "post_list");
  ASSERT_NE(advice, nullptr);
  EXPECT_NEAR(advice->factor, 240 / (10 + 230.0 / 16), 0.1);
}

// One MMIO line less doubles the rate of the link.
TEST(Explain, SmallerWqeIsAdvisedByBytes) {
  VerbShape shape = inline_send();
  shape.payload = shape.max_inline_cap = Bytes(61);  // 16 + 48 + 4 + 61 = 129 B: a third line for one byte
  const Record record = with_loads(shape, 53.4, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 1.0}});
  const Explanation it = explain(record);
  const Advice* advice = advice_with(it, "size");
  ASSERT_NE(advice, nullptr);
  EXPECT_THAT(advice->change, testing::HasSubstr("smaller by 1 B"));
  EXPECT_NEAR(advice->factor, 1.5, 0.01);
}

TEST(Explain, UselessAdviceIsNotGiven) {
  const Record record =
      with_loads(inline_send(), 157, {{"requester_busy_ps", 16.0}, {"requester_busiest_unit_ps", 1.0}});
  EXPECT_TRUE(explain(record).advice.empty());
  EXPECT_THAT(explain_text(explain(record)), testing::HasSubstr("The closed form has no change"));
}

// On hardware, 99 % of the model's bound is evidence for the limit; half of it is not.
TEST(Explain, WithoutBusyTimesRateAndModelDecideOrTheLimitIsOpen) {
  Record record = sweep_record(Json{{"post_list", 1}}, 0, 0, "verbs");
  const Prediction prediction = predict_requester(cib(), inline_send());
  record.prediction = to_json(prediction);
  record.result["rate_mops"] = prediction.bound_mops * 0.99;
  EXPECT_EQ(limit_of(record), Resource::mmio);
  EXPECT_NE(advice_with(explain(record), "post_list"), nullptr);
  record.result["rate_mops"] = prediction.bound_mops * 0.5;
  EXPECT_TRUE(explain(record).limits.empty());
  EXPECT_THAT(explain_text(explain(record)), testing::HasSubstr("the record does not show which"));
}

// MMIO uses 79 % of the link's time: the sentence has the table's figure for MMIO, not the link's.
TEST(Explain, SentenceHasTheFigureOfTheTable) {
  const Record record = with_loads(inline_send(), 80, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 0.788}});
  const Explanation it = explain(record);
  EXPECT_THAT(it.limit_sentence(), testing::AllOf(testing::HasSubstr("MMIO bandwidth (78.8 %"),
                                                  testing::HasSubstr("Doubling it: +100 % (closed form)")));
  EXPECT_THAT(explain_text(it), testing::ContainsRegex("MMIO bandwidth +\\| +78.8 % +\\+100 %"));
}

// An immediate has 4 bytes: a payload of 60 bytes may fit in another form, one of 180 does not.
TEST(Explain, HeaderOnlyIsAdvisedForSmallPayloadsOnly) {
  VerbShape shape = inline_send();
  const auto header_only = [](const VerbShape& of) {
    const Record record = with_loads(of, 80, {{"pcie_to_nic_busy_ps", 1.0}, {"mmio_busy_ps", 1.0}});
    const Explanation it = explain(record);
    const Advice* advice = advice_with(it, "header_only");
    return advice == nullptr ? "none" : advice->other_payload ? "another payload" : "the same payload";
  };
  EXPECT_STREQ(header_only(shape), "another payload");
  shape.payload = shape.max_inline_cap = Bytes(180);
  EXPECT_STREQ(header_only(shape), "none");
}

Explanation with_limit(const Record& record, Resource resource, double utilisation) {
  Explanation out{.record = &record};
  out.limits = {Limit{.load = {.resource = resource, .node = "server", .utilisation = utilisation}, .gain = 2}};
  return out;
}

// 40, 48 and 96 threads reach 60, 30 and 10 Mops: a doubled WQE cache raises the last two.
TEST(Overview, SeriesListsLimitChangesAndCliffs) {
  const std::vector<Record> records{sweep_record(Json{{"threads", 40}}, 60), sweep_record(Json{{"threads", 48}}, 30),
                                    sweep_record(Json{{"threads", 96}}, 10)};
  const std::vector<Explanation> points{with_limit(records[2], Resource::wqe_cache, 1),
                                        with_limit(records[0], Resource::responder_units, 1),
                                        with_limit(records[1], Resource::wqe_cache, 1)};
  const std::vector<Series> series = series_of(points);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].option, "threads");
  EXPECT_THAT(changes_along(series[0]),
              testing::AllOf(testing::StartsWith("threads: to 40: the NIC's responder units"),
                             testing::HasSubstr("cliff at 48 threads, 30.00 after 60.00 Mops: the cache of WQEs"),
                             testing::HasSubstr("then: the cache of WQEs")));
  EXPECT_THAT(overview_text(points, 0), testing::AllOf(testing::HasSubstr("send_rate on sim:cib (SIMULATED)"),
                                                       testing::HasSubstr("Where the limit changes")));
}

TEST(Explain, FailedRecordShowsItsReason) {
  Record record = fake_record("sim:cib");
  record.status = RecordStatus::failed;
  record.reason = "no end after 3 s";
  EXPECT_THAT(failed_text(record), testing::HasSubstr("FAILED: no end after 3 s"));
  EXPECT_EQ(failed_json(record).at("failed"), "no end after 3 s");
}

// Half an arming doorbell per operation remains after every change: polling is not part of the post.
TEST(ShapeChanges, KeepCompletionEvents) {
  const Prediction before = with_completion_events(predict_requester(cib(), inline_send()), 0.5);
  const std::vector<ShapeChange> changes = shape_changes(before, 64);
  ASSERT_GE(changes.size(), 3u);
  for (const ShapeChange& change : changes) {
    VerbShape polled = change.after.shape;
    polled.events = 0;
    EXPECT_EQ(change.after.pcie.mmio_doorbells - predict_requester(cib(), polled).pcie.mmio_doorbells, 0.5)
        << change.text;
  }
}

}  // namespace
}  // namespace verbscope
