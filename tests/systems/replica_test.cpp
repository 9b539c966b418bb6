// Replicas over a network in memory: elections, PUTs and GETs, faults.
#include "systems/raft/replica.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/systems/raft_cluster.hpp"

namespace verbscope {
namespace {

StoreValue value_of(std::uint64_t id) {
  StoreValue value{};
  for (std::size_t at = 0; at < kStoreValue; at += 8) std::memcpy(value.data() + at, &id, sizeof id);
  return value;
}
std::uint64_t id_in(const StoreAnswer& answer) {
  std::uint64_t id = 0;
  std::memcpy(&id, answer.value.data() + kStoreValue - 8, sizeof id);
  return answer.found ? id : 0;
}
StoreRequest put_request(std::uint64_t session, std::uint64_t number, std::uint64_t key, std::uint64_t id) {
  return {StoreOp::put, session, number, store_key(key), value_of(id)};
}
StoreRequest get(std::uint64_t key) {
  return {.op = StoreOp::get, .key = store_key(key)};
}

// A session at the leader, after an election.
std::uint64_t begin(RaftCluster& cluster) {
  EXPECT_TRUE(cluster.await_leader());
  return cluster.ask_and_wait(cluster.leader(), {}).session;
}

std::vector<std::byte> state_of(Replica& replica) {
  std::vector<std::byte> state(replica.store().snapshot_bytes());
  replica.store().snapshot(state.data());
  return state;
}
void expect_equal_states(RaftCluster& cluster) {
  const auto applied = [&cluster](raft_id id) { return cluster.node(id).replica->c_raft().last_applied; };
  ASSERT_TRUE(cluster.run_until([&] {
    for (raft_id id = 2; id <= cluster.size(); ++id) {
      if (applied(id) != applied(1)) return false;
    }
    return cluster.leader() != 0;
  })) << cluster.describe();
  for (raft_id id = 2; id <= cluster.size(); ++id) {
    EXPECT_TRUE(state_of(*cluster.node(id).replica) == state_of(*cluster.node(1).replica)) << id;
  }
}

TEST(Replica, OneLeads) {
  for (const std::size_t replicas : {3, 5}) {
    RaftCluster cluster({.replicas = replicas});
    ASSERT_TRUE(cluster.await_leader());
    EXPECT_LE(cluster.now(), 6 * RaftCluster::kElection);
    cluster.run(20 * RaftCluster::kElection);
    std::uint64_t elections = 0, leads = 0;
    for (raft_id id = 1; id <= replicas; ++id) {
      leads += cluster.node(id).replica->leads();
      elections += cluster.node(id).replica->counts().leaderships;
    }
    EXPECT_EQ(leads, 1u);
    EXPECT_EQ(elections, 1u);
  }
}

TEST(Replica, AnswersAPutWhenAMajorityHasIt) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  const raft_id leader = cluster.leader();
  EXPECT_EQ(cluster.ask_and_wait(leader, put_request(session, 1, 5, 77)).status, StoreStatus::done);
  EXPECT_EQ(id_in(cluster.ask_and_wait(leader, get(5))), 77u);
  EXPECT_FALSE(cluster.ask_and_wait(leader, get(6)).found);
  for (raft_id id = 1; id <= 3; ++id) {
    if (id != leader) cluster.node(id).cut = true;
  }
  const std::uint64_t lonely = cluster.ask(leader, put_request(session, 2, 5, 78));
  const std::uint64_t unread = cluster.ask(leader, get(5));
  cluster.run(RaftCluster::kElection / 2);
  EXPECT_FALSE(cluster.answers().contains(lonely));
  EXPECT_FALSE(cluster.answers().contains(unread));
  cluster.run(4 * RaftCluster::kElection);
  EXPECT_FALSE(cluster.node(leader).replica->leads());
  EXPECT_EQ(cluster.answers().at(lonely).status, StoreStatus::unknown);
  EXPECT_EQ(cluster.answers().at(unread).status, StoreStatus::not_leader);
}

TEST(Replica, AFollowerNamesTheLeader) {
  RaftCluster cluster({});
  begin(cluster);
  const raft_id leader = cluster.leader();
  const raft_id other = leader == 1 ? 2 : 1;
  for (const StoreRequest& request : {get(1), put_request(1, 1, 1, 1), StoreRequest{}}) {
    const StoreAnswer answer = cluster.ask_and_wait(other, request);
    EXPECT_EQ(answer.status, StoreStatus::not_leader);
    EXPECT_EQ(answer.leader, leader);
  }
}

TEST(Replica, AppliesAPutOnce) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  const raft_id leader = cluster.leader();
  cluster.ask_and_wait(leader, put_request(session, 1, 1, 10));
  cluster.ask_and_wait(leader, put_request(session, 2, 1, 11));
  EXPECT_EQ(cluster.ask_and_wait(leader, put_request(session, 1, 1, 10)).status, StoreStatus::done);
  EXPECT_EQ(id_in(cluster.ask_and_wait(leader, get(1))), 11u);
  EXPECT_EQ(cluster.ask_and_wait(leader, put_request(session + 99, 1, 1, 12)).status, StoreStatus::expired);
  EXPECT_EQ(id_in(cluster.ask_and_wait(leader, get(1))), 11u);
}

