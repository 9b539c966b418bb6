// The data paths of write_visibility. The client writes a version into every word of the server's memory, waits for the
// completion of the WRITE, or of a READ behind it, and sends the version on another QP. The server polls the words all
// the time. When a version arrives, it checks that every word has it, and sends it back.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>

#include "common/histogram.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The two queues of a side.
inline constexpr std::size_t kWriteQueue = 0;    // WRITEs and READs
inline constexpr std::size_t kMessageQueue = 1;  // SENDs
inline constexpr std::size_t kCheckedKinds = 2;  // 0: complete by the WRITE; 1: by the READ behind it
constexpr std::size_t kind_of_version(std::uint64_t version) {
  return version % kCheckedKinds;
}

// The RECVs of the message queue; each message is a version.
struct VersionRecv {
  ibv_qp* qp = nullptr;
  ibv_recv_wr request{};
  std::byte* place = nullptr;
  std::uint64_t newest = 0;  // version of the last message

  // Takes a completion: stores the version and posts the RECV again.
  bool take(RunEnd& end) {
    newest = load_word<std::uint64_t>(place);
    return post_succeeded(post_recv_list(qp, &request), 0, end);
  }
};

struct VisibilityWriter {
  ibv_cq* cq = nullptr;
  std::array<SendQueue, 2> queues;  // every post is signaled; room counts lists
  std::span<std::uint64_t> source;  // payload of the WRITEs
  ibv_send_wr write{};
  std::array<ibv_send_wr, 2> write_then_read{};
  ibv_send_wr message{};
  std::byte* message_version = nullptr;  // payload of `message`
  VersionRecv replies;
  std::array<Histogram, kCheckedKinds> latency;  // time from the post to the completion
  std::uint64_t goal = MeasuredInterval::kNoGoal;
  std::uint64_t version = 0;  // the last that was written
};

// Posts a list whose last request is signaled, on a queue that counts lists.
inline bool post_signaled_list(SendQueue& q, ibv_send_wr* list, RunEnd& end) {
  --q.room;
  ++q.due;
  ++q.before;
  return post_placed(q, list, end);
}

template <Node N>
void write_versions(N& node, VisibilityWriter& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, s.goal);
  IdleWait wait(s.cq, nullptr, tally);
  const auto on_recv = [&](const ibv_wc&) { return s.replies.take(tally.end); };
  do {
    const std::uint64_t version = ++s.version;
    const std::size_t kind = kind_of_version(version);
    for (std::uint64_t& word : s.source) word = version;
    SendQueue& writes = s.queues[kWriteQueue];
    const Picos begin = node.now();
    if (!post_signaled_list(writes, kind == 0 ? &s.write : s.write_then_read.data(), tally.end)) return;
    if (!reap_until(node, s.cq, s.queues, wait, control, tally.end, on_recv, [&] { return writes.due == 0; })) return;
    const Picos time = node.now() - begin;
    if (tally.opened()) s.latency[kind].record(time);
    store_word(s.message_version, version);
    if (!post_signaled_list(s.queues[kMessageQueue], &s.message, tally.end)) return;
    const auto replied = [&] { return s.replies.newest == version && s.queues[kMessageQueue].due == 0; };
    if (!reap_until(node, s.cq, s.queues, wait, control, tally.end, on_recv, replied)) return;
    tally.done_ops.store(version, std::memory_order_relaxed);
  } while (!interval.see(node, control.phase.load(std::memory_order_relaxed), s.version));
}

struct VisibilityReader {
  ibv_cq* cq = nullptr;
  std::array<SendQueue, 2> queues;
  std::span<std::uint64_t> words;  // written by the client
  ibv_send_wr reply{};
  std::byte* reply_version = nullptr;  // payload of `reply`
  VersionRecv messages;

  // Counts.
  std::uint64_t passes = 0;                                // over all words
  std::uint64_t passes_within = 0;                         // passes with words of two versions
  std::uint64_t in_order = 0;                              // neighbours of two versions, the left one newer
  std::uint64_t out_of_order = 0;                          // the right one newer
  std::array<std::uint64_t, kCheckedKinds> checked{};      // messages, each with one check
  std::array<std::uint64_t, kCheckedKinds> not_visible{};  // a word was older when the message arrived
  std::array<Histogram, kCheckedKinds> late;               // time until no word was older
};

inline std::uint64_t load_version(std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
}

// Reads all words once, from the last to the first. A word is read after its right neighbour, so it is at least as new
// if bytes become visible from left to right. Returns the oldest version.
inline std::uint64_t read_pass(VisibilityReader& s) {
  std::uint64_t right = load_version(s.words.back());
  std::uint64_t oldest = right, newer = 0, older = 0;
  for (std::size_t i = s.words.size() - 1; i-- > 0;) {
    const std::uint64_t left = load_version(s.words[i]);
    newer += left > right ? 1 : 0;
    older += left < right ? 1 : 0;
    oldest = left < oldest ? left : oldest;
    right = left;
  }
  ++s.passes;
  s.passes_within += newer + older > 0 ? 1 : 0;
  s.in_order += newer;
  s.out_of_order += older;
  return oldest;
}

// Checks that `version`, which is complete at the client, is visible; otherwise waits until it is.
template <Node N>
bool check_visible(N& node, VisibilityReader& s, std::uint64_t version, const RunControl& control, RunEnd& end) {
  const std::size_t kind = kind_of_version(version);
  ++s.checked[kind];
  node.poll_memory();
  if (read_pass(s) >= version) return true;
  ++s.not_visible[kind];
  const Picos begin = node.now();
  const bool arrived =
      look_until(node, s.cq, s.queues, control, end, [&s, version] { return read_pass(s) >= version; });
  if (arrived) s.late[kind].record(node.now() - begin);
  return arrived;
}

template <Node N>
void read_versions(N& node, VisibilityReader& s, const RunControl& control, ThreadTally& tally) {
  node.watch(s.words.data(), s.words.size_bytes());
  std::uint64_t checked = 0;  // version
  const auto on_recv = [&](const ibv_wc&) { return s.messages.take(tally.end); };
  for (;;) {
    node.poll_memory();
    read_pass(s);
    if (reap(s.cq, s.queues, tally.end, on_recv) < 0) return;
    if (s.messages.newest != checked) {
      checked = s.messages.newest;
      if (!check_visible(node, s, checked, control, tally.end)) return;
      store_word(s.reply_version, checked);
      if (!post_signaled_list(s.queues[kMessageQueue], &s.reply, tally.end)) return;
      tally.done_ops.store(checked, std::memory_order_relaxed);
      continue;
    }
    if (must_give_up(control, tally.end)) return;
    node.idle();
  }
}

}  // namespace verbscope
