// Extended completion queues and the clock of completions: ibv_create_cq_ex(3), ibv_query_rt_values_ex(3).
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kStandard = IBV_WC_STANDARD_FLAGS;

class ExtendedCq : public Rig {
 protected:
  ibv_cq_ex* make(std::uint64_t fields, ibv_comp_channel* channel = nullptr, std::uint32_t flags = 0) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 64;
    attr.channel = channel;
    attr.wc_flags = fields;
    attr.comp_mask = flags != 0 ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0;
    attr.flags = flags;
    return make(attr);
  }
  // Null, and errno, if the device refuses.
  ibv_cq_ex* make(ibv_cq_init_attr_ex& attr) {
    errno = 0;
    ibv_cq_ex* made = ibv_create_cq_ex(b.context(), &attr);
    if (made == nullptr) return nullptr;
    b.keep(ibv_cq_ex_to_cq(made), "extended CQ", &Provider::destroy_cq);
    return made;
  }
  // A pair whose b receives to `cq`.
  Pair connect_to(ibv_cq_ex* cq, ibv_qp_type type = IBV_QPT_RC) {
    QpAsk ask;
    ask.recv_cq = ibv_cq_ex_to_cq(cq);
    return connect(type, {}, {}, ask);
  }
  void deliver(const Pair& pair, std::uint64_t id, std::uint32_t length = 8) {
    recv(pair.b, {b.sge(0, 4096)}, id);
    send(pair.a, {.sges = {a.sge(0, length)}});
    await_success(a.send_cq(), "a SEND");
  }
  // Starts a poll that finds a completion.
  void start(ibv_cq_ex* cq, const char* what) {
    ibv_poll_cq_attr attr{};
    const Picos end = fabric().now() + fabric().patience();
    fabric().wake_at(end);
    int result = 0;
    while ((result = ibv_start_poll(cq, &attr)) == ENOENT && fabric().now() < end) fabric().idle();
    if (result != 0) throw Error(std::string("no completion: ") + what);
  }
  // Polls one completion, of the RECV with this id.
  void expect_recv(ibv_cq_ex* cq, std::uint64_t id, const char* what) {
    start(cq, what);
    EXPECT_EQ(cq->wr_id, id);
    ibv_end_poll(cq);
  }
  bool has_clock() {
    ibv_device_attr_ex attr{};
    EXPECT_EQ(ibv_query_device_ex(b.context(), nullptr, &attr), 0);
    return attr.completion_timestamp_mask != 0;
  }
};

TEST_F(ExtendedCq, OfNoCompletionsYieldsNone) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
}

TEST_F(ExtendedCq, RefusesAnUnknownAttributeOfAPoll) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr attr{};
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(cq, &attr), deviates("poll-attributes-unchecked") ? ENOENT : EINVAL);
}

TEST_F(ExtendedCq, TellsTheFieldsOfAReceive) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  deliver(pair, 77, 1000);
  start(cq, "a RECV");
  EXPECT_EQ(cq->wr_id, 77u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 1000u);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), pair.b->qp_num);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq) & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV), 0u);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
}

TEST_F(ExtendedCq, TellsImmediateData) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  recv(pair.b, {});
  Request request = write_to(a.sge(0, 8), b, 4096);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.immediate = 0x12345678;
  send(pair.a, request);
  start(cq, "a WRITE with immediate data");
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_NE(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(ibv_wc_read_imm_data(cq), 0x12345678u);
  ibv_end_poll(cq);
}

TEST_F(ExtendedCq, TellsTheSenderOfADatagram) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq, IBV_QPT_UD);
  deliver(pair, 3, 20);
  start(cq, "a datagram");
  EXPECT_EQ(ibv_wc_read_src_qp(cq), pair.a->qp_num);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), kGrhBytes + 20);
  EXPECT_EQ(ibv_wc_read_slid(cq), a.device().port_attributes().lid);
  EXPECT_EQ((ibv_wc_read_wc_flags(cq) & IBV_WC_GRH) != 0, a.gid().global);
  EXPECT_EQ(ibv_wc_read_sl(cq), 0);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0);
  ibv_end_poll(cq);
}

