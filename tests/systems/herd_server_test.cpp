// The loop of a thread of HERD's cache against a device that executes at once; the test plays the clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <utility>

#include "systems/herd/server.hpp"
#include "tests/systems/herd_server_end.hpp"
#include "tests/verbs/count_allocations.hpp"

namespace verbscope::herd {
namespace {

using test::ScriptedNode;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(HerdServer, ExecutesRequestsAtOnceWithoutPrefetching) {
  ServerEnd end(Prefetching::off);
  end.put(0, 0, 7, kOne);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}));
  end.get(0, 1, 7);
  end.get(2, 0, 8);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 1, kOne}, Sent{2, 0, ""}));
  EXPECT_EQ(end.store.counts().no_slot, 1u);
  EXPECT_THAT(end.pass(), IsEmpty());
  EXPECT_EQ(end.server.puts, 1u);
}

TEST(HerdServer, AGetBehindAPutInTheSameSlotIsAGet) {
  ServerEnd end(Prefetching::off);
  end.put(0, 0, 7, kOne);
  end.pass();
  end.put(0, 1, 7, kTwo);
  end.pass();
  const KeyHash key = key_of(7);  // the slot of number 0: a client writes the hash alone
  std::memcpy(end.region + end.places.slot_end(1, 0, 2) - 16, &key, 16);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 2, kTwo}));
  EXPECT_EQ(end.server.puts, 2u);
}

// soft-RoCE copies in words and bytes, from left to right: what the last byte of a hash has not reached is no request.
TEST(HerdServer, TakesARequestWhenItsLastByteHasArrived) {
  ServerEnd end(Prefetching::off);
  end.put(0, 0, 7, kOne);
  std::byte& last = end.region[end.places.slot_end(1, 0, 0) - 1];
  const std::byte there = std::exchange(last, std::byte{0});
  EXPECT_THAT(end.pass(), IsEmpty());
  last = there;
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}));
  end.get_again(0, 1, 7);
  std::byte& mark = end.region[end.places.retry_number(1, 0, 1) + 7];
  const std::byte marked = std::exchange(mark, std::byte{0});
  EXPECT_THAT(end.pass(), IsEmpty());
  mark = marked;
  end.get_again(0, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 1, kOne}));
}

TEST(HerdServer, ASlotMayBeWrittenAgainAsSoonAsItsRequestIsAnswered) {
  ServerEnd end(Prefetching::off);
  const auto note = end.device.after;
  end.device.after = [&](const ibv_send_wr& wr) {
    note(wr);
    if (end.sent.back() == Sent{0, 0, ""}) end.get(0, kWindow, 7);  // the slot of number 0 again
  };
  end.put(0, 0, 7, kOne);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}));
  end.get(0, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 1, kOne}));
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, kWindow, kOne}));
}

TEST(HerdServer, ThePipelineAnswersWhenTwoMoreRequestsHaveArrived) {
  ServerEnd end(Prefetching::pipeline);
  end.store.put(key_of(7), std::as_bytes(std::span(kOne, kValue)));
  end.get(0, 0, 7);
  EXPECT_THAT(end.pass(), IsEmpty());  // stage 1
  end.get(1, 0, 7);
  EXPECT_THAT(end.pass(), IsEmpty());  // stage 2
  end.put(2, 0, 7, kTwo);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, kOne}));
  // In the order of their coming: a GET behind a PUT sees it.
  end.get(3, 0, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, kOne}));
  end.get(0, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{2, 0, ""}));
  end.get(1, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{3, 0, kTwo}));
}

TEST(HerdServer, PushesANoOpAfterAHundredEmptySlots) {
  ServerEnd end(Prefetching::pipeline);
  end.store.put(key_of(7), std::as_bytes(std::span(kOne, kValue)));
  end.get(3, 0, 7);  // the last that is looked at in its pass
  EXPECT_THAT(end.pass(), IsEmpty());
  for (int pass = 0; pass < 24; ++pass) EXPECT_THAT(end.pass(), IsEmpty());  // 96 looks
  EXPECT_EQ(end.server.counts.no_ops, 0u);
  EXPECT_THAT(end.pass(), IsEmpty());  // 100: from stage 1 to stage 2
  EXPECT_EQ(end.server.counts.no_ops, 1u);
  for (int pass = 0; pass < 24; ++pass) EXPECT_THAT(end.pass(), IsEmpty());
  EXPECT_THAT(end.pass(), ElementsAre(Sent{3, 0, kOne}));
  EXPECT_EQ(end.server.counts.no_ops, 2u);
  for (int pass = 0; pass < 100; ++pass) EXPECT_THAT(end.pass(), IsEmpty());
  EXPECT_EQ(end.server.counts.no_ops, 2u);  // nothing is there to be moved on
}

