// The PUTs of a store whose GETs are one-sided: a message to the server's CPU, which answers. As in FaRM, the client
// WRITEs the message into one of its slots at the server, which polls them and WRITEs the answer back; as in Pilaf,
// both are SENDs. All go over UC, which may lose them.
//
// A client numbers its PUTs from 1 on. Message n is [value, key, tag], the tag being its number and the number of the
// attempt. For an emulated store it is [value, 8 bytes of the key, tag], so that it has the size of value and key. The
// server executes PUTs in order, each once: it takes only number last + 1. Its answer is the number of the last
// executed PUT, which answers all before. A client that waits too long resends all PUTs that are not answered, with a
// new attempt in their tags; a server that has executed them already answers again.
//
// The server's side follows. Data path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/units.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/one_sided/access.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

inline constexpr std::uint32_t kPutTagBytes = 8;
inline constexpr std::uint64_t kPutNumbers = std::uint64_t{1} << 40;

constexpr std::uint64_t put_tag(std::uint64_t number, std::uint64_t attempt) {
  return attempt * kPutNumbers + number % kPutNumbers;
}
constexpr std::uint64_t put_number(std::uint64_t tag) {
  return tag % kPutNumbers;
}

struct PutLayout {
  std::uint32_t value_bytes = 0;
  bool emulated = false;
  std::uint32_t window = 1;  // PUTs of a client thread that are not answered

  std::uint32_t message_bytes() const { return value_bytes + kStoreKeyBytes + (emulated ? 0 : kPutTagBytes); }
  // Bytes from a slot to the next. A message ends where its slot ends, so that the tag is one aligned word.
  std::uint64_t stride() const { return round_up(message_bytes(), kCacheLine.value); }
  std::uint64_t client_bytes() const { return window * stride(); }

  // The end of the slot of PUT `number`, from the first of the client's slots.
  std::uint64_t end_of(std::uint64_t number) const { return ((number - 1) % window + 1) * stride(); }
};

// Writes the key of a message that ends at `end`.
inline void set_put_key(const PutLayout& layout, std::byte* end, const lookups::KeyHash& key) {
  const std::uint32_t bytes = layout.emulated ? kStoreKeyBytes - kPutTagBytes : kStoreKeyBytes;
  std::memcpy(end - kPutTagBytes - bytes, &key, bytes);
}
inline lookups::KeyHash put_key(const std::byte* end) {
  lookups::KeyHash key;
  std::memcpy(&key, end - kPutTagBytes - sizeof key, sizeof key);
  return key;
}
inline const std::byte* put_value(const PutLayout& layout, const std::byte* end) {
  return end - layout.message_bytes();
}

// One client's PUTs.
struct PutLane {
  std::byte* slots = nullptr;  // messages by WRITE
  RecvLane recvs;              // messages by SEND
  std::uint64_t last = 0;      // number of the last executed PUT: the answer
  std::uint64_t tag = 0;       // the tag of that PUT at the last look
  ibv_send_wr answer{};        // carries `last`, inline
  ibv_sge segment{};
};

struct PutCounts {
  std::uint64_t executed = 0;
  std::uint64_t refused = 0;   // of keys that the store does not have
  std::uint64_t repeated = 0;  // answers to PUTs that were executed before
};

template <class Access>
struct OneSidedServerState : ServerLoopState {
  std::span<SendQueue> queues;  // one a lane
  std::span<PutLane> lanes;
  typename Access::Puts* puts = nullptr;
  PutLayout layout;
  bool by_memory = true;       // messages and answers by WRITE
  std::span<std::byte> slots;  // those of all lanes
  std::uint64_t passes = 0;
  bool idle = false;  // the last pass found nothing
  PutCounts counts;

  template <Node N>
  void watch(N& node) const {
    if (by_memory && !slots.empty()) node.watch(slots.data(), slots.size());
  }
};

template <class Access>
inline bool answer_put(OneSidedServerState<Access>& s, std::uint32_t index, RunEnd& end) {
  return post_one(s.queues[index], s.lanes[index].answer, end);
}