TEST_F(ExtendedCq, GoesThroughCompletionsInTheirOrder) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  for (std::uint64_t id = 0; id < 10; ++id) deliver(pair, id);
  fabric().pass(kShort);
  start(cq, "the first of ten");
  std::vector<std::uint64_t> seen{cq->wr_id};
  while (ibv_next_poll(cq) == 0) seen.push_back(cq->wr_id);
  ibv_end_poll(cq);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  if (deviates("end-of-an-exhausted-poll")) return;
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
}

// What was not polled before end_poll stays.
TEST_F(ExtendedCq, KeepsWhatAPollLeaves) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  for (std::uint64_t id = 0; id < 3; ++id) deliver(pair, id);
  for (std::uint64_t id = 0; id < 3; ++id) {
    expect_recv(cq, id, "one of three");
  }
}

TEST_F(ExtendedCq, TellsTheQpOfEachCompletion) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair first = connect_to(cq);
  const Pair second = connect_to(cq);
  for (const Pair& pair : {second, first, second}) {
    deliver(pair, 1);
    start(cq, "a RECV of one of two QPs");
    EXPECT_EQ(ibv_wc_read_qp_num(cq), pair.b->qp_num);
    ibv_end_poll(cq);
  }
}

TEST_F(ExtendedCq, TellsErrors) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  for (std::uint64_t id = 5; id < 8; ++id) recv(pair.b, {b.sge(0, 64)}, id);
  ASSERT_EQ(modify(b, pair.b, to_state(IBV_QPS_ERR)), 0);
  std::vector<std::uint64_t> flushed;
  while (flushed.size() < 3) {
    start(cq, "a flushed RECV");
    EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
    ibv_wc_read_vendor_err(cq);
    flushed.push_back(cq->wr_id);
    ibv_end_poll(cq);
  }
  EXPECT_THAT(flushed, ElementsAre(5, 6, 7));
}

// Polling frees the places of the send queue, as ibv_poll_cq does.
TEST_F(ExtendedCq, LetsASendQueueGoOn) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  QpAsk ask;
  ask.send_cq = ibv_cq_ex_to_cq(cq);
  const Pair pair = connect(IBV_QPT_RC, {}, {}, ask);
  for (std::uint64_t id = 0; id < 200; ++id) {
    Request request = write_to(b.sge(0, 8), a, 0);
    request.id = id;
    send(pair.b, request);
    start(cq, "a WRITE");
    EXPECT_EQ(cq->wr_id, id);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
    ibv_end_poll(cq);
  }
}

TEST_F(ExtendedCq, RaisesEvents) {
  ibv_comp_channel* channel = b.make_channel();
  ibv_cq_ex* cq = make(kStandard, channel);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  ASSERT_EQ(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0), 0);
  deliver(pair, 4);
  EXPECT_EQ(fabric().await_event(channel, fabric().patience()), ibv_cq_ex_to_cq(cq));
  expect_recv(cq, 4, "the RECV of the event");
}

TEST_F(ExtendedCq, CanBeResized) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  deliver(pair, 1);
  ASSERT_EQ(b.verbs().resize_cq(ibv_cq_ex_to_cq(cq), 500), 0);
  EXPECT_GE(cq->cqe, 500);
  deliver(pair, 2);
  for (const std::uint64_t id : {1, 2}) {
    expect_recv(cq, id, "a RECV around the resize");
  }
}