// What a thread asks of its memory, in order.
struct AskingNode : ScriptedNode {
  std::vector<std::string> asked;
  const void* bucket = nullptr;
  std::string name(const void* place) const { return place == bucket ? "bucket" : "item"; }
  // A line that was just asked for is not asked for again.
  void prefetch(const void* place) {
    if (asked.empty() || asked.back() != "prefetch item") asked.push_back("prefetch " + name(place));
  }
  void load(const void* place) { asked.push_back("load " + name(place)); }
};

TEST(HerdServer, ThePipelineReadsOnlyMemoryPrefetchedAStepEarlier) {
  ServerEnd end(Prefetching::pipeline);
  end.store.put(key_of(7), std::as_bytes(std::span(kOne, kValue)));
  AskingNode node;
  node.bucket = end.store.bucket_place(key_of(7));
  end.device.after = [&node](const ibv_send_wr&) { node.asked.emplace_back("post"); };
  const auto pass = [&] {
    node.asked.clear();
    end.pass_of(node);
    return node.asked;
  };
  end.get(0, 0, 7);
  EXPECT_THAT(pass(), ElementsAre("prefetch bucket"));
  end.get(0, 1, 7);
  EXPECT_THAT(pass(), ElementsAre("prefetch bucket", "load bucket", "prefetch item"));
  end.get(1, 0, 7);  // while a post takes its time, what was asked for arrives
  EXPECT_THAT(pass(), ElementsAre("prefetch bucket", "load item", "load bucket", "prefetch item", "post"));
}

TEST(HerdServer, InlinesShortResponses) {
  ServerEnd end(Prefetching::off);
  end.server.inline_bytes = kValue - 1;
  std::vector<bool> inlined;
  end.device.after = [&](const ibv_send_wr& wr) { inlined.push_back((wr.send_flags & IBV_SEND_INLINE) != 0); };
  end.put(0, 0, 7, kOne);
  end.get(1, 0, 7);
  end.pass();
  EXPECT_THAT(inlined, ElementsAre(true, false));  // a status, a value
}

TEST(HerdServer, ABatchRunsThreeLoopsAndRingsOneDoorbell) {
  ServerEnd end(Prefetching::batch, true);
  end.store.put(key_of(7), std::as_bytes(std::span(kOne, kValue)));
  AskingNode node;
  node.bucket = end.store.bucket_place(key_of(7));
  end.get(0, 0, 7);
  end.get(3, 0, 7);
  end.pass_of(node);
  EXPECT_THAT(node.asked, ElementsAre("prefetch bucket", "prefetch bucket", "load bucket", "prefetch item",
                                      "load bucket", "prefetch item", "load item", "load item"));
  EXPECT_THAT(end.sent, ElementsAre(Sent{0, 0, kOne}, Sent{3, 0, kOne}));
  EXPECT_EQ(end.server.counts.passes.batches.lists[2], 1u);
}

TEST(HerdServer, WithoutBatchingABatchIsAnsweredOneByOneOnTheQpsInTurn) {
  ServerEnd end(Prefetching::batch, false);
  std::vector<std::uint64_t> used;
  end.device.after = [&](const ibv_send_wr& wr) { used.push_back(wr.wr_id & 0xffff); };
  for (std::uint32_t c = 0; c < 3; ++c) end.get(c, 0, 7);
  end.pass();
  EXPECT_THAT(used, ElementsAre(0, 1, 0));
  EXPECT_EQ(end.server.counts.passes.batches.lists[1], 3u);
}

TEST(HerdServer, LeavesRequestsWhenAQueueIsFullAndServesThemFirstInTheNextPass) {
  ServerEnd end(Prefetching::off);
  for (SendQueue& queue : end.queues) queue.room = 1;
  end.device.hold_completions = true;
  for (std::uint32_t c = 0; c < kClients; ++c) end.get(c, 0, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}));
  for (SendQueue& queue : end.queues) queue.room = 4;
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, ""}, Sent{2, 0, ""}, Sent{3, 0, ""}));
  EXPECT_EQ(end.server.counts.passes.blocked, 1u);
}

TEST(HerdServer, ExecutesALostPutOnceWhenItIsRetried) {
  for (const Prefetching prefetch : {Prefetching::off, Prefetching::batch}) {
    ServerEnd end(prefetch);
    end.put(1, 1, 7, kTwo);  // number 0 was lost
    EXPECT_THAT(end.pass(), IsEmpty());
    end.put_again(1, 0, 7, kOne);
    EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, ""}, Sent{1, 1, ""}));
    EXPECT_EQ(end.server.puts, 2u);
    end.put_again(1, 0, 7, kOne);  // the response was lost: it is given again, and the later PUT stands
    EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, ""}));
    EXPECT_EQ(end.server.puts, 2u);
    end.get(1, 2, 7);
    EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 2, kTwo}));
  }
}

