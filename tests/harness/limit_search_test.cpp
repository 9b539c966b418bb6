// The search for the resource that limits a rate, with a runner whose limits are known.
#include "harness/what_if/limit_search.hpp"

#include <algorithm>
#include <map>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using Set = std::vector<Resource>;

const Set kAll{Resource::outstanding,      Resource::requester_unit,    Resource::responder_unit, Resource::cpu,
               Resource::pcie_to_nic,      Resource::wire_out,          Resource::wqe_cache,      Resource::wqe_fetch,
               Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads};

// Each resource allows a rate that doubles with it. The rate of a run is the lowest of them.
class World {
 public:
  explicit World(std::map<Resource, double> allowed) : allowed_(std::move(allowed)) {}

  LimitSearch search(Set resources = kAll, Set apart = {}) {
    return {std::move(resources), std::move(apart), rate({}), [this](const std::vector<Set>& sets) {
              std::vector<TrialOutcome> out;
              for (const Set& set : sets) out.push_back(outcome(set));
              return out;
            }};
  }
  double rate(const Set& doubled) const {
    double least = 1e9;
    for (const auto& [resource, allowed] : allowed_) {
      const bool twice = std::ranges::find(doubled, resource) != doubled.end();
      least = std::min(least, twice ? 2 * allowed : allowed);
    }
    return least;
  }

  Set broken{};  // a run with one of these doubled fails
  int runs = 0;

 private:
  TrialOutcome outcome(const Set& doubled) {
    ++runs;
    const auto fails = [this](Resource each) { return std::ranges::find(broken, each) != broken.end(); };
    if (std::ranges::any_of(doubled, fails)) return {.failure = "no steady rate"};
    return {.mops = rate(doubled)};
  }

  std::map<Resource, double> allowed_;
};

// The closed form names latency as the limit; runs show that it is the translation cache. Four runs narrow it down to
// one of eight, and two runs each halve these: 4, 2, 1 remain.
TEST(LimitSearch, FindsTheLastCandidateWithFewRuns) {
  World world({{Resource::translation_cache, 10}, {Resource::cpu, 100}});
  const LimitSearch::Found found = world.search().find();
  EXPECT_EQ(found.limits, Set{Resource::translation_cache});
  EXPECT_NEAR(found.gain, 2, 1e-9);
  EXPECT_LE(world.runs, 4 + 2 * 3);
}

TEST(LimitSearch, StopsIfTheOthersTogetherGainNothing) {
  World world({{Resource::outstanding, 10}, {Resource::cpu, 100}});
  EXPECT_EQ(world.search().find().limits, Set{Resource::outstanding});
  EXPECT_EQ(world.runs, 4);  // latency, the two likeliest, all others together
}

// If two resources help, the one with the larger gain is the limit, although the other is more likely.
TEST(LimitSearch, ReturnsTheResourceWithTheLargestGain) {
  LimitSearch search({Resource::cpu, Resource::wire_out}, {}, 10, [](const std::vector<Set>& sets) {
    std::vector<TrialOutcome> out;
    for (const Set& set : sets) out.push_back({.mops = set[0] == Resource::cpu ? 13.0 : 14.0});
    return out;
  });
  const LimitSearch::Found found = search.find();
  EXPECT_EQ(found.limits, Set{Resource::wire_out});
  EXPECT_NEAR(found.gain, 1.4, 1e-9);
}

TEST(LimitSearch, FindsAPairWithoutSingleGains) {
  World world({{Resource::requester_unit, 10}, {Resource::pcie_to_nic, 10}, {Resource::cpu, 15}});
  const LimitSearch::Found found =
      world.search({Resource::requester_unit, Resource::cpu, Resource::pcie_to_nic}).find();
  EXPECT_EQ(found.limits, (Set{Resource::requester_unit, Resource::pcie_to_nic}));
  EXPECT_NEAR(found.gain, 1.5, 1e-9);
}

// Neither resource of the pair is among the likeliest: the set of all is reduced to the pair.
TEST(LimitSearch, FindsAPairAtAnyPosition) {
  World world({{Resource::wqe_fetch, 10}, {Resource::dma_reads, 10}, {Resource::cpu, 100}});
  const LimitSearch::Found found = world.search().find();
  EXPECT_EQ(found.limits, (Set{Resource::wqe_fetch, Resource::dma_reads}));
  EXPECT_NEAR(found.gain, 2, 1e-9);
}

// Doubling the wire alone gains a fifth, then the CPU is full: the wire alone is the limit.
TEST(LimitSearch, PrefersASingleResource) {
  World world({{Resource::wire_out, 10}, {Resource::cpu, 12}});
  const LimitSearch::Found found = world.search({Resource::cpu, Resource::wire_out, Resource::dma_reads}).find();
  EXPECT_EQ(found.limits, Set{Resource::wire_out});
  EXPECT_NEAR(found.gain, 1.2, 1e-9);
}

// 2 % is below the smallest gain, even for all resources together.
TEST(LimitSearch, FindsNothingIfNothingRaisesTheRate) {
  LimitSearch search(kAll, {}, 10, [](const std::vector<Set>& sets) {
    return std::vector<TrialOutcome>(sets.size(), TrialOutcome{.mops = 10.2});
  });
  EXPECT_TRUE(search.find().limits.empty());
}

// A group whose run fails is split; a resource that fails alone is reported and left out.
TEST(LimitSearch, ReportsAFailedRunAndContinues) {
  World world({{Resource::dma_reads, 10}, {Resource::cpu, 100}});
  world.broken = {Resource::wire_out};
  LimitSearch search = world.search();
  EXPECT_EQ(search.find().limits, Set{Resource::dma_reads});
  EXPECT_THAT(search.failed(), testing::Contains(testing::HasSubstr("no steady rate")));
  world.broken = kAll;
  EXPECT_TRUE(world.search().find().limits.empty());
}

// Doubling everything is never combined with others, because it would hide that they gain nothing.
TEST(LimitSearch, DoublesApartResourcesAlone) {
  bool mixed = false;
  LimitSearch search(kAll, {Resource::outstanding}, 10, [&mixed](const std::vector<Set>& sets) {
    std::vector<TrialOutcome> out;
    for (const Set& set : sets) {
      const bool latency = std::ranges::find(set, Resource::outstanding) != set.end();
      mixed = mixed || (latency && set.size() > 1);
      out.push_back({.mops = latency ? 12.0 : 10.2});
    }
    return out;
  });
  EXPECT_EQ(search.find().limits, Set{Resource::outstanding});
  EXPECT_FALSE(mixed);
}

}  // namespace
}  // namespace verbscope
