// The data path of a server's thread of a store whose GETs are one-sided: it executes the PUTs of its clients and
// answers (put_message.hpp).
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "microbench/loop/recv_loop.hpp"
#include "microbench/loop/request_loop.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/one_sided/access.hpp"
#include "systems/one_sided/put_message.hpp"

namespace verbscope {

// One client's PUTs.
struct PutLane {
  std::byte* slots = nullptr;  // messages by WRITE
  RecvLane recvs;              // messages by SEND
  std::uint64_t last = 0;      // number of the last PUT that was executed: the answer
  std::uint64_t tag = 0;       // the tag of that one, as it was seen last
  ibv_send_wr answer{};        // carries `last`, inline
  ibv_sge segment{};
};

struct PutCounts {
  std::uint64_t executed = 0;
  std::uint64_t refused = 0;   // of keys that are not there
  std::uint64_t repeated = 0;  // answers to PUTs that had been executed before
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

// Executes the PUT whose message ends at `at`, the next of its client, and answers. The queue has room.
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

// Looks at the slot of each client's next PUT; `again`: and at that of the last, which a client has written again that
// lacks the answer. Returns how many answers were made, or -1 with `end` set.
template <Node N, class Access>
inline int serve_written(N& node, OneSidedServerState<Access>& s, bool again, RunEnd& end) {
  int answers = 0;
  node.look(s.lanes.size() * (again ? 2 : 1));
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

// Takes a message by SEND. One that is not the next, because that was lost, is left: its client sends all again. So is
// one that comes while there is no room for an answer.
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