TEST(Replica, RefusesWhatIsNoRequest) {
  RaftCluster cluster({});
  begin(cluster);
  StoreRequest wrong = get(1);
  wrong.op = StoreOp{7};
  EXPECT_EQ(cluster.ask_and_wait(cluster.leader(), wrong).status, StoreStatus::expired);
}

TEST(Replica, KeepsPutsWhenTheLeaderIsKilled) {
  RaftCluster cluster({.seed = 3});
  const std::uint64_t session = begin(cluster);
  for (std::uint64_t round = 1; round <= 10; ++round) {
    const raft_id leader = cluster.leader();
    ASSERT_EQ(cluster.ask_and_wait(leader, put_request(session, round, round % 3, round)).status, StoreStatus::done);
    cluster.node(leader).kill();
    const Picos killed = cluster.now();
    ASSERT_TRUE(cluster.await_leader());
    EXPECT_LE(cluster.now() - killed, 10 * RaftCluster::kElection);
    EXPECT_EQ(id_in(cluster.ask_and_wait(cluster.leader(), get(round % 3))), round);
    cluster.start(leader);
  }
  expect_equal_states(cluster);
}

// The first replica of a new cluster does not start, so that the two others must agree.
TEST(Replica, ANewClusterNeedsOnlyAMajority) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RaftCluster cluster({.seed = seed});
    cluster.node(1).kill();
    ASSERT_TRUE(cluster.run_until([&] { return cluster.leader() != 0; }, 10 * RaftCluster::kElection)) << seed;
  }
}

// One of two replicas has the longer log, and the other has voted in newer terms since.
TEST(Replica, TheLongerLogWinsAlsoWithAnOldTerm) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  const raft_id lost = cluster.leader(), longer = lost % 3 + 1, newer = longer % 3 + 1;
  cluster.node(newer).kill();
  ASSERT_EQ(cluster.ask_and_wait(lost, put_request(session, 1, 5, 77)).status, StoreStatus::done);
  cluster.node(lost).kill();
  cluster.node(longer).kill();
  RaftLog(cluster.node(newer).log_storage, cluster.node(newer).snapshot_storage).set_vote(7, lost);
  cluster.start(longer);
  cluster.start(newer);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.leader() != 0; }, 10 * RaftCluster::kElection))
      << cluster.describe();
  EXPECT_EQ(cluster.leader(), longer);
  EXPECT_EQ(id_in(cluster.ask_and_wait(longer, get(5))), 77u);
}

// The library has requests on their way when it is closed.
TEST(Replica, EndsInTheMiddleOfAppends) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  const raft_id leader = cluster.leader();
  for (std::uint64_t i = 1; i <= 5; ++i) cluster.ask(leader, put_request(session, i, 1, i));
  cluster.node(leader).kill();
  cluster.start(leader);
  expect_equal_states(cluster);
}

TEST(Replica, SurvivesTheEndOfAllReplicas) {
  RaftCluster cluster({.snapshot_every = 40});
  const std::uint64_t session = begin(cluster);
  for (std::uint64_t i = 1; i <= 100; ++i) cluster.ask_and_wait(cluster.leader(), put_request(session, i, i % 7, i));
  for (raft_id id = 1; id <= 3; ++id) cluster.node(id).kill();
  for (raft_id id = 1; id <= 3; ++id) cluster.start(id);
  ASSERT_TRUE(cluster.await_leader());
  for (std::uint64_t i = 94; i <= 100; ++i) EXPECT_EQ(id_in(cluster.ask_and_wait(cluster.leader(), get(i % 7))), i);
  EXPECT_EQ(cluster.ask_and_wait(cluster.leader(), put_request(session, 100, 1, 1)).status, StoreStatus::done);
  EXPECT_EQ(id_in(cluster.ask_and_wait(cluster.leader(), get(1))), 99u);
}