TEST_F(ExtendedCq, OfOneThreadWorks) {
  ibv_cq_ex* cq = make(kStandard, nullptr, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  VERBSCOPE_NEEDS(cq != nullptr, "single-threaded CQs");
  const Pair pair = connect_to(cq);
  deliver(pair, 1);
  expect_recv(cq, 1, "a RECV");
}

TEST_F(ExtendedCq, IsBusyWhileAQpUsesIt) {
  ibv_cq_ex* cq = make(kStandard);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  EXPECT_EQ(b.destroy(ibv_cq_ex_to_cq(cq)), EBUSY);
  EXPECT_EQ(b.destroy(pair.b), 0);
  EXPECT_EQ(b.destroy(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(ExtendedCq, WithUnknownFieldsIsRefused) {
  EXPECT_EQ(make(std::uint64_t{1} << 40), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(ExtendedCq, OutsideOfTheDevicesLimitsIsRefused) {
  for (const std::uint32_t cqe : {0u, static_cast<std::uint32_t>(b.device().attributes().max_cqe) + 1}) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = cqe;
    EXPECT_EQ(make(attr), nullptr) << cqe;
    EXPECT_EQ(errno, EINVAL) << cqe;
  }
}

TEST_F(ExtendedCq, WithAVectorThatIsNotThereIsRefused) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.comp_vector = static_cast<std::uint32_t>(b.context()->num_comp_vectors);
  EXPECT_EQ(make(attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// The clock of the HCA, in ticks of ibv_device_attr_ex::hca_core_clock.
class CompletionClock : public ExtendedCq {
 protected:
  std::uint64_t clock() {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(b.context(), &values), 0);
    EXPECT_EQ(values.comp_mask, static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
    return static_cast<std::uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  }
};

TEST_F(CompletionClock, Advances) {
  VERBSCOPE_NEEDS(has_clock(), "a clock");
  ibv_device_attr_ex attr{};
  ASSERT_EQ(ibv_query_device_ex(b.context(), nullptr, &attr), 0);
  const std::uint64_t before = clock();
  fabric().pass(std::chrono::milliseconds(10));
  const double milliseconds = static_cast<double>(clock() - before) / static_cast<double>(attr.hca_core_clock);
  EXPECT_GE(milliseconds, 9.9);
  EXPECT_LE(milliseconds, fabric().simulated() ? 10.1 : 1000);
}

TEST_F(CompletionClock, StampsEachCompletion) {
  VERBSCOPE_NEEDS(has_clock(), "a clock");
  ibv_cq_ex* cq = make(kStandard | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  std::uint64_t last = clock();
  for (std::uint64_t id = 0; id < 5; ++id) {
    deliver(pair, id);
    start(cq, "a RECV with its time");
    const std::uint64_t stamp = ibv_wc_read_completion_ts(cq);
    ibv_end_poll(cq);
    EXPECT_GT(stamp, last);
    EXPECT_LE(stamp, clock());
    last = stamp;
  }
}

TEST_F(CompletionClock, StampsWhenItIsDoneAndNotWhenItIsPolled) {
  VERBSCOPE_NEEDS(has_clock(), "a clock");
  ibv_cq_ex* cq = make(kStandard | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
  ASSERT_NE(cq, nullptr);
  const Pair pair = connect_to(cq);
  deliver(pair, 1);
  fabric().pass(std::chrono::microseconds(100));
  const std::uint64_t later = clock();
  fabric().pass(std::chrono::milliseconds(10));
  start(cq, "a RECV with its time");
  EXPECT_LT(ibv_wc_read_completion_ts(cq), later);
  ibv_end_poll(cq);
}

TEST_F(CompletionClock, TellsNanosecondsToo) {
  VERBSCOPE_NEEDS(has_clock(), "a clock");
  ibv_cq_ex* cq = make(kStandard | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  VERBSCOPE_NEEDS(cq != nullptr, "completion times in nanoseconds");
  const Pair pair = connect_to(cq);
  std::vector<std::uint64_t> stamps;
  for (std::uint64_t id = 0; id < 2; ++id) {
    deliver(pair, id);
    fabric().pass(std::chrono::milliseconds(5));
    start(cq, "a RECV with its time");
    stamps.push_back(ibv_wc_read_completion_wallclock_ns(cq));
    ibv_end_poll(cq);
  }
  EXPECT_GE(stamps[1] - stamps[0], 5'000'000u);
  EXPECT_LE(stamps[1] - stamps[0], fabric().simulated() ? 5'200'000u : 1'000'000'000u);
}

TEST_F(CompletionClock, RefusesUnknownValues) {
  VERBSCOPE_NEEDS(has_clock(), "a clock");
  ibv_values_ex values{};
  values.comp_mask = 1 << 20;
  EXPECT_EQ(ibv_query_rt_values_ex(b.context(), &values), EINVAL);
}

}  // namespace
}  // namespace verbscope::conformance