// Executes the next PUT of a client, whose message ends at `at`, and answers. The queue has room.
template <Node N, class Access>
inline bool execute(N& node, OneSidedServerState<Access>& s, std::uint32_t index, const std::byte* at,
                    std::uint64_t tag, RunEnd& end) {
  PutLane& lane = s.lanes[index];
  if (!s.puts->put(node, put_key(at), put_value(s.layout, at))) ++s.counts.refused;
  ++s.counts.executed;
  ++s.served;
  ++lane.last;
  lane.tag = tag;
  return answer_put(s, index, end);
}

// Polls the slot of each client's next PUT. `again`: also that of the last PUT, which a client without its answer
// writes again. Returns the number of answers, or -1 with `end` set.
template <Node N, class Access>
inline int serve_written(N& node, OneSidedServerState<Access>& s, bool again, RunEnd& end) {
  int answers = 0;
  node.poll_memory(s.lanes.size() * (again ? 2 : 1));
  for (std::uint32_t i = 0; i < s.lanes.size(); ++i) {
    PutLane& lane = s.lanes[i];
    if (s.queues[i].room == 0) continue;
    std::byte* const next = lane.slots + s.layout.end_of(lane.last + 1);
    const auto tag = load_word<std::uint64_t>(next - kPutTagBytes);
    if (put_number(tag) == lane.last + 1) {
      if (!execute(node, s, i, next, tag, end)) return -1;
      ++answers;
    } else if (again && lane.last > 0) {
      std::byte* const last = lane.slots + s.layout.end_of(lane.last);
      const auto seen = load_word<std::uint64_t>(last - kPutTagBytes);
      if (seen == lane.tag) continue;
      lane.tag = seen;
      ++s.counts.repeated;
      if (!answer_put(s, i, end)) return -1;
      ++answers;
    }
  }
  return answers;
}

// Takes a message by SEND. It ignores one that is not the next, because that was lost, and one that arrives while there
// is no room for an answer: the client resends all.
template <Node N, class Access>
inline bool serve_received(N& node, OneSidedServerState<Access>& s, std::uint64_t wr_id, RunEnd& end) {
  const std::uint32_t index = recv_queue(wr_id), place = recv_place(wr_id);
  PutLane& lane = s.lanes[index];
  const std::byte* const at = lane.recvs.payloads + place * lane.recvs.stride + s.layout.message_bytes();
  std::uint64_t tag;
  std::memcpy(&tag, at - kPutTagBytes, sizeof tag);
  if (s.queues[index].room > 0) {
    if (put_number(tag) == lane.last + 1) {
      if (!execute(node, s, index, at, tag, end)) return false;
    } else if (put_number(tag) <= lane.last) {
      ++s.counts.repeated;
      if (!answer_put(s, index, end)) return false;
    }
  }
  return post_next_recvs(lane.recvs, index, end);
}

// One pass of server_loop(). A first pass that finds nothing counts as a move: the next one looks at the last PUTs too,
// before the thread sleeps.
template <Node N, class Access>
inline int serve_puts(N& node, OneSidedServerState<Access>& s, RunEnd& end) {
  constexpr std::uint64_t kPassesBeforeAgain = 64;
  int answers = 0, completed = 0;
  if (s.by_memory) answers = serve_written(node, s, s.idle || ++s.passes % kPassesBeforeAgain == 0, end);
  if (answers < 0) return -1;
  const auto due = [](const SendQueue& q) { return q.due > 0; };
  if (!s.by_memory || std::ranges::any_of(s.queues, due)) {
    completed = reap(s.cq, s.queues, end, [&](const ibv_wc& wc) { return serve_received(node, s, wc.wr_id, end); });
  }
  if (completed < 0) return -1;
  const bool was_idle = s.idle;
  s.idle = answers == 0 && completed == 0;
  return s.idle && (was_idle || !s.by_memory) ? 0 : 1;
}

}  // namespace verbscope