// A node that counts the places that are looked at.
struct LookCountingNode : HostNode {
  void poll_memory(std::size_t count = 1) { places += count; }
  std::size_t places = 0;
};

TEST(HerdServer, WithAPipelinePollsTheBellEverySixteenthPass) {
  ServerEnd end(Prefetching::pipeline);
  end.get_again(0, 0, 7);  // client 0 rings
  const auto looks_of_a_pass = [&] {
    LookCountingNode node;
    end.pass_of(node);
    return node.places;
  };
  for (std::uint32_t pass = 1; pass < kPassesToBell; ++pass) EXPECT_EQ(looks_of_a_pass(), kClients);
  EXPECT_EQ(end.clients[0].next, 0u);
  EXPECT_EQ(looks_of_a_pass(), kClients + 1);
  EXPECT_EQ(end.clients[0].next, 1u);  // the bell was heard
}

// A node whose thread is told to quit when it idles.
struct QuittingNode : HostNode {
  explicit QuittingNode(RunControl& c) : control(&c) {}
  void idle() { control->quit = true; }
  RunControl* control;
};

TEST(HerdServer, PollsTheBellBeforeItSleeps) {
  ServerEnd end(Prefetching::pipeline);
  end.get_again(0, 0, 7);
  QuittingNode node(end.control);
  ThreadTally tally;
  server_loop(node, end.server, end.control, tally, pass<ServerPolicy{Prefetching::pipeline}, QuittingNode>);
  EXPECT_EQ(end.clients[0].next, 1u);
  EXPECT_THAT(end.sent, ElementsAre(Sent{0, 0, ""}));
}

TEST(HerdServer, TakesARequestOnceIfItAndItsRetryHaveArrived) {
  ServerEnd end(Prefetching::off);
  end.put(1, 0, 7, kOne);  // late, and there when the retry is
  end.put_again(1, 0, 7, kOne);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, ""}));
  EXPECT_EQ(end.server.puts, 1u);
  EXPECT_THAT(end.pass(), IsEmpty());
  EXPECT_EQ(end.clients[1].next, 1u);
}

TEST(HerdServer, ReadsAgainForAGetWhoseResponseWasLost) {
  ServerEnd end(Prefetching::off);
  end.put(1, 0, 7, kOne);
  end.get(2, 0, 7);
  EXPECT_EQ(end.pass().size(), 2u);
  end.get_again(2, 0, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{2, 0, kOne}));
}

// A thread whose clients ask by SEND, and their messages.
struct SendServerEnd : ServerEnd {
  static constexpr std::uint32_t kRecvs = 16;

  test::MessageQueue messages{device, kRecvs};

  explicit SendServerEnd(Prefetching prefetch) : ServerEnd(prefetch) { receive(messages); }
  void send_get(std::uint32_t client, std::uint64_t number, std::uint64_t key) {
    const std::span<const std::byte> bytes(write_get(end_of_message(), key_of(key)), kGetBytes);
    messages.deliver(bytes, tag_of(client, number));
  }
  void send_put(std::uint32_t client, std::uint64_t number, std::uint64_t key, const char* value) {
    const auto fill = [value](std::byte* to) { std::memcpy(to, value, kValue); };
    const std::byte* const begin = write_put(end_of_message(), key_of(key), kValue, fill);
    messages.deliver({begin, put_bytes(kValue)}, tag_of(client, number));
  }

 private:
  std::byte* end_of_message() { return message_.data() + message_.size(); }
  std::array<std::byte, put_bytes(kValue)> message_{};
};

TEST(HerdServer, ExecutesRequestsBySendInTheOrderOfEachClient) {
  SendServerEnd end(Prefetching::batch);
  end.send_put(0, 0, 7, kOne);
  end.send_get(1, 1, 7);  // number 0 was lost
  end.send_get(1, 0, 7);
  end.send_get(1, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}, Sent{1, 0, kOne}, Sent{1, 1, kOne}));
  end.send_put(1, 2, 7, kTwo);
  end.send_put(0, 0, 7, kOne);  // its response was lost
  end.send_get(0, 1, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 2, ""}, Sent{0, 0, ""}, Sent{0, 1, kTwo}));
  EXPECT_EQ(end.server.puts, 2u);
  EXPECT_EQ(end.device.recvs.size(), SendServerEnd::kRecvs);
}

