// Messages of C-Raft as bytes, and the state machine.
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "systems/raft/raft_message.hpp"
#include "systems/raft/replicated_store.hpp"

namespace verbscope {
namespace {

std::vector<std::byte> encoded(const raft_message& message, const MessageNotes& notes = {}) {
  std::vector<std::byte> bytes(encoded_bytes(message));
  encode(message, 3, notes, bytes.data());
  return bytes;
}

raft_message message_of(unsigned short type) {
  raft_message message{};
  message.type = type;
  return message;
}

TEST(RaftMessage, KeepsTheFieldsOfShortMessages) {
  raft_message vote = message_of(RAFT_IO_REQUEST_VOTE);
  vote.request_vote = {9, 2, 33, 8, true, true};
  auto decoded = decode(encoded(vote));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->message.server_id, 3u);
  EXPECT_EQ(sender_of(encoded(vote)), 3u);
  EXPECT_EQ(sender_of({}), 0u);
  const raft_request_vote& v = decoded->message.request_vote;
  EXPECT_EQ(v.term, 9u);
  EXPECT_EQ(v.candidate_id, 2u);
  EXPECT_EQ(v.last_log_index, 33u);
  EXPECT_EQ(v.last_log_term, 8u);
  EXPECT_TRUE(v.disrupt_leader && v.pre_vote);

  for (const raft_tribool pre : {raft_tribool_unknown, raft_tribool_true, raft_tribool_false}) {
    raft_message result = message_of(RAFT_IO_REQUEST_VOTE_RESULT);
    result.request_vote_result = {4, true, pre};
    decoded = decode(encoded(result));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->message.request_vote_result.pre_vote, pre);
    EXPECT_TRUE(decoded->message.request_vote_result.vote_granted);
  }

  raft_message result = message_of(RAFT_IO_APPEND_ENTRIES_RESULT);
  result.append_entries_result = {5, 6, 7};
  decoded = decode(encoded(result, {.probe = true, .full = true}));
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(decoded->notes.probe && decoded->notes.full);
  EXPECT_EQ(decoded->message.append_entries_result.rejected, 6u);
  EXPECT_EQ(decoded->message.append_entries_result.last_log_index, 7u);

  raft_message now = message_of(RAFT_IO_TIMEOUT_NOW);
  now.timeout_now = {1, 2, 3};
  decoded = decode(encoded(now));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->message.timeout_now.last_log_term, 3u);
}

struct Entries {
  raft_message message = message_of(RAFT_IO_APPEND_ENTRIES);
  char text[3][9] = {"", "a", "12345678"};
  raft_entry entries[3] = {{1, RAFT_BARRIER, {text[0], 0}, nullptr},
                           {2, RAFT_COMMAND, {text[1], 1}, nullptr},
                           {2, RAFT_CHANGE, {text[2], 8}, nullptr}};
  Entries() { message.append_entries = {8, 10, 7, 9, entries, 3}; }
};

TEST(RaftMessage, KeepsEntries) {
  auto decoded = decode(encoded(Entries().message));
  ASSERT_TRUE(decoded);
  const raft_append_entries& m = decoded->message.append_entries;
  EXPECT_EQ(m.prev_log_index, 10u);
  EXPECT_EQ(m.leader_commit, 9u);
  ASSERT_EQ(m.n_entries, 3u);
  EXPECT_EQ(m.entries[0].buf.len, 0u);
  EXPECT_EQ(m.entries[1].term, 2u);
  EXPECT_EQ(std::memcmp(m.entries[1].buf.base, "a", 1), 0);
  EXPECT_EQ(m.entries[2].type, RAFT_CHANGE);
  EXPECT_EQ(std::memcmp(m.entries[2].buf.base, "12345678", 8), 0);
  EXPECT_EQ(m.entries[0].batch, m.entries[2].batch);
  release(decoded->message);
}

struct Snapshot {
  raft_message message = message_of(RAFT_IO_INSTALL_SNAPSHOT);
  char data[6] = "state";
  Snapshot() {
    raft_install_snapshot& m = message.install_snapshot;
    m = {3, 20, 2, {}, 1, {data, 5}};
    raft_configuration_init(&m.conf);
    raft_configuration_add(&m.conf, 1, "host:1", RAFT_VOTER);
    raft_configuration_add(&m.conf, 4, "host:4", RAFT_SPARE);
  }
  ~Snapshot() { raft_configuration_close(&message.install_snapshot.conf); }
};

