// A thread of HERD's server without clients, on the null device: before each pass it writes requests into its own
// slots, as clients would have, and its responses go nowhere. What is measured is the server's loop.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "systems/herd/server.hpp"

namespace verbscope::herd {

// Requests, prebuilt: the bytes of each end at `last + index * stride`.
struct Feed {
  std::byte* last = nullptr;
  std::uint64_t stride = 0;
  std::span<const std::uint32_t> bytes;  // of each request
  std::size_t next = 0;
};

// Puts the next request into each slot that a pass will look at and that is empty. Kept apart from the loop, so that
// its cost can be told from the loop's.
[[gnu::noinline]] inline void feed_slots(Server& s, Feed& feed) {
  for (std::uint32_t c = 0; c < s.clients.size(); ++c) {
    std::byte* const slot = s.clients[c].slot;
    if (is_request(slot)) continue;
    const std::uint32_t bytes = feed.bytes[feed.next];
    std::memcpy(slot - bytes, feed.last + feed.next * feed.stride - bytes, bytes);
    feed.next = feed.next + 1 == feed.bytes.size() ? 0 : feed.next + 1;
  }
}

template <ServerPolicy kPolicy, Node N>
void alone_loop(N& node, Server& s, Feed& feed, std::uint64_t goal, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval window(tally, goal);
  for (;;) {
    feed_slots(s, feed);
    begin_pass(s, control);
    if (serve_and_count<kPolicy>(node, s, tally.end) < 0) return;
    tally.done_ops.store(s.served, std::memory_order_relaxed);
    if (window.see(node, control.phase.load(std::memory_order_relaxed), s.served)) return;
  }
}

}  // namespace verbscope::herd