// Two queues with a place each: two responses at most whatever the turn, so one, by the rule of the least room.
TEST(HerdServer, RequestsBySendWaitForRoomForTheirResponse) {
  SendServerEnd end(Prefetching::off);
  for (SendQueue& queue : end.queues) queue.room = 1;
  for (std::uint32_t c = 0; c < kClients; ++c) end.send_get(c, 0, 7);
  EXPECT_THAT(end.pass(), ElementsAre(Sent{0, 0, ""}));
  EXPECT_EQ(end.device.recvs.size(), SendServerEnd::kRecvs - 3);
  EXPECT_EQ(end.server.blocked, 3u);
  EXPECT_THAT(end.pass(), IsEmpty());
  EXPECT_EQ(end.server.blocked, 3u);
  for (SendQueue& queue : end.queues) queue.room = 4;
  EXPECT_THAT(end.pass(), ElementsAre(Sent{1, 0, ""}, Sent{2, 0, ""}, Sent{3, 0, ""}));
  EXPECT_EQ(end.device.recvs.size(), SendServerEnd::kRecvs);
  EXPECT_EQ(end.server.blocked, 0u);
  EXPECT_EQ(end.server.counts.passes.blocked, 6u);
}

TEST(HerdServer, FeedsItselfWithoutClients) {
  ServerEnd end(Prefetching::pipeline);
  std::vector<std::byte> bytes(64);
  write_get(bytes.data() + 64, key_of(7));
  const std::vector<std::uint32_t> lengths{16};
  Feed feed{.last = bytes.data() + 64, .stride = 64, .bytes = lengths};
  ThreadTally tally;
  serve_self_fed<ServerPolicy{Prefetching::pipeline}>(end.node, end.server, feed, 40, end.control, tally);
  EXPECT_EQ(tally.end.kind, EndKind::finished);
  EXPECT_GE(end.server.served, 40u);
  EXPECT_TRUE(tally.closed());
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
// What is posted and signaled, for the next poll.
std::array<std::uint64_t, kDepth> signaled;
int signaled_count = 0;
int post_and_keep_nothing(ibv_qp*, ibv_send_wr* list, ibv_send_wr**) {
  for (; list != nullptr; list = list->next) {
    if ((list->send_flags & IBV_SEND_SIGNALED) != 0) signaled.at(signaled_count++) = list->wr_id;
  }
  return 0;
}
int complete_signaled(ibv_cq*, int, ibv_wc* wcs) {
  for (int i = 0; i < signaled_count; ++i) {
    wcs[i].wr_id = signaled.at(i);
    wcs[i].status = IBV_WC_SUCCESS;
  }
  return std::exchange(signaled_count, 0);
}

TEST(HerdServer, AllocatesNothing) {
  std::vector<std::byte> bytes(128);
  write_get(bytes.data() + 64, key_of(7));
  const std::byte* const put = write_put(bytes.data() + 128, key_of(7), kValue, [](std::byte*) {});
  const std::vector<std::uint32_t> lengths{16, static_cast<std::uint32_t>(bytes.data() + 128 - put)};
  for (const ServerPolicy policy :
       {ServerPolicy{Prefetching::off}, ServerPolicy{Prefetching::pipeline}, ServerPolicy{Prefetching::batch},
        ServerPolicy{Prefetching::off, true}, ServerPolicy{Prefetching::batch, true}}) {
    ServerEnd end(policy.prefetch, policy.batching);
    for (SendQueue& queue : end.queues) queue.qp->context->ops.post_send = post_and_keep_nothing;
    end.device.cq()->context->ops.poll_cq = complete_signaled;
    Feed feed{.last = bytes.data() + 64, .stride = 64, .bytes = lengths};
    signaled_count = 0;
    ThreadTally tally;
    const std::size_t before = allocations_of_this_thread();
    dispatch(policy, [&]<ServerPolicy kPolicy>() {
      serve_self_fed<kPolicy>(end.node, end.server, feed, 1000, end.control, tally);
    });
    EXPECT_EQ(allocations_of_this_thread() - before, 0u);
    EXPECT_GE(end.server.served, 1000u);
  }
}
#endif

TEST(HerdServer, EndsOnTheOrderToQuit) {
  ServerEnd end(Prefetching::pipeline);
  ThreadTally tally;
  end.get(0, 0, 7);
  end.node.on_idle = [&] { end.control.quit = true; };
  server_loop(end.node, end.server, end.control, tally, pass<ServerPolicy{Prefetching::pipeline}, test::ScriptedNode>);
  EXPECT_EQ(tally.end.kind, EndKind::gave_up);
  EXPECT_EQ(end.server.served, 1u);  // not before the pipeline is empty
}

}  // namespace
}  // namespace verbscope::herd
