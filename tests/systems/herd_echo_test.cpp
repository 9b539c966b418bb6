// HERD's echo: what a thread reads for a request and when, and what a client sees of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "systems/herd/message.hpp"
#include "tests/systems/herd_server_end.hpp"

namespace verbscope::herd {
namespace {

using lookups::Chain;
using test::ScriptedNode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kSeed = 5;
constexpr std::uint64_t kTable = 4096;  // bytes

EchoRule rule_of(std::uint32_t accesses) {
  return {.seed = kSeed, .places = kTable / 4, .accesses = accesses};
}

// A server that reads so many places for each request.
struct EchoEnd : ServerEnd {
  Chain chain;
  EchoRule rule;

  EchoEnd(std::uint32_t accesses, Prefetching prefetch, bool batching = false)
      : ServerEnd(prefetch, batching), chain(Bytes(kTable), accesses, kSeed, PageSize::kb4), rule(rule_of(accesses)) {
    server.store = nullptr;
    server.policy.echo = true;
    server.prepare_echo(rule, &chain);
  }

  // Whether each response of `pass` is the right one to a request for key 7 with that value.
  std::vector<std::string> answered(const std::vector<Sent>& pass, const char* value) const {
    std::vector<std::string> text;
    for (const Sent& one : pass) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(one.value.data());
      const auto* const asked = reinterpret_cast<const std::byte*>(value);
      const bool right = one.value.size() == kValue && is_echo(rule, key_of(7), asked, bytes, kValue);
      text.push_back(std::to_string(one.to) + (right ? " right" : " wrong"));
    }
    return text;
  }
};

TEST(HerdEcho, AClientComputesTheEndOfAWalkWithoutTheMemory) {
  for (const std::uint32_t accesses : {1u, 2u, 16u}) {
    const Chain chain(Bytes(kTable), accesses, kSeed, PageSize::kb4);
    ScriptedNode node;
    for (std::uint64_t name = 0; name < 50; ++name) {
      const EchoRule rule = rule_of(accesses);
      EXPECT_EQ(rule.end(key_of(name)), chain.find(node, rule.start(key_of(name))));
    }
  }
}

TEST(HerdEcho, AnEchoIsRightIfItsBytesAreRightAndEveryPlaceWasRead) {
  std::array<std::byte, kValue> sent{}, response{};
  std::memcpy(sent.data(), kOne, kValue);
  response = sent;
  mask_echo(response.data(), rule_of(3).end(key_of(7)));
  EXPECT_TRUE(is_echo(rule_of(3), key_of(7), sent.data(), response.data(), kValue));
  EXPECT_FALSE(is_echo(rule_of(2), key_of(7), sent.data(), response.data(), kValue));  // a place fewer
  EXPECT_FALSE(is_echo(rule_of(3), key_of(8), sent.data(), response.data(), kValue));
  for (std::byte& byte : response) {
    byte ^= std::byte{1};
    EXPECT_FALSE(is_echo(rule_of(3), key_of(7), sent.data(), response.data(), kValue));
    byte ^= std::byte{1};
  }
}

TEST(HerdEcho, WithoutPrefetchingARequestIsAnsweredAtOnce) {
  EchoEnd end(5, Prefetching::off);
  end.put(2, 0, 7, kOne);
  EXPECT_THAT(end.answered(end.pass(), kOne), ElementsAre("2 right"));
  EXPECT_THAT(end.pass(), IsEmpty());
}

// A request reads a place a step, and is answered in the step in which it reads the last.
TEST(HerdEcho, ThePipelineHasAStepForEachPlace) {
  EchoEnd end(3, Prefetching::pipeline);
  std::size_t taken = 0;
  for (const auto& [client, number] : {std::pair(0u, 0u), std::pair(0u, 1u), std::pair(1u, 0u)}) {
    end.put(client, number, 7, kOne);
    EXPECT_THAT(end.pass(), IsEmpty());
    EXPECT_EQ(end.server.under_way(), ++taken);
  }
  for (const std::uint32_t client : {2u, 3u}) {
    end.put(client, 0, 7, kOne);
    EXPECT_THAT(end.answered(end.pass(), kOne), ElementsAre("0 right"));
    EXPECT_EQ(end.server.under_way(), 3u);
  }
}

TEST(HerdEcho, NoOpsPushARequestThroughEachStep) {
  EchoEnd end(3, Prefetching::pipeline);
  end.put(3, 0, 7, kTwo);  // the last that is looked at in its pass
  EXPECT_THAT(end.pass(), IsEmpty());
  for (int pass = 0; pass < 74; ++pass) EXPECT_THAT(end.pass(), IsEmpty());  // 296 looks
  EXPECT_THAT(end.answered(end.pass(), kTwo), ElementsAre("3 right"));
  EXPECT_EQ(end.server.counts.no_ops, 3u);
  EXPECT_EQ(end.server.under_way(), 0u);
}

// Counts how often the thread read a place that it had asked for before, and in which pass it did.
struct EarlierNode : ScriptedNode {
  std::map<const void*, int> asked;
  int pass = 0, early = 0, late = 0;
  void prefetch(const void* place) { asked[place] = pass; }
  void load(const void* place) {
    const auto found = asked.find(place);
    found != asked.end() && found->second < pass ? ++early : ++late;
  }
};

TEST(HerdEcho, ThePipelineReadsOnlyPlacesPrefetchedAStepEarlier) {
  EchoEnd end(3, Prefetching::pipeline);
  EarlierNode node;
  for (std::uint64_t number = 0; number < 5; ++number) {
    for (std::uint32_t client = 0; client < kClients; ++client, ++node.pass) {
      end.put(client, number, number * kClients + client, kOne);
      end.pass_of(node);
    }
  }
  EXPECT_EQ(node.late, 0);
  EXPECT_EQ(end.server.served, 20u - 3);
  EXPECT_EQ(node.early, 17 * 3 + 2 + 1);  // the last three have read two, one, and none
}

TEST(HerdEcho, EchoesABatchWithOneDoorbell) {
  EchoEnd end(6, Prefetching::batch, true);
  for (std::uint32_t client = 0; client < kClients; ++client) end.put(client, 0, 7, kOne);
  EXPECT_THAT(end.answered(end.pass(), kOne), ElementsAre("0 right", "1 right", "2 right", "3 right"));
}

TEST(HerdEcho, EchoesARetriedRequestAgain) {
  EchoEnd end(2, Prefetching::off);
  end.put(0, 0, 7, kOne);
  end.pass();
  end.put_again(0, 0, 7, kOne);
  EXPECT_THAT(end.answered(end.pass(), kOne), ElementsAre("0 right"));
}

}  // namespace
}  // namespace verbscope::herd