// A follower that was away gets a snapshot, because the leader has dropped the entries that it lacks.
TEST(Replica, SendsASnapshotToAFollowerThatIsFarBehind) {
  RaftCluster cluster({.snapshot_every = 50});
  const std::uint64_t session = begin(cluster);
  const raft_id leader = cluster.leader();
  const raft_id other = leader == 1 ? 2 : 1;
  cluster.node(other).kill();
  for (std::uint64_t i = 1; i <= 300; ++i) {
    ASSERT_EQ(cluster.ask_and_wait(leader, put_request(session, i, i % 50, i)).status, StoreStatus::done);
  }
  EXPECT_GT(cluster.node(leader).replica->counts().snapshots, 3u);
  EXPECT_GT(cluster.node(leader).log->first(), 200u);
  cluster.start(other);
  expect_equal_states(cluster);
  cluster.node(other).kill();
  cluster.start(other);
  expect_equal_states(cluster);
}

// The leader's log is full: it refuses PUTs, another replica leads, and the replica follows again when it has space.
TEST(Replica, AFullLogHandsOver) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  const raft_id full = cluster.leader();
  cluster.ask_and_wait(full, put_request(session, 1, 1, 1));
  cluster.node(full).log_storage.limit(cluster.node(full).log_storage.size());
  std::uint64_t number = 2;
  StoreAnswer answer;
  for (; number < 200 && answer.status == StoreStatus::done; ++number) {
    answer = cluster.ask_and_wait(full, put_request(session, number, 1, number));
  }
  EXPECT_EQ(answer.status, StoreStatus::no_space);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.leader() != 0 && cluster.leader() != full; }));
  for (int i = 0; i < 50; ++i, ++number) {
    EXPECT_EQ(cluster.ask_and_wait(cluster.leader(), put_request(session, number, 1, number)).status,
              StoreStatus::done);
  }
  EXPECT_EQ(id_in(cluster.ask_and_wait(cluster.leader(), get(1))), number - 1);
  EXPECT_TRUE(cluster.node(full).replica->full());
  const std::uint64_t terms = cluster.node(full).replica->counts().terms;
  cluster.run(10 * RaftCluster::kElection);
  EXPECT_EQ(cluster.node(full).replica->counts().terms, terms);  // it still follows
  cluster.node(full).log_storage.limit(1 << 20);
  expect_equal_states(cluster);
  EXPECT_FALSE(cluster.node(full).replica->full());
}

TEST(Replica, AllLogsFullStillAnswersGets) {
  RaftCluster cluster({});
  const std::uint64_t session = begin(cluster);
  cluster.ask_and_wait(cluster.leader(), put_request(session, 1, 1, 1));
  for (raft_id id = 1; id <= 3; ++id) cluster.node(id).log_storage.limit(cluster.node(id).log_storage.size());
  std::uint64_t last = 1;
  for (std::uint64_t number = 2; number < 200; ++number) {
    ASSERT_TRUE(cluster.await_leader());
    if (cluster.ask_and_wait(cluster.leader(), put_request(session, number, 1, number)).status == StoreStatus::done)
      last = number;
  }
  cluster.run(30 * RaftCluster::kElection);
  ASSERT_TRUE(cluster.await_leader());
  const StoreAnswer answer = cluster.ask_and_wait(cluster.leader(), get(1));
  EXPECT_EQ(answer.status, StoreStatus::done) << cluster.describe();
  EXPECT_GE(id_in(answer), last);
}

// A GET at a leader that others have deposed must not be answered from its state.
TEST(Replica, ADeposedLeaderAnswersNoGet) {
  for (const ReadMode reads : {ReadMode::leader, ReadMode::lease}) {
    RaftCluster cluster({.seed = 11, .reads = reads});
    const std::uint64_t session = begin(cluster);
    const raft_id old = cluster.leader();
    cluster.ask_and_wait(old, put_request(session, 1, 1, 1));
    cluster.node(old).cut = true;
    ASSERT_TRUE(cluster.run_until([&] { return cluster.leader() != 0 && cluster.leader() != old; }));
    EXPECT_EQ(cluster.ask_and_wait(cluster.leader(), put_request(session, 2, 1, 2)).status, StoreStatus::done);
    const StoreAnswer late = cluster.ask_and_wait(old, get(1));
    EXPECT_NE(late.status, StoreStatus::done);
    cluster.node(old).cut = false;
    expect_equal_states(cluster);
  }
}

TEST(Replica, ALeaseAnswersGetsWithoutAMessage) {
  RaftCluster cluster({.reads = ReadMode::lease});
  const std::uint64_t session = begin(cluster);
  const raft_id leader = cluster.leader();
  cluster.ask_and_wait(leader, put_request(session, 1, 1, 1));
  const std::uint64_t probes = cluster.node(leader).replica->counts().probes;
  const std::uint64_t asked = cluster.ask(leader, get(1));
  ASSERT_TRUE(cluster.answers().contains(asked));
  EXPECT_EQ(id_in(cluster.answers().at(asked)), 1u);
  EXPECT_EQ(cluster.node(leader).replica->counts().probes, probes);
}