TEST(RaftMessage, KeepsASnapshot) {
  auto decoded = decode(encoded(Snapshot().message));
  ASSERT_TRUE(decoded);
  const raft_install_snapshot& m = decoded->message.install_snapshot;
  EXPECT_EQ(m.last_index, 20u);
  ASSERT_EQ(m.conf.n, 2u);
  EXPECT_STREQ(m.conf.servers[1].address, "host:4");
  EXPECT_EQ(m.conf.servers[1].role, RAFT_SPARE);
  EXPECT_EQ(m.data.len, 5u);
  EXPECT_EQ(std::memcmp(m.data.base, "state", 5), 0);
  release(decoded->message);
}

// Anything may arrive: it is refused or decoded, and never read beyond its end.
TEST(RaftMessage, RefusesPartsAndSurvivesDamage) {
  std::mt19937_64 random(5);
  const Entries entries;
  const Snapshot snapshot;
  for (const raft_message* message : {&entries.message, &snapshot.message}) {
    const std::vector<std::byte> good = encoded(*message);
    for (std::size_t length = 0; length < good.size(); ++length) {
      const std::vector<std::byte> part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      auto decoded = decode(part);
      // A snapshot's data ends where the message ends.
      EXPECT_EQ(decoded.has_value(), message == &snapshot.message && length >= good.size() - 5) << length;
      if (decoded) release(decoded->message);
    }
    for (int i = 0; i < 20000; ++i) {
      std::vector<std::byte> bad = good;
      for (int flips = 0; flips < 3; ++flips) bad[random() % bad.size()] = static_cast<std::byte>(random());
      if (auto decoded = decode(bad)) release(decoded->message);
    }
  }
}

StoreRequest put(std::uint64_t session, std::uint64_t number, std::uint64_t key, std::uint8_t fill) {
  StoreRequest request{StoreOp::put, session, number, store_key(key), {}};
  request.value.fill(std::byte{fill});
  return request;
}
StoreAnswer apply(ReplicatedStore& store, const StoreRequest& request) {
  return store.apply(std::as_bytes(std::span(&request, 1)).first(StoreRequest::bytes(request.op)));
}

TEST(ReplicatedStore, LosesNoKeyAlsoWithTooLittleMemory) {
  for (const std::uint64_t memory : {16, 3000, 40000}) {
    ReplicatedStore store(memory);
    const std::uint64_t session = apply(store, {}).session;
    std::uint64_t number = 0;
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t key = 0; key < 20000; ++key) {
        apply(store, put(session, ++number, key, static_cast<std::uint8_t>(key * 7 + round)));
      }
    }
    EXPECT_EQ(store.keys(), 20000u);
    for (std::uint64_t key = 0; key < 20000; ++key) {
      const std::byte* const value = store.get(store_key(key));
      ASSERT_NE(value, nullptr) << key;
      EXPECT_EQ(value[kStoreValue - 1], static_cast<std::byte>(key * 7 + 1));
    }
    EXPECT_EQ(store.get(store_key(20000)), nullptr);

    std::vector<std::byte> snapshot(store.snapshot_bytes());
    store.snapshot(snapshot.data());
    ReplicatedStore other(memory);
    ASSERT_TRUE(other.restore(snapshot));
    EXPECT_EQ(other.keys(), 20000u);
    EXPECT_EQ(other.get(store_key(17))[0], store.get(store_key(17))[0]);
    // The session is part of it: a PUT that was applied is not applied again.
    apply(other, put(session, number, 19999, 1));
    EXPECT_EQ(other.get(store_key(19999))[0], store.get(store_key(19999))[0]);
    EXPECT_EQ(apply(other, {}).session, session + 1);
    snapshot.pop_back();
    EXPECT_FALSE(other.restore(snapshot));
  }
}

TEST(ReplicatedStore, ForgetsTheSessionThatWasNotUsedForLongest) {
  ReplicatedStore store(100);
  const std::uint64_t first = apply(store, {}).session;
  const std::uint64_t second = apply(store, {}).session;
  for (std::size_t i = 2; i < ReplicatedStore::kMostSessions; ++i) apply(store, {});
  EXPECT_EQ(apply(store, put(first, 1, 1, 1)).status, StoreStatus::done);
  apply(store, {});
  EXPECT_EQ(store.sessions(), ReplicatedStore::kMostSessions);
  EXPECT_EQ(apply(store, put(second, 1, 1, 2)).status, StoreStatus::expired);
  EXPECT_EQ(apply(store, put(first, 2, 1, 3)).status, StoreStatus::done);
  EXPECT_EQ(store.get(store_key(1))[0], std::byte{3});
}

}  // namespace
}  // namespace verbscope
