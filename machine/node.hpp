// Node: what differs between a host, a simulated node and the null device for code on the data path. A benchmark thread
// is a template over it, so that the host's version of each member costs nothing or the bare instruction.
// nic_sim/host/sim_node.hpp has the simulated counterpart with the same members.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "common/clock.hpp"
#include "common/units.hpp"

namespace verbscope {

template <class N>
concept Node = requires(N node, Nanos cost, Picos when, const void* memory, std::size_t bytes, std::uint64_t& word,
                        std::uint64_t amount, ibv_comp_channel* channel) {
  { node.now() } -> std::same_as<Picos>;  // this thread's clock
  {node.relax()};                         // the thread found nothing to do: spin hint, or let simulated time pass
  {node.relax_until(when)};               // relaxes for no longer than that
  {node.work(cost)};                      // the thread computed for `cost`: nothing on a host, which really computes
  // Memory that peers write to by WRITE or atomics and that this thread polls: say so once, before the first look.
  {node.watch(memory, bytes)};
  // Call before each pass of loads from watched memory: what has arrived by now is what the loads see. A pass that
  // finds nothing ends with relax(). `places`: how many lines it looks at.
  {node.look()};
  {node.look(bytes)};
  // Adds to an aligned word that threads of this node share, and yields what it was.
  { node.fetch_add(word, amount) } -> std::same_as<std::uint64_t>;
  // Memory that is probably not in the cache: the line of `memory` is asked for, and the thread goes on; the thread is
  // about to read it, and waits until it is there. Lines that are known to be in the cache need neither.
  {node.prefetch(memory)};
  {node.load(memory)};
  // Sleeps until a CQ of `channel` has a completion event, which it acknowledges; yields the CQ, or null after
  // `timeout` (errno ETIMEDOUT) or on failure (errno). Arm the CQ with ibv_req_notify_cq, then poll once more, first.
  { node.await_event(channel, cost) } -> std::same_as<ibv_cq*>;
};

// Waits on libibverbs's channel; null and errno as above (machine/host_event.cpp).
ibv_cq* await_host_event(ibv_comp_channel* channel, Nanos timeout);

// A thread on this machine. The null device uses it as well.
struct HostNode {
  Picos now() const { return TscClock::now(); }
  void relax() const { cpu_relax(); }
  void relax_until(Picos) const { cpu_relax(); }
  void work(Nanos) const {}
  void watch(const void*, std::size_t) const {}
  void look(std::size_t /*places*/ = 1) const { std::atomic_thread_fence(std::memory_order_acquire); }
  std::uint64_t fetch_add(std::uint64_t& word, std::uint64_t amount) const {
    return std::atomic_ref(word).fetch_add(amount, std::memory_order_acq_rel);
  }
  // Inlined at once: a call of a function that changes nothing and yields nothing is one that GCC 12 drops.
  [[gnu::always_inline]] void prefetch(const void* line) const { __builtin_prefetch(line); }
  void load(const void*) const {}  // what reads the memory waits by itself
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) const { return await_host_event(channel, timeout); }
};

static_assert(Node<HostNode>);

}  // namespace verbscope