// A follower without space has a rest of an earlier term, which it cannot replace. It must not count for a majority.
TEST(Replica, ARestOfAnEarlierTermDoesNotCount) {
  int tried = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    RaftCluster cluster({.seed = seed});
    const std::uint64_t session = begin(cluster);
    const raft_id old = cluster.leader();
    cluster.node(old).cut = true;  // its entries reach nobody
    for (std::uint64_t i = 1; i <= 5; ++i) cluster.ask(old, put_request(session, i, 1, 100 + i));
    cluster.run(RaftCluster::kStep * 10);
    const std::uint64_t rest = cluster.node(old).log->next();
    cluster.node(old).kill();
    cluster.node(old).cut = false;
    cluster.start(old);
    cluster.node(old).log_storage.limit(0);
    ASSERT_TRUE(cluster.await_leader());
    const raft_id leader = cluster.leader();
    if (leader == old || cluster.node(leader).log->next() >= rest) continue;
    ++tried;
    cluster.node(6 - old - leader).cut = true;
    const std::uint64_t asked = cluster.ask(leader, put_request(session, 6, 1, 6));
    cluster.run(5 * RaftCluster::kElection);
    EXPECT_FALSE(cluster.answers().contains(asked)) << "seed " << seed;
    cluster.node(6 - old - leader).cut = false;
    ASSERT_TRUE(cluster.await_leader());
    EXPECT_EQ(cluster.ask_and_wait(cluster.leader(), put_request(session, 6, 1, 6)).status, StoreStatus::done);
    EXPECT_EQ(id_in(cluster.ask_and_wait(cluster.leader(), get(1))), 6u);
  }
  EXPECT_GE(tried, 5);
}

// Random faults: messages lost, replicas killed and cut off. One client asks again until it has an answer.
TEST(Replica, LosesNothingUnderRandomFaults) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RaftCluster cluster({.replicas = seed % 3 == 0 ? 5u : 3u,
                         .seed = seed,
                         .loss = seed % 2 == 0 ? 0.05 : 0,
                         .snapshot_every = seed % 4 == 0 ? 20u : 1000u,
                         .reads = seed % 5 == 0 ? ReadMode::lease : ReadMode::leader});
    std::mt19937_64 random(seed * 7919);
    const std::uint64_t session = begin(cluster);
    ASSERT_NE(session, 0u);
    std::map<std::uint64_t, std::uint64_t> wrote;
    raft_id down = 0;
    for (std::uint64_t i = 1; i <= 60; ++i) {
      const std::uint64_t key = random() % 4;
      if (down == 0 && random() % 8 == 0) {
        down = random() % cluster.size() + 1;
        if (random() % 2 == 0) {
          cluster.node(down).cut = true;
        } else {
          cluster.node(down).kill();
        }
      } else if (down != 0 && random() % 4 == 0) {
        cluster.node(down).cut = false;
        if (cluster.node(down).replica == nullptr) cluster.start(down);
        down = 0;
      }
      bool done = false;
      for (int attempt = 0; attempt < 50 && !done; ++attempt) {
        ASSERT_TRUE(cluster.await_leader()) << seed;
        const std::uint64_t asked = cluster.ask(cluster.leader(), put_request(session, i, key, i));
        cluster.run_until([&] { return cluster.answers().contains(asked); }, 4 * RaftCluster::kElection);
        done = cluster.answers().contains(asked) && cluster.answers().at(asked).status == StoreStatus::done;
      }
      ASSERT_TRUE(done) << "seed " << seed << ", PUT " << i;
      wrote[key] = i;
      const std::uint64_t read = random() % 4;
      ASSERT_TRUE(cluster.await_leader());
      const std::uint64_t asked = cluster.ask(cluster.leader(), get(read));
      cluster.run_until([&] { return cluster.answers().contains(asked); }, 4 * RaftCluster::kElection);
      if (cluster.answers().contains(asked) && cluster.answers().at(asked).status == StoreStatus::done) {
        EXPECT_EQ(id_in(cluster.answers().at(asked)), wrote.contains(read) ? wrote[read] : 0)
            << "seed " << seed << ", PUT " << i;
      }
    }
    if (down != 0) {
      cluster.node(down).cut = false;
      if (cluster.node(down).replica == nullptr) cluster.start(down);
    }
    expect_equal_states(cluster);
  }
}

}  // namespace
}  // namespace verbscope
